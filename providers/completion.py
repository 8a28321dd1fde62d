"""The common completion shape: what every dialect decodes into and every surface renders from.

Usage has OpenAI's meaning on every dialect: `prompt_tokens` includes cached tokens, `completion_tokens` includes
reasoning.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from providers.frozen_record import record
from providers.json_types import JsonObject, JsonValue

FinishReason = Literal["stop", "length", "content_filter", "tool_calls"]
"""The finish reasons that vendors' are mapped to. One that fits none of them keeps the vendor's own name."""

FLOOR_LOGPROB = -9999.0
"""OpenAI's value for "very unlikely", in place of -inf, which JSON cannot carry."""


@record
class Usage:
    """Token counts of one answer; details are integers under OpenAI's names, and only those that the vendor reported.

    `estimated` says that at least one number is the gateway's estimate, because the vendor reported none. `extra` holds
    the vendor's own members, such as what the answer cost, under its names. `tier` is the service tier that the vendor
    billed, `None` for the standard one (see `billed_tier`). `calls` are the usages that a sum is made of;
    sums of the same counts are equal.
    """

    prompt_tokens: int
    completion_tokens: int
    prompt_details: Mapping[str, int] | None = None
    completion_details: Mapping[str, int] | None = None
    estimated: bool = False
    extra: Mapping[str, JsonValue] | None = None
    tier: str | None = None
    calls: "tuple[Usage, ...]" = field(default=(), compare=False)

    @property
    def total_tokens(self) -> int:
        """Prompt and completion together."""
        return self.prompt_tokens + self.completion_tokens


MOST_COUNTED: Final = 2**31 - 1
"""The largest count that is believed: Google's counts are int32 (`GenerateContentResponse.UsageMetadata` of
`generative_service.proto`, November 2026), and no prompt is nearly as long."""


def count_of(value: JsonValue) -> int | None:
    """Return a count of tokens or the like; None for anything else, a negative number and a senseless one included.
    Some vendors write whole numbers as doubles."""
    if type(value) is float and value.is_integer():
        value = int(value)
    return value if type(value) is int and 0 <= value <= MOST_COUNTED else None


SEARCH_REQUESTS: Final = "web_search_requests"
"""The completion detail with the number of searches of the web that the vendor made (Anthropic's name)."""

_SEARCHES_IN: Final = (
    ("num_search_queries", ""),
    ("server_tool_use_details", "web_search_requests"),
    ("server_tool_use", "web_search_requests"),
    ("server_side_tool_usage_details", "web_search_calls"),
)


def reported_searches(raw: JsonObject) -> int:
    """Return the number of searches of the web in the counts of a vendor of OpenAI's family; 0 if it reports none.

    Sources, November 2026: perplexityai 0.46.1 `num_search_queries`; openrouter 1.3.84 `server_tool_use_details` and
    "Web search" of its documentation, `server_tool_use`; xai-sdk 1.21.0 `server_side_tool_usage_details`.
    """
    for name, within in _SEARCHES_IN:
        held = raw.get(name)
        if within:
            held = held.get(within) if isinstance(held, dict) else None
        if count := count_of(held):
            return count
    return 0


_STANDARD_TIERS: Final = frozenset({"", "default", "standard", "standard_only", "auto", "on_demand", "unspecified"})


def billed_tier(*reported: JsonValue) -> str | None:
    """Return the first service tier among what a vendor reports that has a price of its own, in lower case; `None` for
    the standard tier and without a report.

    Sources, November 2026: openai 3.54 `service_tier`; anthropic 2 `Usage.service_tier` and `speed`; botocore 1.44.5
    `ServiceTier`; google-genai 3.4.0 `TrafficType`, whose words begin with `ON_DEMAND`.
    """
    for word in reported:
        if isinstance(word, str):
            tier = word.lower().removeprefix("on_demand_")
            if tier not in _STANDARD_TIERS:
                return tier
    return None


_HELD_IN: Final[Mapping[str, str]] = {
    "ephemeral_5m_input_tokens": "cache_write_tokens",
    "ephemeral_1h_input_tokens": "cache_write_tokens",
}
"""Details that are parts of another detail (Anthropic's, November 2026)."""


def reported_usage(
    prompt: int | None,
    completion: int | None,
    prompt_details: Mapping[str, int] | None = None,
    completion_details: Mapping[str, int] | None = None,
    extra: Mapping[str, JsonValue] | None = None,
    tier: str | None = None,
) -> Usage | None:
    """Return the usage of counts that `count_of` has read: None without both of them, and without the details that are
    larger than what they are parts of. The one way from a vendor's counts to a Usage."""
    if prompt is None or completion is None:
        return None
    if not prompt_details and not completion_details:
        return Usage(prompt, completion, extra=extra, tier=tier)
    of_prompt, of_answer = _parts(prompt_details, prompt), _parts(completion_details, completion)
    return Usage(prompt, completion, of_prompt, of_answer, extra=extra, tier=tier)


def partial_usage(
    prompt: int | None,
    completion: int | None,
    prompt_details: Mapping[str, int] | None = None,
    completion_details: Mapping[str, int] | None = None,
) -> Usage | None:
    """Return the usage of a stream that ended before its counts were complete: `estimated`, since the completion may
    have grown after the last count. `None` without a prompt's count."""
    return as_estimate(reported_usage(prompt, completion or 0, prompt_details, completion_details))


def as_estimate(usage: Usage | None) -> Usage | None:
    """Return a usage marked as `estimated`."""
    return None if usage is None else replace(usage, estimated=True)


def _parts(details: Mapping[str, int] | None, whole: int) -> Mapping[str, int] | None:
    if not details:
        return None
    held = "ephemeral_1h_input_tokens" in details or "ephemeral_5m_input_tokens" in details
    if not held and max(details.values()) <= whole:
        return details
    kept = {name: count for name, count in details.items() if count <= whole or not name.endswith("_tokens")}
    for name, holder in _HELD_IN.items():
        if kept.get(name, 0) > kept.get(holder, 0):
            del kept[name]
    return kept or None


@record
class TokenLogprob:
    """One token with its log probability; `bytes` are its UTF-8 bytes, None where the vendor does not report them."""

    token: str
    logprob: float
    bytes: tuple[int, ...] | None = None
    top: tuple["TokenLogprob", ...] = ()


@record
class ContentLogprobs:
    """Chat's form: a list of tokens; `refusal` is filled instead of `content` when the text is a refusal."""

    content: tuple[TokenLogprob, ...]
    refusal: tuple[TokenLogprob, ...] = ()


@record
class LegacyLogprobs:
    """The completion API's four parallel arrays; entries of an echoed prompt's first token are None.

    `text_offset` is None where the vendor reported no usable offsets.
    """

    tokens: tuple[str, ...]
    token_logprobs: tuple[float | None, ...]
    top_logprobs: tuple[Mapping[str, float] | None, ...] | None
    text_offset: tuple[int, ...] | None


Logprobs = ContentLogprobs | LegacyLogprobs


CallKind = Literal["function", "custom"]
"""Kinds of tool calls: of a function with JSON arguments, or of OpenAI's custom tools with free text."""


@record
class ToolCall:
    """A whole tool call; `arguments` is the JSON text as the model wrote it, or the text for a custom tool.

    `extra` holds further members of the call, such as `extra_content` with Gemini's thought signature.
    """

    id: str
    name: str
    arguments: str
    kind: CallKind = "function"
    extra: Mapping[str, JsonValue] | None = None


@record
class ToolCallDelta:
    """A piece of a streamed call; `index` is dense from 0 within the choice; the first piece has `id` and `name`."""

    index: int
    id: str | None = None
    name: str | None = None
    arguments: str = ""
    kind: CallKind = "function"
    extra: Mapping[str, JsonValue] | None = None


@record
class Extras:
    """What a choice, or a piece of one, holds besides its text, reasoning and calls.

    `reasoning_details` are the blocks of thinking in OpenRouter's form, each with `type`, `format` and `index`; in a
    stream, pieces of one block share `type` and `index`, and the signature comes in a piece of its own. `annotations`
    have OpenAI's form, offsets in code points of the whole text; `images` OpenRouter's; `audio` OpenAI's. `message`,
    `choice` and `answer` hold what has no common form, under the vendor's names, for the message, the choice and the
    whole answer. `image_places` are how many code points of the text, of the choice or the chunk, come before each
    image; images without a place follow the text.
    """

    reasoning_details: tuple[JsonObject, ...] = ()
    annotations: tuple[JsonObject, ...] = ()
    images: tuple[JsonObject, ...] = ()
    audio: JsonObject | None = None
    message: Mapping[str, JsonValue] | None = None
    choice: Mapping[str, JsonValue] | None = None
    answer: Mapping[str, JsonValue] | None = None
    image_places: tuple[int, ...] = ()


NO_EXTRAS = Extras()


@record
class Choice:
    """One finished candidate.

    `finish_reason` is a FinishReason, or the vendor's own where none fits; `native_finish_reason` is the vendor's
    wherever it is more specific. `matched_stop` is the stop string or token id that ended the text, where the vendor
    reports it. `text` is the refusal when there is one and no other text. `signature` is what the vendor requires back
    with the text in the next turn.
    """

    index: int
    text: str
    finish_reason: str
    native_finish_reason: str | None = None
    logprobs: Logprobs | None = None
    refusal: str | None = None
    reasoning: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    matched_stop: str | int | None = None
    signature: str | None = None
    extras: Extras | None = None


@record
class NativeEvent:
    """An event of a stream in the client's own API, as the vendor sent it: its name and its JSON."""

    name: str
    data: bytes


@record
class Completion:
    """A whole answer, choices sorted by index; `usage` is None only where the vendor sent none.

    `extra` holds members of the whole answer that have no common form, under the vendor's names. `native` is the
    vendor's own body, where that is in the client's API: the surface shows it instead.
    """

    choices: tuple[Choice, ...]
    usage: Usage | None
    system_fingerprint: str | None = None
    service_tier: str | None = None
    extra: Mapping[str, JsonValue] | None = None
    native: bytes | None = None


@record
class Chunk:
    """What one choice gained. Exactly one chunk of each index carries a `finish_reason`, with the `service_tier` of the
    whole answer; what follows it has nothing but `extras`. A chunk with those of the answer alone is of no choice.

    `native` is the vendor's event that this is the meaning of, where the vendor speaks the client's API: the surface
    shows the event instead. Of several chunks of one event the first has it; an event without a meaning of its own is
    in a chunk that has nothing else.
    """

    index: int = 0
    text: str = ""
    finish_reason: str | None = None
    native_finish_reason: str | None = None
    logprobs: Logprobs | None = None
    refusal: str | None = None
    reasoning: str | None = None
    tool_calls: tuple[ToolCallDelta, ...] = ()
    matched_stop: str | int | None = None
    system_fingerprint: str | None = None
    signature: str | None = None
    service_tier: str | None = None
    extras: Extras | None = None
    native: NativeEvent | None = None


RunPart = Literal["text", "reasoning", "arguments"]
"""What the pieces of a run are."""


@record
class NativeForm:
    """The form of a vendor's events in the client's own API: their name, and their JSON before and after a literal."""

    name: str
    before: bytes
    after: bytes


# Not frozen, which would double what it costs: one is made with nearly every read.
@dataclass(slots=True)
class TextRun:
    """What one choice gained in chunks that follow each other and hold one `part` alone, none of them empty: its text,
    its reasoning, or the arguments of the tool call with the number `call`.

    `literals` are the pieces as they stand between the quotes of JSON strings: each in printable ASCII that needs no
    escape, but for those in `odd`, which has the pieces themselves by their places. `size` are their bytes in UTF-8,
    `characters` the code points of text: none, where the part is another. `detail` is the reasoning detail that each
    chunk of reasoning has with its own text, `native` the form of the vendor's events for a client of the same API.
    """

    index: int
    literals: list[bytes]
    odd: Mapping[int, str]
    characters: int
    size: int
    system_fingerprint: str | None = None
    part: RunPart = "text"
    call: int = 0
    detail: JsonObject | None = None
    native: NativeForm | None = None

    def chunks(self) -> Iterator[Chunk]:
        """Yield the chunks."""
        form = self.native
        for place, literal in enumerate(self.literals):
            chunk = self.chunk_of(self.odd[place] if place in self.odd else literal.decode())
            if form is not None:
                chunk = replace(chunk, native=NativeEvent(form.name, form.before + literal + form.after))
            yield chunk

    def chunk_of(self, piece: str) -> Chunk:
        """Return the chunk of one piece, without the vendor's event."""
        index, fingerprint = self.index, self.system_fingerprint
        if self.part == "text":
            return Chunk(index, piece, system_fingerprint=fingerprint)
        if self.part == "reasoning":
            detail = self.detail
            extras = None if detail is None else Extras(reasoning_details=({**detail, "text": piece},))
            return Chunk(index, reasoning=piece, extras=extras, system_fingerprint=fingerprint)
        delta = ToolCallDelta(self.call, arguments=piece)
        return Chunk(index, tool_calls=(delta,), system_fingerprint=fingerprint)


def has_content(chunk: Chunk) -> bool:
    """Return whether a chunk holds anything of an answer, and not only members of a choice or the whole answer that
    have no common form, which vendors send before they generate."""
    extras = chunk.extras
    if extras is None and chunk.native is None:
        return True
    extras = extras or NO_EXTRAS
    held = extras.reasoning_details or extras.annotations or extras.images or extras.audio or extras.message
    said = chunk.text or chunk.reasoning or chunk.refusal or chunk.tool_calls or chunk.signature or chunk.logprobs
    return bool(held or said or chunk.finish_reason)


StreamEvent = Chunk | Usage
"""An event of a stream decoder. A later Usage replaces an earlier one: vendors that repeat it count cumulatively."""

StreamPart = StreamEvent | TextRun
"""An event, or many that are read and written together."""
