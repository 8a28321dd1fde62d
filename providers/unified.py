"""The unified request: what every surface parses into and every dialect encodes from.

Never holds a vendor's field name, a default of one surface, or anything about routing.

Sources: the field table is the union of the four completion APIs (OpenAI OpenAPI 2.3.0 `CreateCompletionRequest`,
`scale-gp` 0.1.0a58, `fireworks-ai` 1.2.28, VMware Private AI Services 9.1.1), read in November 2026.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, TypedDict

JsonValue = None | bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"]
JsonObject = dict[str, JsonValue]


class Operation(StrEnum):
    """The two kinds of generation; the value names the profile's path entry."""

    COMPLETIONS = "completions"
    CHAT = "chat"


@dataclass(frozen=True, slots=True)
class TextPrompt:
    """One or more prompts as text; several give prompt-major choices. `listed` says that they came as a list, which
    for one alone asks the same."""

    texts: tuple[str, ...]
    listed: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class TokenPrompt:
    """One or more prompts as token ids of the model's own tokenizer; `listed` as in TextPrompt."""

    sequences: tuple[tuple[int, ...], ...]
    listed: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class ChatPrompt:
    """A conversation in OpenAI's chat shape; each message is a JSON object with a `role`."""

    messages: tuple[JsonObject, ...]


Prompt = TextPrompt | TokenPrompt | ChatPrompt


def one_prompt(prompt: Prompt, number: int) -> Prompt:
    """One of several prompts, by its place."""
    match prompt:
        case TextPrompt(texts):
            return TextPrompt((texts[number],))
        case TokenPrompt(sequences):
            return TokenPrompt((sequences[number],))
        case ChatPrompt():
            return prompt


@dataclass(frozen=True, slots=True)
class LogprobsWanted:
    """Log probabilities were asked for.

    `top` is how many alternatives are listed per position (0 = the sampled token only); `shape` is the form the
    client's spelling implies: four arrays (`legacy`) or a `content` list (`content`).
    """

    top: int
    shape: Literal["legacy", "content"]


@dataclass(frozen=True, slots=True)
class Guided:
    """One constraint on the generated text: the surviving `guided_*` field.

    `value` is a JSON Schema object for `json`, a list of at least one string for `choice`, a string for the others.
    """

    kind: Literal["json", "regex", "choice", "grammar"]
    value: JsonObject | tuple[str, ...] | str

    @property
    def field(self) -> str:
        """The unified field's name, for errors and headers."""
        return f"guided_{self.kind}"

    @property
    def value_text(self) -> str:
        """The value of a `regex` or `grammar`. Raises TypeError for the other kinds."""
        if not isinstance(self.value, str):
            raise TypeError(f"{self.field} carries no text")
        return self.value


class Params(TypedDict, total=False):
    """Every field besides model, prompt and stream; a key is present only when the client (or the surface) set it.

    Values are validated and canonical: aliases are resolved, a single stop is a tuple of one. Read-only: the same
    object serves every attempt, so a dialect copies what it changes.
    """

    max_tokens: int  # also max_completion_tokens, max_new_tokens
    temperature: float
    top_p: float
    top_k: int  # -1 and 0 mean off
    min_p: float
    typical_p: float
    repetition_penalty: float
    presence_penalty: float
    frequency_penalty: float
    mirostat_lr: float
    mirostat_target: float
    ignore_eos: bool
    n: int
    best_of: int
    stop: tuple[str, ...]  # also stop_sequences
    include_stop_str_in_output: bool
    logprobs: LogprobsWanted  # also top_logprobs, return_token_log_probs
    echo: bool
    echo_last: int
    suffix: str
    logit_bias: dict[str, float]
    seed: int
    user: str
    images: tuple[tuple[str, ...], ...]  # per prompt, data URIs
    response_format: JsonObject
    guided: Guided
    tools: list[JsonObject]
    tool_choice: str | JsonObject
    parallel_tool_calls: bool
    audio: JsonObject
    modalities: list[str]
    prediction: JsonObject
    prompt_cache_key: str
    prompt_cache_isolation_key: str
    metadata: JsonObject
    service_tier: str
    reasoning_effort: str | int | bool
    reasoning_history: str
    thinking: JsonObject
    raw_output: bool
    return_token_ids: bool
    perf_metrics_in_response: bool
    speculation: JsonValue
    context_length_exceeded_behavior: Literal["truncate", "error"]


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """What the client asked of the stream's usage accounting; all false when it asked nothing."""

    include_usage: bool = False
    include_obfuscation: bool = False
    continuous_usage_stats: bool = False


NO_STREAM_OPTIONS = StreamOptions()


@dataclass(frozen=True, slots=True)
class UnifiedRequest:
    """One client request, parsed once.

    `model` is the client's string, stripped of nothing; `injected` names the params the surface filled in as its own
    default, which a dialect may leave out where the model would reject them. `unknown` holds the fields outside the
    union. `timeout` is `inference_timeout` in seconds. `extra_params` and `extra_headers` are the client's
    `inference_extra_params` and `inference_extra_headers`, checked for protected names.
    """

    operation: Operation
    model: str
    prompt: Prompt
    params: Params
    stream: bool = False
    stream_options: StreamOptions = NO_STREAM_OPTIONS
    injected: frozenset[str] = frozenset()
    unknown: Mapping[str, JsonValue] | None = None
    timeout: float | None = None
    extra_params: Mapping[str, JsonValue] | None = None
    extra_headers: Mapping[str, str] | None = None

    @property
    def prompts(self) -> int:
        """How many prompts the request carries; a conversation counts as one."""
        prompt = self.prompt
        if isinstance(prompt, TextPrompt):
            return len(prompt.texts)
        return len(prompt.sequences) if isinstance(prompt, TokenPrompt) else 1

    @property
    def choices(self) -> int:
        """How many choices the answer must have: prompts times n."""
        return self.prompts * self.params.get("n", 1)


MAX_STOPS = 32
"""Stop strings of a request. The four APIs document 4 and their clients send 10 (Continue); what a vendor does not
take, the gateway looks for itself."""

PROTECTED_PARAMS = frozenset({"model", "stream", "stream_options", "messages", "prompt", "n"})
"""What `inference_extra_params` may never touch (design 1.3, rule 7)."""


def _equals(*neutral: object) -> Callable[[object], bool]:
    return lambda value: value in neutral


def _empty(value: object) -> bool:
    return not value


_NEUTRAL: dict[str, Callable[[object], bool]] = {
    "n": _equals(1),
    "best_of": _equals(0, 1),
    "echo": _equals(False),
    "echo_last": _equals(0),
    "top_p": _equals(1),
    "top_k": _equals(-1, 0),
    "min_p": _equals(0),
    "typical_p": _equals(1),
    "presence_penalty": _equals(0),
    "frequency_penalty": _equals(0),
    "repetition_penalty": _equals(1),
    "ignore_eos": _equals(False),
    "include_stop_str_in_output": _equals(False),
    "suffix": _empty,
    "logit_bias": _empty,
    "stop": _empty,
    "tools": _empty,
    "images": lambda value: isinstance(value, tuple) and not any(value),
    "metadata": _empty,
    "response_format": _equals({"type": "text"}),
    "tool_choice": _equals("none"),
    "parallel_tool_calls": _equals(True),
    "modalities": _equals(["text"]),
    "raw_output": _equals(False),
    "return_token_ids": _equals(False),
    "perf_metrics_in_response": _equals(False),
}


def is_neutral(field: str, value: object) -> bool:
    """Whether `value` asks for nothing, so that a deployment without the field honours it by doing nothing.

    LangChain and vLLM's benchmark send neutral values always; refusing them would break both.
    """
    test = _NEUTRAL.get(field)
    return test is not None and test(value)
