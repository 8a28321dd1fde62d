"""Events out of the frames of Amazon's streams; frames that carry an error raise it."""

from collections.abc import Iterator

from providers.dialects.platforms.aws_errors import AwsErrors, failure_in_frame
from providers.dialects.shared.read_json import malformed
from providers.failure import UpstreamError
from providers.framing.parse_aws_eventstream import FrameParser, FramingError


class EventFrames:
    """The frames of one service's stream. See providers.dialects.shared.stream_reader.Frames."""

    __slots__ = ("_parser", "_service")

    def __init__(self, service: AwsErrors) -> None:
        self._parser = FrameParser()
        self._service = service

    @property
    def unfinished(self) -> bool:
        """Return whether a frame has begun and not ended."""
        return self._parser.unfinished

    def feed(self, piece: bytes) -> Iterator[tuple[str, bytes]]:
        """Yield type and payload of each event. Raises UpstreamError for an error and for bytes that are no frames."""
        try:
            for frame in self._parser.feed(piece):
                kind = frame.headers.get(":message-type")
                if kind in ("exception", "error"):
                    raise UpstreamError(failure_in_frame(self._service, frame.headers, frame.payload))
                yield str(frame.headers.get(":event-type", "")), frame.payload
        except FramingError as error:
            raise malformed(f"holds {error}") from None

    def finish(self) -> Iterator[tuple[str, bytes]]:
        """See Frames. The end of a body completes no frame."""
        return iter(())
