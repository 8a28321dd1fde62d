"""The unified request, into which every surface parses and from which every dialect encodes.

Sources: the fields are the union of the four completion APIs (OpenAI OpenAPI 2.3.0 `CreateCompletionRequest`,
`scale-gp` 0.1.0a58, `fireworks-ai` 1.2.28, VMware Private AI Services 9.1.1), read in November 2026.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import field, replace
from enum import StrEnum
from typing import ClassVar, Literal, TypedDict, cast

from providers.frozen_record import frozen
from providers.json_types import JsonObject, JsonValue


class Operation(StrEnum):
    """The kinds of generation. The value is the key of a profile's `paths`."""

    COMPLETIONS = "completions"
    CHAT = "chat"

    # Enum's own hash is a function in Python, and a request makes a dozen lookups by its operation.
    __hash__ = str.__hash__


class Task(StrEnum):
    """The tasks of models besides generating text. The value is the key of a profile's `tasks`."""

    EMBEDDINGS = "embeddings"
    RERANK = "rerank"
    MODERATIONS = "moderations"
    TRANSCRIPTIONS = "transcriptions"
    SPEECH = "speech"
    IMAGES = "images"


AnyOperation = Operation | Task
"""The operation of an upstream endpoint."""


@frozen
class TextPrompt:
    """One or more prompts as text. Choices are ordered by prompt. `listed` is true if they came as a list; a list of
    one means the same as the prompt alone."""

    texts: tuple[str, ...]
    listed: bool = field(default=False, compare=False)

    @property
    def count(self) -> int:
        """The number of prompts."""
        return len(self.texts)


@frozen
class TokenPrompt:
    """One or more prompts as token ids of the model's own tokenizer. `listed` is as in TextPrompt."""

    sequences: tuple[tuple[int, ...], ...]
    listed: bool = field(default=False, compare=False)

    @property
    def count(self) -> int:
        """The number of prompts."""
        return len(self.sequences)


PLAIN_ROLES = ("system", "user", "assistant")
"""The roles that every vendor of the OpenAI family has for messages that hold only a text."""

INSTRUCTION_ROLES = ("system", "developer")
"""The roles of messages that instruct the model."""


@frozen
class ChatPrompt:
    """A conversation in OpenAI's chat form. Each message is a JSON object with a `role`.

    If `plain`, each message is known to have only a role of PLAIN_ROLES and a non-empty text as its `content`. If
    `without_parts`, each message is known not to have a list of parts as its `content`. Code need not search such
    messages. `tokens` is the estimated number of tokens of the messages after they have been freed.
    """

    count: ClassVar[int] = 1
    messages: tuple[JsonObject, ...]
    plain: bool = field(default=False, compare=False)
    tokens: int | None = field(default=None, compare=False)
    without_parts: bool = field(default=False, compare=False)

    def changed_by(self, change: "ChangeMessages") -> "ChatPrompt":
        """Return the conversation with the messages that `change` returns. The new messages must agree with `plain` and
        `without_parts`. Return this object if `change` returns the same tuple. A deferred conversation is changed when
        it is first read."""
        changed = change(self.messages)
        return self if changed is self.messages else ChatPrompt(changed, self.plain, None, self.without_parts)

    def free_messages(self, tokens: int) -> None:
        """Free the memory of the messages. Called once the content of a response has begun: nothing is sent again then,
        and a stream may last for minutes. After that, the messages would be read only to estimate a usage that the
        vendor does not report."""
        object.__setattr__(self, "tokens", tokens)
        object.__setattr__(self, "messages", ())


ChangeMessages = Callable[[tuple[JsonObject, ...]], tuple[JsonObject, ...]]
"""Returns messages in another form, or the same tuple. It has no effects, and may be called in any thread."""


class _DeferredPrompt(ChatPrompt):
    """A conversation whose messages are made when they are first read, and stay the same from then on. The field
    `messages` is unset until then, so that a complete conversation has no extra cost."""

    __slots__ = ("_made", "_make")

    _make: Callable[[], tuple[JsonObject, ...]]
    _made: dict[str, tuple[JsonObject, ...]]

    def __getattr__(self, name: str) -> tuple[JsonObject, ...]:
        """Make the messages: Python calls this method for a field that is unset."""
        if name != "messages":
            raise AttributeError(name)
        # Calls may be planned in several threads. Two may make the messages, but both see the ones stored first.
        made = self._made.setdefault(name, self._make())
        object.__setattr__(self, "messages", made)
        object.__setattr__(self, "_make", tuple)
        return made

    def changed_by(self, change: ChangeMessages) -> ChatPrompt:
        return deferred_prompt(lambda: change(self.messages), self.plain, self.without_parts)

    def __eq__(self, other: object) -> bool:
        """Compare as ChatPrompt does."""
        return isinstance(other, ChatPrompt) and self.messages == other.messages

    __hash__ = ChatPrompt.__hash__

    def free_messages(self, tokens: int) -> None:
        super().free_messages(tokens)
        object.__setattr__(self, "_make", tuple)
        self._made.clear()


def deferred_prompt(
    make: Callable[[], tuple[JsonObject, ...]], plain: bool = False, without_parts: bool = False
) -> ChatPrompt:
    """Return a conversation whose messages `make` returns when they are first read. `make` may be called in any thread,
    and in several at once. It must not raise or have effects, and must not depend on state that changes. `plain` and
    `without_parts` are as in ChatPrompt."""
    prompt = object.__new__(_DeferredPrompt)
    fields = {"_make": make, "_made": {}, "plain": plain, "tokens": None, "without_parts": without_parts}
    for name, value in fields.items():
        object.__setattr__(prompt, name, value)
    return prompt


Prompt = TextPrompt | TokenPrompt | ChatPrompt


class NativeApi(StrEnum):
    """APIs that both clients and vendors use, so that a request can be sent unchanged."""

    MESSAGES = "messages"  # Anthropic's
    RESPONSES = "responses"  # OpenAI's


@frozen
class NativeRequest:
    """A client's own body, for targets with the same API. Fields that the gateway does not know are sent too. `body` is
    read-only, and holds no fields of the gateway's own. `headers` are the client's headers that belong to the request
    in this API, such as `anthropic-beta`, under lower-case names."""

    api: NativeApi
    body: JsonObject
    headers: Mapping[str, str] = field(default_factory=dict)

    def without(self, names: Collection[str]) -> "NativeRequest":
        """Return the request without fields of these names."""
        return replace(self, body={name: value for name, value in self.body.items() if name not in names})


@frozen
class TranslationLosses:
    """The content of a request in another API that the unified fields cannot express. These losses only matter if the
    request is not sent unchanged.

    `binding` maps each field that no other API supports to a description of it, which becomes the subject of an error's
    sentence. `left_out` names fields that promise nothing about the response. `instead` maps a param to the params with
    nearly the same meaning that may replace it. If they are empty, the param may be dropped. `native_left_out` names
    fields that are removed from the client's own body if it is sent. `display` is the client's setting for how
    reasoning is shown. `unsaid` names params whose value the client left to the model, so that the translation chose a
    value for any model.
    """

    binding: Mapping[str, str]
    left_out: tuple[str, ...] = ()
    instead: Mapping[str, JsonObject] = field(default_factory=dict)
    native_left_out: tuple[str, ...] = ()
    display: str | None = None
    unsaid: frozenset[str] = frozenset()


DISPLAY = "thinking.display"
"""The name of `display` in `TranslationLosses.left_out`."""


GuidedKind = Literal["json", "regex", "choice", "grammar"]
ContextBehavior = Literal["truncate", "error"]


SHORTEST_PROMPTS: Mapping[Operation, Prompt] = {
    Operation.COMPLETIONS: TextPrompt(("a",)),
    Operation.CHAT: ChatPrompt(({"role": "user", "content": "a"},)),
}
"""By operation: a prompt for requests that only test the capabilities of a deployment."""


def one_prompt(prompt: Prompt, number: int) -> Prompt:
    """Return the prompt at an index as a prompt of its own."""
    match prompt:
        case TextPrompt(texts):
            return TextPrompt((texts[number],))
        case TokenPrompt(sequences):
            return TokenPrompt((sequences[number],))
        case ChatPrompt():
            return prompt


@frozen
class LogprobsWanted:
    """A request for log probabilities.

    `top` is how many alternatives to list per position (0: the sampled token only). `shape` is the form that the
    client's field name implies: four arrays (`legacy`) or a `content` list (`content`).
    """

    top: int
    shape: Literal["legacy", "content"]


@frozen
class Guided:
    """One constraint on the generated text: the `guided_*` field that remains after aliases have been resolved. `value`
    is a JSON Schema object for `json`, a list of at least one string for `choice`, a string for the others."""

    kind: GuidedKind
    value: JsonObject | tuple[str, ...] | str

    @property
    def field(self) -> str:
        """The unified field's name, for errors and headers."""
        return f"guided_{self.kind}"

    @property
    def schema(self) -> JsonObject:
        """The JSON Schema of a constraint of the kind `json`. Raises TypeError for the other kinds."""
        if not isinstance(self.value, dict):
            raise TypeError(f"{self.field} has no schema")
        return self.value

    @property
    def choices(self) -> tuple[str, ...]:
        """The strings of a constraint of the kind `choice`. Raises TypeError for the other kinds."""
        if not isinstance(self.value, tuple):
            raise TypeError(f"{self.field} has no choices")
        return self.value

    @property
    def value_text(self) -> str:
        """The text of a constraint of the kind `regex` or `grammar`. Raises TypeError for the other kinds."""
        if not isinstance(self.value, str):
            raise TypeError(f"{self.field} has no text")
        return self.value


class Params(TypedDict, total=False):
    """The fields besides model, prompt and stream. A key is only present if the client or the surface set it.

    Values are validated and canonical: aliases are resolved, and a single stop is a tuple of one. Params are read-only:
    the same object is used by every attempt, so a dialect copies the values that it changes.
    """

    max_tokens: int
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
    stop: tuple[str, ...]
    include_stop_str_in_output: bool
    logprobs: LogprobsWanted
    echo: bool
    echo_last: int
    suffix: str
    logit_bias: dict[str, float]
    seed: int
    user: str
    images: tuple[tuple[str, ...], ...]  # for each prompt, its images as data URIs
    response_format: JsonObject
    guided: Guided
    tools: list[JsonObject]
    tool_choice: str | JsonObject
    web_search_options: JsonObject
    parallel_tool_calls: bool
    audio: JsonObject
    modalities: list[str]
    prediction: JsonObject
    prompt_cache_key: str
    prompt_cache_isolation_key: str
    metadata: JsonObject
    prompt_cache_retention: str
    safety_identifier: str
    store: bool
    service_tier: str
    reasoning_effort: str | int | bool
    verbosity: str
    reasoning_history: str
    thinking: JsonObject
    raw_output: bool
    return_token_ids: bool
    perf_metrics_in_response: bool
    speculation: JsonValue
    context_length_exceeded_behavior: ContextBehavior


@frozen
class StreamOptions:
    """The client's options for a stream."""

    include_usage: bool = False
    include_obfuscation: bool = False
    continuous_usage_stats: bool = False


NO_STREAM_OPTIONS = StreamOptions()


@frozen
class UnifiedRequest:
    """One client request, parsed once.

    `model` is the client's string unchanged. `injected` names the params that the surface set by its own defaults; a
    dialect may leave them out if the model would reject them. `unknown` holds the fields outside the union. `timeout`
    is `inference_timeout` in seconds. `extra_params` and `extra_headers` are the client's `inference_extra_params` and
    `inference_extra_headers`, checked for protected names. If `legacy_calls`, the client sent its tools as `functions`,
    and reads `function_call`. `native` is the client's own body, if it is in an API that some vendors have; the other
    fields then hold the same request for the other vendors, except for `losses`. If `shortens`, the oldest turns are
    left out if the conversation does not fit.
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
    legacy_calls: bool = False
    native: NativeRequest | None = None
    losses: TranslationLosses | None = None
    shortens: bool = False

    def without(self, names: Collection[str]) -> "UnifiedRequest":
        """Return the request without fields of these names."""
        params = {key: value for key, value in self.params.items() if key not in names}
        unknown = {key: value for key, value in (self.unknown or {}).items() if key not in names}
        native = self.native and self.native.without(names)
        return replace(self, params=cast(Params, params), unknown=unknown or None, native=native)

    @property
    def user(self) -> str | None:
        """The end user that the client names, in either of OpenAI's fields."""
        return self.params.get("user") or self.params.get("safety_identifier")

    @property
    def passes_unknown(self) -> bool:
        """Whether fields that the gateway does not know are sent too. They may change the form of the response."""
        return bool(self.extra_params or self.extra_headers or self.unknown or self.native)

    @property
    def choices(self) -> int:
        """The number of choices that the response must have: prompts times `n`."""
        return self.prompt.count * self.params.get("n", 1)


MAX_STOPS = 32
"""The most stop strings of a request. The four APIs document 4, and their clients send 10 (Continue). The gateway
detects the stops that a vendor does not accept."""
