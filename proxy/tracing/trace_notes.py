"""What the span of a sampled request says besides the request's record: what was asked, why it ended, and the texts
where the table allows them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from providers.completion import Choice, StreamEvent, Usage
from providers.unified_request import UnifiedRequest
from proxy.telemetry.observer_guard import OneGuard
from proxy.trace_context import MAX_FINISH_REASONS, NoteValue, SpanNotes
from proxy.tracing.content_messages import GatheredTexts, answer_json, prompt_json
from proxy.upstream.vendor_stream import Stream

PARAMS: Final[Mapping[str, str]] = {
    "max_tokens": "gen_ai.request.max_tokens",
    "temperature": "gen_ai.request.temperature",
    "top_p": "gen_ai.request.top_p",
    "top_k": "gen_ai.request.top_k",
    "frequency_penalty": "gen_ai.request.frequency_penalty",
    "presence_penalty": "gen_ai.request.presence_penalty",
    "seed": "gen_ai.request.seed",
    "n": "gen_ai.request.choice.count",
    "reasoning_effort": "gen_ai.request.reasoning.level",
}
"""The attributes of a request's fields, by OpenTelemetry's conventions for generative AI (semantic-conventions-genai,
November 2026). Not its stop sequences, which are texts of the client's."""

_WHOLE: Final = 2**63


def note_request(notes: SpanNotes, request: UnifiedRequest) -> None:
    """Note what a request asks for besides its texts."""
    found: dict[str, NoteValue] = {}
    for field_name, asked in request.params.items():
        name = PARAMS.get(field_name)
        if name is not None:
            # Most values are floats, which need no look.
            value = asked if type(asked) is float else _plain(asked)
            if value is not None:
                found[name] = value
    notes.params = found


def note_prompt(notes: SpanNotes, request: UnifiedRequest) -> None:
    """Note the texts of a request, where the table allows them. They have passed the guards:
    what a guard took out of a request, or refused, is in no span."""
    if notes.keeps_content:
        notes.prompt = prompt_json(request.prompt)


def _plain(value: object) -> NoteValue | None:
    """Return a value that OTLP can carry: no integer beyond 64 bits, no long text."""
    if isinstance(value, bool | float) or (isinstance(value, int) and -_WHOLE <= value < _WHOLE):
        return value
    return value[:64] if isinstance(value, str) else None


def note_answer(notes: SpanNotes, choices: Sequence[Choice]) -> None:
    """Note why the choices of a whole answer ended."""
    if len(choices) == 1:  # of nearly all; without a generator
        notes.finish_reasons = (choices[0].finish_reason,)
    else:
        notes.finish_reasons = tuple(choice.finish_reason for choice in choices[:MAX_FINISH_REASONS])
    if notes.keeps_content:
        notes.answer = answer_json(choices)


def noted_stream(notes: SpanNotes, stream: Stream, guard: OneGuard) -> Stream:
    """Return the stream, whose texts are noted as they come if the config file allows it. Then each chunk is read by
    itself, which costs the gateway as much again. `guard` reports a fault in that."""
    return NotedStream(stream, notes, guard) if notes.keeps_content else stream


@dataclass(slots=True, eq=False)
class NotedStream:
    """A stream whose texts are noted until a fault in that. See `proxy.upstream.vendor_stream.Stream`."""

    _stream: Stream
    _notes: SpanNotes
    _guard: OneGuard
    _texts: GatheredTexts = field(default_factory=GatheredTexts)

    @property
    def over(self) -> bool:
        """See Stream."""
        return self._stream.over

    def first(self) -> Iterator[StreamEvent]:
        """See Stream."""
        return self._noted(self._stream.first())

    async def wait(self) -> None:
        """See Stream."""
        await self._stream.wait()

    def take(self) -> Iterator[StreamEvent]:
        """See Stream."""
        return self._noted(self._stream.take())

    def conclude(self) -> Iterator[StreamEvent]:
        """See Stream."""
        return self._noted(self._stream.conclude())

    async def finish(self) -> None:
        """See Stream."""
        await self._stream.finish()

    def close(self) -> None:
        """See Stream."""
        self._stream.close()

    def _noted(self, events: Iterator[StreamEvent]) -> Iterator[StreamEvent]:
        texts, guard = self._texts, self._guard
        try:
            for event in events:
                if not isinstance(event, Usage):
                    guard.call(texts.add, event)
                yield event
        finally:
            guard.call(self._write)

    def _write(self) -> None:
        if self._texts.fresh:
            self._notes.answer = self._texts.json()
