"""Collects a stream into a non-streaming response, and turns a non-streaming response into a stream."""

from collections.abc import Iterator, Mapping

from providers.completion import (
    CallKind,
    Choice,
    Chunk,
    Completion,
    Logprobs,
    StreamEvent,
    ToolCall,
    ToolCallDelta,
    Usage,
)
from providers.emulation.join_extras import GrowingExtras, extras_of, overlay
from providers.emulation.logprob_slices import join_logprobs
from providers.json_types import JsonObject, JsonValue


def to_chunks(completion: Completion) -> Iterator[StreamEvent]:
    """Yield one chunk for each choice of a completion, with the choice's finish reason, and then the usage."""
    for choice in completion.choices:
        yield Chunk(
            index=choice.index,
            text=choice.text,
            finish_reason=choice.finish_reason,
            native_finish_reason=choice.native_finish_reason,
            logprobs=choice.logprobs,
            refusal=choice.refusal,
            reasoning=choice.reasoning,
            tool_calls=tuple(
                [
                    ToolCallDelta(number, call.id, call.name, call.arguments, call.kind, call.extra)
                    for number, call in enumerate(choice.tool_calls)
                ]
            ),
            matched_stop=choice.matched_stop,
            system_fingerprint=completion.system_fingerprint,
            signature=choice.signature,
            service_tier=completion.service_tier,
            extras=extras_of(completion, choice),
        )
    if completion.usage is not None:
        yield completion.usage


class Gatherer:
    """Collects the stream of a call for `expected` choices into a completion."""

    __slots__ = ("_choices", "_expected", "_extra", "_fingerprint", "_tier", "_usage")

    def __init__(self, expected: int) -> None:
        self._expected = expected
        self._choices: dict[int, _Growing] = {}
        self._usage: Usage | None = None
        self._fingerprint: str | None = None
        self._tier: str | None = None
        self._extra: JsonObject = {}

    def add(self, event: StreamEvent) -> None:
        """Add the next event."""
        if isinstance(event, Usage):
            self._usage = event
            return
        growing = self._choices.get(event.index)
        if growing is None:
            growing = self._choices[event.index] = _Growing()
        growing.add(event)
        if event.system_fingerprint is not None:
            self._fingerprint = event.system_fingerprint
        if event.service_tier is not None:
            self._tier = event.service_tier
        if event.extras is not None:
            overlay(self._extra, event.extras.answer)

    @property
    def usage(self) -> Usage | None:
        """The usage that the stream has reported so far."""
        return self._usage

    def completion(self) -> Completion:
        """Return the completion. Raises ValueError that names a choice that never finished or was not requested."""
        if surplus := sorted(index for index in self._choices if not 0 <= index < self._expected):
            raise ValueError(f"choice {surplus[0]} was not requested, {self._expected} were")
        choices = [self._choices.get(index, _Growing()).choice(index) for index in range(self._expected)]
        return Completion(tuple(choices), self._usage, self._fingerprint, self._tier, self._extra or None)


class _Growing:
    """One unfinished choice. A text that only repeats the refusal is collected separately from other text beside a
    refusal."""

    __slots__ = (
        *("_calls", "_extras", "_last", "_length", "_logprobs", "_reasoning", "_refusal", "_said", "_signature"),
        "_texts",
    )

    def __init__(self) -> None:
        self._length = 0
        self._texts: list[str] = []
        self._said: list[str] = []
        self._refusal: list[str] = []
        self._reasoning: list[str] = []
        self._logprobs: list[Logprobs] = []
        self._calls: dict[int, _GrowingCall] = {}
        self._last = Chunk()
        self._extras: GrowingExtras | None = None
        self._signature: str | None = None

    def add(self, chunk: Chunk) -> None:
        """Add a chunk."""
        (self._said if chunk.text == chunk.refusal else self._texts).append(chunk.text)
        if chunk.refusal is not None:
            self._refusal.append(chunk.refusal)
        if chunk.reasoning is not None:
            self._reasoning.append(chunk.reasoning)
        if chunk.logprobs is not None:
            self._logprobs.append(chunk.logprobs)
        for delta in chunk.tool_calls:
            self._calls.setdefault(delta.index, _GrowingCall()).add(delta)
        if chunk.signature is not None:
            self._signature = chunk.signature
        if chunk.extras is not None:
            if self._extras is None:
                self._extras = GrowingExtras()
            self._extras.add(chunk.extras, self._length, len(chunk.text))
        self._length += len(chunk.text)
        if chunk.finish_reason is not None:
            self._last = chunk

    def choice(self, index: int) -> Choice:
        """Return the choice. Raises ValueError when it never finished."""
        finish_reason = self._last.finish_reason
        if finish_reason is None:
            raise ValueError(f"choice {index} never finished")
        return Choice(
            index=index,
            text="".join(self._texts) or "".join(self._said),
            finish_reason=finish_reason,
            native_finish_reason=self._last.native_finish_reason,
            logprobs=join_logprobs(self._logprobs),
            refusal="".join(self._refusal) if self._refusal else None,
            reasoning="".join(self._reasoning) if self._reasoning else None,
            tool_calls=tuple([self._calls[number].whole(index, number) for number in sorted(self._calls)]),
            matched_stop=self._last.matched_stop,
            signature=self._signature,
            extras=None if self._extras is None else self._extras.whole(self._length),
        )


class _GrowingCall:
    __slots__ = ("_arguments", "_extra", "_id", "_kind", "_name")

    def __init__(self) -> None:
        self._id: str | None = None
        self._name: str | None = None
        self._kind: CallKind = "function"
        self._extra: Mapping[str, JsonValue] | None = None
        self._arguments: list[str] = []

    def add(self, delta: ToolCallDelta) -> None:
        """Add a delta. The first one has the id, the name and the kind."""
        self._kind = delta.kind if self._id is None else self._kind
        if delta.extra:
            self._extra = {**(self._extra or {}), **delta.extra}
        self._id = delta.id if self._id is None else self._id
        self._name = delta.name if self._name is None else self._name
        self._arguments.append(delta.arguments)

    def whole(self, choice: int, number: int) -> ToolCall:
        """Return the call. Raises ValueError if it has no id or no function name."""
        if self._id is None or self._name is None:
            raise ValueError(f"tool call {number} of choice {choice} has no id or no name")
        return ToolCall(self._id, self._name, "".join(self._arguments), self._kind, self._extra)
