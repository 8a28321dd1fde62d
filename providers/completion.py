"""The common form of a completion, into which every dialect decodes and from which every surface renders.

Usage has OpenAI's meaning in every dialect: `prompt_tokens` includes cached tokens, `completion_tokens` includes
reasoning.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from providers.frozen_record import frozen
from providers.json_types import JsonObject, JsonValue

FinishReason = Literal["stop", "length", "content_filter", "tool_calls"]
"""The common finish reasons, to which the vendors' reasons are mapped. A reason that fits none of them stays the
vendor's."""

FLOOR_LOGPROB = -9999.0
"""OpenAI's value for "very unlikely". It replaces -inf, which JSON cannot represent."""


@frozen
class Usage:
    """Token counts of one response. The details are integers under OpenAI's names; only the reported ones are present.

    `estimated` is true if at least one number is the gateway's estimate, since the vendor did not report it. `extra`
    holds the vendor's own fields, such as the cost of the response, under its names. `tier` is the service tier that
    the vendor billed; `None` stands for the standard tier (see `billed_tier`). `calls` are the usages of which this one
    is the sum. They are not compared: sums with the same counts are equal.
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
        """The tokens of prompt and completion together."""
        return self.prompt_tokens + self.completion_tokens


LARGEST_COUNT: Final = 2**31 - 1
"""The largest count that is accepted. Google's counts are int32 (`GenerateContentResponse.UsageMetadata` of
`generative_service.proto`, November 2026), and no prompt is nearly as long."""


def count_of(value: JsonValue) -> int | None:
    """Return a count, such as a number of tokens. Return `None` for any other value, including negative numbers and
    numbers above LARGEST_COUNT. Some vendors write whole numbers as doubles."""
    if type(value) is float and value.is_integer():
        value = int(value)
    return value if type(value) is int and 0 <= value <= LARGEST_COUNT else None


SEARCH_REQUESTS: Final = "web_search_requests"
"""The completion detail with the number of web searches that the vendor made (Anthropic's name)."""

_SEARCH_FIELDS: Final = (
    ("num_search_queries", ""),
    ("server_tool_use_details", "web_search_requests"),
    ("server_tool_use", "web_search_requests"),
    ("server_side_tool_usage_details", "web_search_calls"),
)


def reported_searches(raw: JsonObject) -> int:
    """Return the number of web searches in the counts of a vendor of OpenAI's family; 0 if it reports none.

    Sources, November 2026: perplexityai 0.46.1 `num_search_queries`; openrouter 1.3.84 `server_tool_use_details` and
    "Web search" of its documentation, `server_tool_use`; xai-sdk 1.21.0 `server_side_tool_usage_details`.
    """
    for name, inner_name in _SEARCH_FIELDS:
        value = raw.get(name)
        if inner_name:
            value = value.get(inner_name) if isinstance(value, dict) else None
        if count := count_of(value):
            return count
    return 0


_STANDARD_TIERS: Final = frozenset({"", "default", "standard", "standard_only", "auto", "on_demand", "unspecified"})


def billed_tier(*reported: JsonValue) -> str | None:
    """Return the first reported service tier that has its own price, in lower case; `None` for the standard tier and if
    no tier is reported.

    Sources, November 2026: openai 3.54 `service_tier`; anthropic 2 `Usage.service_tier` and `speed`; botocore 1.44.5
    `ServiceTier`; google-genai 3.4.0 `TrafficType`, whose words begin with `ON_DEMAND`.
    """
    for word in reported:
        if isinstance(word, str):
            tier = word.lower().removeprefix("on_demand_")
            if tier not in _STANDARD_TIERS:
                return tier
    return None


_PARENT_DETAIL: Final[Mapping[str, str]] = {
    "ephemeral_5m_input_tokens": "cache_write_tokens",
    "ephemeral_1h_input_tokens": "cache_write_tokens",
}
"""Details of the usage that are parts of another detail (Anthropic's names, November 2026)."""


def reported_usage(
    prompt: int | None,
    completion: int | None,
    prompt_details: Mapping[str, int] | None = None,
    completion_details: Mapping[str, int] | None = None,
    extra: Mapping[str, JsonValue] | None = None,
    tier: str | None = None,
) -> Usage | None:
    """Return the usage for counts that `count_of` has read; `None` if either count is missing. Details that are larger
    than their whole are left out. Every vendor's counts become a Usage here."""
    if prompt is None or completion is None:
        return None
    if not prompt_details and not completion_details:
        return Usage(prompt, completion, extra=extra, tier=tier)
    of_prompt, of_completion = (
        _plausible_details(prompt_details, prompt),
        _plausible_details(completion_details, completion),
    )
    return Usage(prompt, completion, of_prompt, of_completion, extra=extra, tier=tier)


def partial_usage(
    prompt: int | None,
    completion: int | None,
    prompt_details: Mapping[str, int] | None = None,
    completion_details: Mapping[str, int] | None = None,
) -> Usage | None:
    """Return the usage of a stream that ended before its counts were complete. It is `estimated`, since the completion
    may have grown after the last count. Return `None` without a count of the prompt."""
    return as_estimate(reported_usage(prompt, completion or 0, prompt_details, completion_details))


def as_estimate(usage: Usage | None) -> Usage | None:
    """Return the usage marked as `estimated`."""
    return None if usage is None else replace(usage, estimated=True)


def _plausible_details(details: Mapping[str, int] | None, whole: int) -> Mapping[str, int] | None:
    if not details:
        return None
    has_parts = "ephemeral_1h_input_tokens" in details or "ephemeral_5m_input_tokens" in details
    if not has_parts and max(details.values()) <= whole:
        return details
    plausible = {name: count for name, count in details.items() if count <= whole or not name.endswith("_tokens")}
    for name, parent in _PARENT_DETAIL.items():
        if plausible.get(name, 0) > plausible.get(parent, 0):
            del plausible[name]
    return plausible or None


@frozen
class TokenLogprob:
    """One token with its log probability. `bytes` are its UTF-8 bytes; `None` if the vendor does not report them."""

    token: str
    logprob: float
    bytes: tuple[int, ...] | None = None
    top: tuple["TokenLogprob", ...] = ()


@frozen
class ContentLogprobs:
    """Chat's form: a list of tokens. If the text is a refusal, `refusal` is filled instead of `content`."""

    content: tuple[TokenLogprob, ...]
    refusal: tuple[TokenLogprob, ...] = ()


@frozen
class LegacyLogprobs:
    """The four parallel arrays of the completion API. The entries of an echoed prompt's first token are `None`.
    `text_offset` is `None` if the vendor reported no usable offsets."""

    tokens: tuple[str, ...]
    token_logprobs: tuple[float | None, ...]
    top_logprobs: tuple[Mapping[str, float] | None, ...] | None
    text_offset: tuple[int, ...] | None


Logprobs = ContentLogprobs | LegacyLogprobs


CallKind = Literal["function", "custom"]
"""The kinds of tool calls: of a function with JSON arguments, or of OpenAI's custom tools with free text."""


@frozen
class ToolCall:
    """A complete tool call. `arguments` is the JSON text as the model wrote it, or the text for a custom tool.

    `extra` holds further fields of the call, such as `extra_content` with Gemini's thought signature.
    """

    id: str
    name: str
    arguments: str
    kind: CallKind = "function"
    extra: Mapping[str, JsonValue] | None = None


@frozen
class ToolCallDelta:
    """A delta of a streamed call. `index` counts the calls of the choice from 0 without gaps. The first delta has `id`
    and `name`."""

    index: int
    id: str | None = None
    name: str | None = None
    arguments: str = ""
    kind: CallKind = "function"
    extra: Mapping[str, JsonValue] | None = None


@frozen
class Extras:
    """The parts of a choice, or of a chunk, besides its text, reasoning and calls.

    `reasoning_details` are the blocks of reasoning in OpenRouter's form, each with `type`, `format` and `index`. In a
    stream, deltas of one block share `type` and `index`, and the signature comes in a delta of its own. `annotations`
    have OpenAI's form, with offsets in code points of the whole text. `images` have OpenRouter's form, `audio`
    OpenAI's. `message`, `choice` and `answer` hold fields without a common form, under the vendor's names, for the
    message, the choice and the whole response. `image_places` are, for each image, how many code points of the text of
    the choice or chunk come before it; images without a place follow the text.
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


@frozen
class Choice:
    """One finished candidate.

    `finish_reason` is a FinishReason, or the vendor's reason if none fits. `native_finish_reason` is the vendor's
    reason if it is more specific. `matched_stop` is the stop string or token id that ended the text, if the vendor
    reports it. `text` is the refusal if there is a refusal and no other text. `signature` is the signature that the
    vendor requires back with the text in the next turn.
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


@frozen
class NativeEvent:
    """An event of a stream in the client's own API, as the vendor sent it: its name and its JSON."""

    name: str
    data: bytes


@frozen
class Completion:
    """A complete response, with its choices sorted by index. `usage` is `None` only if the vendor sent none. `extra`
    holds fields of the whole response without a common form, under the vendor's names. `native` is the vendor's own
    body if that is in the client's API: the surface then returns it instead."""

    choices: tuple[Choice, ...]
    usage: Usage | None
    system_fingerprint: str | None = None
    service_tier: str | None = None
    extra: Mapping[str, JsonValue] | None = None
    native: bytes | None = None


@frozen
class Chunk:
    """The parts that were added to one choice.

    Exactly one chunk of each index has a `finish_reason`, with the `service_tier` of the whole response. Later chunks
    hold only `extras`. A chunk that holds only the extras of the response belongs to no choice.

    If the vendor uses the client's API, `native` is the vendor's event that this chunk was decoded from: the surface
    returns the event instead. If an event becomes several chunks, the first has it. An event without a meaning in the
    common form becomes a chunk that holds only the event.
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
"""The part of a choice that the deltas of a run belong to."""


@frozen
class NativeForm:
    """The form of a vendor's events in the client's own API: their name, and their JSON before and after a literal."""

    name: str
    before: bytes
    after: bytes


# The class is not frozen, because an object is made with nearly every read, and making a frozen object takes twice as
# long.
@dataclass(slots=True)
class TextRun:
    """Consecutive chunks of one choice that hold only one `part`, which is never empty: its text, its reasoning, or the
    arguments of the tool call with the number `call`.

    `literals` are the deltas as they are written between the quotes of JSON strings. Each is printable ASCII that needs
    no escape, except at the indices in `odd`, which maps them to the decoded deltas. `size` is the number of bytes in
    UTF-8. `characters` is the number of code points if the part is text, else 0. `detail` is the reasoning detail that
    each chunk of reasoning has with its own text. `native` is the form of the vendor's events for a client of the same
    API.
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
        """Yield the chunks of the run."""
        form = self.native
        for index, literal in enumerate(self.literals):
            chunk = self.chunk_of(self.odd[index] if index in self.odd else literal.decode())
            if form is not None:
                chunk = replace(chunk, native=NativeEvent(form.name, form.before + literal + form.after))
            yield chunk

    def chunk_of(self, text: str) -> Chunk:
        """Return the chunk of one delta, without the vendor's event."""
        index, fingerprint = self.index, self.system_fingerprint
        if self.part == "text":
            return Chunk(index, text, system_fingerprint=fingerprint)
        if self.part == "reasoning":
            detail = self.detail
            extras = None if detail is None else Extras(reasoning_details=({**detail, "text": text},))
            return Chunk(index, reasoning=text, extras=extras, system_fingerprint=fingerprint)
        delta = ToolCallDelta(self.call, arguments=text)
        return Chunk(index, tool_calls=(delta,), system_fingerprint=fingerprint)


def has_content(chunk: Chunk) -> bool:
    """Return whether a chunk holds content. Fields of a choice or of the whole response without a common form are no
    content: vendors send them before they generate."""
    extras = chunk.extras
    if extras is None and chunk.native is None:
        return True
    extras = extras or NO_EXTRAS
    in_extras = extras.reasoning_details or extras.annotations or extras.images or extras.audio or extras.message
    in_chunk = chunk.text or chunk.reasoning or chunk.refusal or chunk.tool_calls or chunk.signature or chunk.logprobs
    return bool(in_extras or in_chunk or chunk.finish_reason)


StreamEvent = Chunk | Usage
"""An event of a stream decoder. A later Usage replaces an earlier one: vendors that repeat it count cumulatively."""

StreamPart = StreamEvent | TextRun
"""An event, or a run of many chunks that are read and written together."""
