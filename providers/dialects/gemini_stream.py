"""Gemini's event stream to chunks of the common shape, fed in pieces of any size.

Never a success that the vendor did not declare: every choice must have said how it ended. The end is told when the body
ends, since usage may follow the last finish reason.

Sources: "streamGenerateContent" of the API reference, November 2026; errors without framing as public issue threads
quote them.
"""

from collections.abc import Iterator

import orjson

from providers.completion import StreamEvent
from providers.dialect import UpstreamRequest
from providers.dialects.gemini_answer import Answer
from providers.dialects.gemini_frames import EventsOrJSON
from providers.dialects.native_stream import cut
from providers.dialects.openai_read import malformed, parsed
from providers.failure import FailureKind, UpstreamError
from providers.sse import EventTooLarge
from providers.unified import JsonValue


class GeminiStream:
    """See providers.dialect.StreamDecoder."""

    __slots__ = ("_answer", "_frames", "complete")

    def __init__(self, sent: UpstreamRequest) -> None:
        self.complete = False
        self._answer = Answer(sent)
        self._frames = EventsOrJSON()

    def feed(self, data: bytes) -> Iterator[StreamEvent]:
        """See StreamDecoder."""
        try:
            for _, payload in self._frames.feed(data):
                yield from self._answer.read(_parsed(payload))
        except EventTooLarge as error:
            raise malformed(f"holds {error}") from None

    def finish(self) -> Iterator[StreamEvent]:
        """See StreamDecoder."""
        try:
            for _, payload in self._frames.finish():
                yield from self._answer.read(_parsed(payload))
        except UpstreamError as error:
            # An event that the end cut in two is no JSON; what it says is that the answer was cut.
            raise (cut() if error.failure.kind is FailureKind.MALFORMED else error) from None
        if not self._answer.ended:
            raise cut()
        yield from self._answer.end()
        self.complete = True


def _parsed(payload: bytes) -> JsonValue:
    try:
        return parsed(payload)
    except orjson.JSONDecodeError:
        raise malformed("holds an event that is not JSON") from None
