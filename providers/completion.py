"""The common completion shape: what every dialect decodes into and every surface renders from.

Never holds a vendor's field name, an id or a model name made by the gateway, or a wire frame.

Usage has OpenAI's meaning on every dialect: `prompt_tokens` includes cached tokens, `completion_tokens` includes
reasoning.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

FinishReason = Literal["stop", "length", "content_filter", "tool_calls"]
"""The ends that every vendor's words are mapped to. An end that is none of them keeps the vendor's own word."""

FLOOR_LOGPROB = -9999.0
"""OpenAI's own marker for "very unlikely"; stands for -inf, which JSON cannot carry."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts of one answer; detail members are integers under OpenAI's names and only those the vendor gave.

    `estimated` says that at least one number is the gateway's guess, because the vendor gave none.
    """

    prompt_tokens: int
    completion_tokens: int
    prompt_details: Mapping[str, int] | None = None
    completion_details: Mapping[str, int] | None = None
    estimated: bool = False

    @property
    def total_tokens(self) -> int:
        """Prompt and completion together."""
        return self.prompt_tokens + self.completion_tokens


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """One token with its log probability; `bytes` are its UTF-8 bytes, None where the vendor did not say."""

    token: str
    logprob: float
    bytes: tuple[int, ...] | None = None
    top: tuple["TokenLogprob", ...] = ()


@dataclass(frozen=True, slots=True)
class ContentLogprobs:
    """Chat's form: a list of tokens; `refusal` is filled instead of `content` when the text is a refusal."""

    content: tuple[TokenLogprob, ...]
    refusal: tuple[TokenLogprob, ...] = ()


@dataclass(frozen=True, slots=True)
class LegacyLogprobs:
    """The completion API's four parallel arrays; entries of an echoed prompt's first token are None.

    `text_offset` is None where the vendor gave none that can be used.
    """

    tokens: tuple[str, ...]
    token_logprobs: tuple[float | None, ...]
    top_logprobs: tuple[Mapping[str, float] | None, ...] | None
    text_offset: tuple[int, ...] | None


Logprobs = ContentLogprobs | LegacyLogprobs


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A whole function call; `arguments` is the JSON text as the model wrote it."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """A piece of a streamed call; `index` is dense from 0 within the choice, `id` and `name` come with the first
    piece."""

    index: int
    id: str | None = None
    name: str | None = None
    arguments: str = ""


@dataclass(frozen=True, slots=True)
class Choice:
    """One finished candidate.

    `finish_reason` is a FinishReason, or the vendor's own word for an end that is none of them;
    `native_finish_reason` is the vendor's word wherever it says more than one of those. `matched_stop` is the stop
    string (or token id) that ended the text, where the vendor tells. `text` is the refusal when there is one and no
    other text. `signature` is what a vendor wants back with the text in the next turn, and means nothing to others.
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


@dataclass(frozen=True, slots=True)
class Completion:
    """A whole answer, choices sorted by index; `usage` is None only where the vendor sent none."""

    choices: tuple[Choice, ...]
    usage: Usage | None
    system_fingerprint: str | None = None
    service_tier: str | None = None


@dataclass(frozen=True, slots=True)
class Chunk:
    """What one choice gained. Exactly one chunk of each index carries a `finish_reason`, and none follows it; with it
    comes the `service_tier`, which is the whole answer's."""

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


StreamEvent = Chunk | Usage
"""What a stream decoder yields. A later Usage replaces an earlier one: vendors that repeat it count cumulatively."""
