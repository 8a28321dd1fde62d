"""The content of a sampled request's span that the request's record does not have: the parameters, the finish reasons,
and the texts if the configuration allows them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from providers.completion import Choice, StreamEvent, Usage
from providers.unified_request import UnifiedRequest
from proxy.telemetry.observer_guard import OneGuard
from proxy.trace_context import MAX_FINISH_REASONS, NoteValue, SpanNotes
from proxy.tracing.content_messages import GatheredTexts, prompt_json, response_json
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
November 2026). Stop sequences are left out, because they are texts of the client."""

_WHOLE: Final = 2**63


def note_request(notes: SpanNotes, request: UnifiedRequest) -> None:
    """Record the parameters of a request, without its texts."""
    found: dict[str, NoteValue] = {}
    for field_name, given in request.params.items():
        name = PARAMS.get(field_name)
        if name is not None:
            # Most values are floats, which need no check.
            value = given if type(given) is float else _plain(given)
            if value is not None:
                found[name] = value
    notes.params = found


def note_prompt(notes: SpanNotes, request: UnifiedRequest) -> None:
    """Record the texts of a request, if the configuration allows them. The texts have passed the guards, so a text that
    a guard removed or refused is in no span."""
    if notes.keeps_content:
        notes.prompt = prompt_json(request.prompt)


def _plain(value: object) -> NoteValue | None:
    """Return a value that OTLP can carry: no integer beyond 64 bits, no long text."""
    if isinstance(value, bool | float) or (isinstance(value, int) and -_WHOLE <= value < _WHOLE):
        return value
    return value[:64] if isinstance(value, str) else None


def note_response(notes: SpanNotes, choices: Sequence[Choice]) -> None:
    """Record why the choices of a non-streaming response ended."""
    if len(choices) == 1:  # nearly all responses have one choice; this avoids a generator
        notes.finish_reasons = (choices[0].finish_reason,)
    else:
        notes.finish_reasons = tuple(choice.finish_reason for choice in choices[:MAX_FINISH_REASONS])
    if notes.keeps_content:
        notes.answer = response_json(choices)


def noted_stream(notes: SpanNotes, stream: Stream, guard: OneGuard) -> Stream:
    """Return the stream; if the config file allows it, its texts are recorded while they arrive. Each chunk of such a
    stream is read separately, which doubles the gateway's cost of the stream. `guard` reports a fault of the
    recording."""
    return NotedStream(stream, notes, guard) if notes.keeps_content else stream


@dataclass(slots=True, eq=False)
class NotedStream:
    """A stream whose texts are recorded until a fault in the recording. It implements
    `proxy.upstream.vendor_stream.Stream`."""

    _stream: Stream
    _notes: SpanNotes
    _guard: OneGuard
    _texts: GatheredTexts = field(default_factory=GatheredTexts)

    @property
    def over(self) -> bool:
        """Whether the stream has ended."""
        return self._stream.over

    def first(self) -> Iterator[StreamEvent]:
        """Yield the first events, and record their texts."""
        return self._noted(self._stream.first())

    async def wait(self) -> None:
        """Wait for further events."""
        await self._stream.wait()

    def take(self) -> Iterator[StreamEvent]:
        """Yield the events that have arrived, and record their texts."""
        return self._noted(self._stream.take())

    def conclude(self) -> Iterator[StreamEvent]:
        """Yield the last events, and record their texts."""
        return self._noted(self._stream.conclude())

    async def finish(self) -> None:
        """Finish the stream."""
        await self._stream.finish()

    def close(self) -> None:
        """Close the stream."""
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
