"""Events out of the frames of Amazon's streams; frames that carry an error raise it."""

from collections.abc import Iterator, Mapping

from providers.dialects.platforms.aws_errors import AwsErrors, failure_in_frame
from providers.dialects.shared.read_json import malformed
from providers.failure import UpstreamError
from providers.framing.parse_aws_eventstream import Frame, FrameParser, FramingError, HeaderValue


class EventFrames:
    """The frames of one service's stream. See providers.dialects.shared.decode_stream.Frames.

    `_headers` are those of the last event, `_type` what they say.
    """

    __slots__ = ("_headers", "_parser", "_service", "_type")

    def __init__(self, service: AwsErrors) -> None:
        self._parser = FrameParser()
        self._service = service
        self._headers: Mapping[str, HeaderValue] | None = None
        self._type = ""

    @property
    def unfinished(self) -> bool:
        """Return whether a frame has begun and not ended."""
        return self._parser.unfinished

    def only(self, piece: bytes) -> tuple[str, bytes] | None:
        """See Frames. Raises UpstreamError as `feed` does."""
        try:
            frame = self._parser.only(piece)
        except FramingError as error:
            raise malformed(f"holds {error}") from None
        return None if frame is None else self._event(frame)

    def feed(self, piece: bytes) -> Iterator[tuple[str, bytes]]:
        """Yield type and payload of each event. Raises UpstreamError for an error and for bytes that are no frames."""
        try:
            for frame in self._parser.feed(piece):
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
        """See Frames. The end of a body completes no frame."""
        return iter(())
