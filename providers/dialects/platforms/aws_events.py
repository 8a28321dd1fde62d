"""Reads events from the frames of Amazon's streams. A frame that carries an error raises it."""

from collections.abc import Iterator, Mapping

from providers.dialects.platforms.aws_errors import AwsErrors, failure_in_frame
from providers.dialects.shared.read_json import malformed
from providers.failure import UpstreamError
from providers.framing.parse_aws_eventstream import Frame, FrameParser, FramingError, HeaderValue


class EventFrames:
    """The `Frames` of one service's stream.

    `_headers` are the headers of the last event, `_type` is the event type in them.
    """

    __slots__ = ("_headers", "_parser", "_service", "_type")

    def __init__(self, service: AwsErrors) -> None:
        self._parser = FrameParser()
        self._service = service
        self._headers: Mapping[str, HeaderValue] | None = None
        self._type = ""

    @property
    def unfinished(self) -> bool:
        """Whether a frame has begun and not ended."""
        return self._parser.unfinished

    def only(self, chunk: bytes) -> tuple[str, bytes] | None:
        try:
            frame = self._parser.only(chunk)
        except FramingError as error:
            raise malformed(f"holds {error}") from None
        return None if frame is None else self._event(frame)

    def feed(self, chunk: bytes) -> Iterator[tuple[str, bytes]]:
        """Yield type and payload of each event. Raises UpstreamError for an error frame and for malformed frames."""
        try:
            for frame in self._parser.feed(chunk):
                yield self._event(frame)
        except FramingError as error:
            raise malformed(f"holds {error}") from None

    def _event(self, frame: Frame) -> tuple[str, bytes]:
        headers, payload = frame
        if headers is not self._headers:
            if headers.get(":message-type") in ("exception", "error"):
                raise UpstreamError(failure_in_frame(self._service, headers, payload))
            self._headers, self._type = headers, str(headers.get(":event-type", ""))
        return self._type, payload

    def finish(self) -> Iterator[tuple[str, bytes]]:
        return iter(())
