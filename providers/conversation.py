"""The parts of a conversation, in the form that all dialects and surfaces share.

A request holds its conversation as the client sent it, in OpenAI's chat form. `read_conversation` of
`providers.dialects.shared` converts it to these parts for dialects of another form.

Sources: request types of `openai` 3.54.0, `anthropic` 2.12.0, `google-genai` 3.4.0, botocore 1.44.5 and `cohere` 7.3.1;
OpenRouter's `reasoning_details` from @openrouter/sdk 1.3.19, November 2026.
"""

from collections.abc import Sequence
from typing import Literal

from providers.failure import Refusal
from providers.frozen_record import frozen
from providers.json_types import JsonObject

Role = Literal["system", "user", "assistant", "tool"]
"""Roles of turns. OpenAI's `developer` is `system`, its `function` is `tool`."""

CLAUDE_FORMAT, GEMINI_FORMAT, UNKNOWN_FORMAT = "anthropic-claude-v1", "google-gemini-v1", "unknown"
"""OpenRouter's names for the vendor of a reasoning detail. `unknown` is text without a signature."""

INTERLEAVED_FORMATS = frozenset({CLAUDE_FORMAT, "openai-responses-v1", "azure-openai-responses-v1"})
"""The formats of models that reason between texts and calls, so that the position of a detail in the turn matters."""

FOREIGN_SEARCH = "srvtoolu_dragoman_"
"""The prefix of the ids of searches that another vendor made and that are returned in Anthropic's form."""

TOOL_RECORDS = frozenset(
    {"content_blocks", "web_search_calls", "search_results", "executed_tools", "reasoning_steps"}
    | {"reference", "tool_reference", "document_url"}
)
"""The fields of a response's message that record the actions and results of a vendor's own tools. Clients send them
back with the message. They are Anthropic's and Bedrock's blocks, OpenAI's searches, and the fields of Perplexity, Groq
and Mistral."""

CITATION_FIELDS = frozenset({"annotations", "citations"})
"""The fields with the sources that a response's message cites. Clients send them back with the message. If a vendor
does not accept them, they are left out and named."""

DESCRIPTIVE_FIELDS = frozenset(
    {"finish_reason", "native_finish_reason", "stop_reason", "stop_sequence"}
    | {"stop_details", "phase", "id", "type", "status", "index", "model", "object", "created", "created_by", "usage"}
    | {"container", "logprobs", "token_id", "token_ids", "tokens", "parsed", "parsed_output", "google_parts"}
    | {"metadata", "provider", "provider_specific_fields", "encrypted_content", "audio", "refusal", "function_call"}
)
"""The fields of a response's message that add nothing to its text, and that clients send back with the message. They
are left out silently for vendors that do not accept them."""

CONTINUATION_FIELDS = frozenset({"prefix", "partial"})
"""The fields of an assistant message by which a client requests its continuation: Mistral's and DeepSeek's `prefix`,
Moonshot's and DashScope's `partial`. No response has them."""

AFTER_KEY = "after"
"""The key of a reasoning detail that holds `Reasoning.after`, as a list of two numbers. It is absent for (0, 0)."""


@frozen
class InlineData:
    """Media sent with the request: its type in lower case, such as `image/png`, and its data in base64."""

    media_type: str
    data: str


@frozen
class Address:
    """Media by address: `https://`, `gs://` or `s3://`. `media_type` is the type that the client gives."""

    url: str
    media_type: str | None = None


@frozen
class UploadedFile:
    """Media by the id that a vendor returned for an upload. Only this vendor knows the id."""

    id: str


Media = InlineData | Address | UploadedFile


@frozen
class Text:
    """A text. `cache` is the client's cache marker on it, in Anthropic's form."""

    text: str
    cache: JsonObject | None = None


@frozen
class Image:
    """An image. `detail` is OpenAI's word for its resolution."""

    media: Media
    detail: str | None = None
    cache: JsonObject | None = None


@frozen
class Document:
    """A document, such as a PDF or a text. `citations` is true if the client wants the response to cite it."""

    media: Media
    name: str | None = None
    context: str | None = None
    citations: bool = False
    cache: JsonObject | None = None


@frozen
class Audio:
    """A sound: base64 data and its format, such as `wav`."""

    data: str
    format: str
    cache: JsonObject | None = None


@frozen
class Video:
    """A video."""

    media: Media
    cache: JsonObject | None = None


@frozen
class ToolUse:
    """A call that the model made: the client's id, name and arguments. `signature` is Gemini's thought signature. If
    the call is of a custom tool, `custom` holds its input, which is a text."""

    id: str
    name: str
    arguments: JsonObject
    signature: str | None = None
    custom: str | None = None
    cache: JsonObject | None = None


@frozen
class ToolResult:
    """The result of a call, made of texts and media. `failed` is true if it is an error."""

    call_id: str
    parts: tuple["Text | Image | Document | Audio | Video | OtherPart", ...]
    failed: bool = False
    name: str | None = None
    cache: JsonObject | None = None


@frozen
class Reasoning:
    """The reasoning of a model, with the vendor's signature. `format` names the vendor's format (CLAUDE_FORMAT …).
    `after` is the content of the turn before it: the number of characters of text, and the number of calls."""

    text: str
    signature: str | None = None
    format: str = UNKNOWN_FORMAT
    after: tuple[int, int] = (0, 0)


@frozen
class RedactedReasoning:
    """Reasoning that only its vendor can read. `id` is the id of the call that it belongs to, if the vendor reports it.
    `after` is as in Reasoning."""

    data: str
    format: str = UNKNOWN_FORMAT
    id: str | None = None
    after: tuple[int, int] = (0, 0)


@frozen
class OtherPart:
    """A part of a type that is not shared, as the client sent it. It is sent to the vendor that has the type."""

    kind: str
    value: JsonObject


Part = Text | Image | Document | Audio | Video | ToolUse | ToolResult | Reasoning | RedactedReasoning | OtherPart


@frozen
class Turn:
    """One message. Reasoning comes first and calls last, except that Claude's reasoning keeps its position.

    `text_signature` is Gemini's thought signature of the text. `records` names the TOOL_RECORDS of the message. `param`
    and `position` name the message in errors.
    """

    role: Role
    parts: tuple[Part, ...]
    name: str | None = None
    text_signature: str | None = None
    param: str = "messages"
    position: int = 0
    records: tuple[str, ...] = ()

    @property
    def unsent(self) -> list[str]:
        """The names of fields of the message that most vendors do not have, and that promise nothing."""
        return [*self.records] if self.name is None else ["name", *self.records]

    def refusal(self, reason: str, code: str = "unsupported_parameter") -> Refusal:
        """Return a refusal that names this message. `reason` continues the sentence."""
        message_name = f"messages[{self.position}]" if self.param == "messages" else f"'{self.param}'"
        return Refusal(self.param, f"{message_name} {reason}.", code)

    def no_part(self, kind: str) -> Refusal:
        """Return the refusal of a part of an unsupported kind."""
        return self.refusal(f"has a part of type '{kind}', which cannot be translated")


@frozen
class PlainMessage:
    """A message that holds only a text, calls of functions, or a result that is a text, like nearly every message of an
    agent's conversation. `call_id` is the id of the call that a result belongs to. `thinking` are the parts with
    reasoning before the text and the calls."""

    role: Role
    text: str
    calls: Sequence[ToolUse] = ()
    call_id: str = ""
    thinking: Sequence["Part"] = ()

    def turn(self, param: str, position: int) -> Turn:
        """Return the message as a turn. `param` and `position` name it in errors."""
        parts: tuple[Part, ...] = (Text(self.text),) if self.text else ()
        if self.role == "tool":
            texts = (Text(self.text),) if self.text else ()
            parts = (ToolResult(self.call_id, texts),)
        elif self.calls or self.thinking:
            parts = (*self.thinking, *parts, *self.calls)
        return Turn(self.role, parts, None, None, param, position)
