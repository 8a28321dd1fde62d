"""Gemini's event stream to chunks of the common shape.

A stream is complete when every choice has a finish reason. The end is yielded when the body ends, because usage may
follow the last finish reason.

Sources: "streamGenerateContent" of the API reference, November 2026; errors without framing as public issue threads
quote them.
"""

from collections.abc import Iterator

from providers.completion import StreamEvent
from providers.dialect import UpstreamRequest
from providers.dialects.gemini.answer import GeminiAnswer
from providers.dialects.platforms.google_events import EventsOrJSON
from providers.dialects.shared.read_json import malformed, parse_answer
from providers.dialects.shared.stream_reader import cut, failing
from providers.failure import FailureKind, UpstreamError
from providers.framing.parse_sse import EventTooLarge

_NO_JSON = "holds an event that is not JSON"


class GeminiStream:
    """See providers.dialect.StreamDecoder."""

    __slots__ = ("_answer", "_frames", "complete")

    def __init__(self, sent: UpstreamRequest) -> None:
        self.complete = False
        self._answer = GeminiAnswer(sent)
        self._frames = EventsOrJSON()

    def feed(self, data: bytes) -> Iterator[StreamEvent]:
        """See StreamDecoder."""
        event = self._frames.only(data)
        try:
            return self._events(data) if event is None else self._answer.read(parse_answer(event[1], _NO_JSON))
        except UpstreamError as error:
            return failing(error)

    def _events(self, data: bytes) -> Iterator[StreamEvent]:
        try:
            for _, payload in self._frames.feed(data):
                yield from self._answer.read(parse_answer(payload, _NO_JSON))
        except EventTooLarge as error:
            raise malformed(f"holds {error}") from None

    def finish(self) -> Iterator[StreamEvent]:
        """See StreamDecoder."""
        try:
            for _, payload in self._frames.finish():
                yield from self._answer.read(parse_answer(payload, _NO_JSON))
        except UpstreamError as error:
            # The last event is no JSON where the body was cut within it.
            raise (cut() if error.failure.kind is FailureKind.MALFORMED else error) from None
        if not self._answer.ended:
            raise cut()
        yield from self._answer.end()
        self.complete = True
