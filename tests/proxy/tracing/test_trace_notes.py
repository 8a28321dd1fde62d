"""The notes about a request besides its record, and that its texts are noted only if they are wanted."""

from unittest.mock import patch

from providers.completion import Choice, Chunk, StreamEvent, Usage
from providers.unified_request import Operation, Params, TextPrompt, UnifiedRequest
from proxy.telemetry.metrics import Metrics
from proxy.telemetry.observer_guard import ObserverGuard, OneGuard
from proxy.trace_context import MAX_FINISH_REASONS, SpanNotes
from proxy.tracing.content_messages import GatheredTexts
from proxy.tracing.trace_notes import note_prompt, note_request, note_response, noted_stream
from tests.support.looped import looped

PARAMS: Params = {"max_tokens": 7, "temperature": 0.5, "n": 2, "reasoning_effort": "x" * 100, "seed": 2**70}
REQUEST = UnifiedRequest(Operation.COMPLETIONS, "m", TextPrompt(("canary",)), {**PARAMS, "stop": ("canary",)})
CHOICE = Choice(0, "canary", "stop")


def guard(metrics: Metrics) -> OneGuard:
    return ObserverGuard(metrics.observer_failed).of("tracing", "req-1")


class TwoChunks:
    """A stream of two chunks."""

    over = False
    closed = finished = waited = 0

    def __init__(self, *events: StreamEvent) -> None:
        self._events = events

    def first(self) -> "object":
        return iter(self._events[:1])

    def take(self) -> "object":
        return iter(self._events[1:2])

    def conclude(self) -> "object":
        return iter(self._events[2:])

    async def wait(self) -> None:
        self.waited += 1

    async def finish(self) -> None:
        self.finished += 1

    def close(self) -> None:
        self.closed += 1


def noted(kept: SpanNotes) -> SpanNotes:
    note_request(kept, REQUEST)
    note_prompt(kept, REQUEST)
    note_response(kept, [CHOICE] * (MAX_FINISH_REASONS + 1))
    return kept


def test_numbers_and_words_of_the_request_are_noted_and_no_text() -> None:
    found = noted(SpanNotes())
    assert found.params == {
        "gen_ai.request.max_tokens": 7,
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.choice.count": 2,
        "gen_ai.request.reasoning.level": "x" * 64,
    }
    assert found.finish_reasons == ("stop",) * MAX_FINISH_REASONS
    assert "canary" not in repr(found)


def test_texts_are_noted_where_the_table_allows_them() -> None:
    found = noted(SpanNotes(keeps_content=True))
    assert "canary" in found.prompt
    assert "canary" in found.answer


def test_a_stream_whose_texts_are_not_wanted_is_left_as_it_is() -> None:
    stream = TwoChunks()
    assert noted_stream(SpanNotes(), stream, guard(Metrics())) is stream  # type: ignore[arg-type, comparison-overlap]


async def test_a_stream_is_passed_on_unchanged_and_its_texts_noted() -> None:
    kept, events = SpanNotes(keeps_content=True), (Chunk(0, "can"), Chunk(0, "ary", "stop"), Usage(1, 2))
    pieces = TwoChunks(*events)
    stream = noted_stream(kept, pieces, guard(Metrics()))  # type: ignore[arg-type]
    assert (*stream.first(),) == events[:1]
    await stream.wait()
    assert (*stream.take(), *stream.conclude()) == events[1:]
    await stream.finish()
    stream.close()
    assert (stream.over, pieces.waited, pieces.finished, pieces.closed) == (False, 1, 1, 1)
    assert '"content":"canary"' in kept.answer


@looped("broken", ["add", "json"])
def test_after_a_fault_a_stream_is_passed_on_and_its_texts_are_noted_no_more(broken: str) -> None:
    kept, events, metrics = SpanNotes(keeps_content=True), (Chunk(0, "can"), Chunk(0, "ary", "stop")), Metrics()
    stream = noted_stream(kept, TwoChunks(*events), guard(metrics))  # type: ignore[arg-type]
    with patch.object(GatheredTexts, broken, side_effect=TypeError):
        assert (*stream.first(), *stream.take()) == events
    assert b'observer_failures_total{observer="tracing"} 1.0' in metrics.render()
    assert kept.answer == ""
