"""The events of a Bedrock stream out of its frames; a frame that is none raises what it tells.

Never what an event means.
"""

from collections.abc import Iterator

from providers.dialects.bedrock_errors import failure_in_frame
from providers.dialects.openai_read import malformed
from providers.eventstream import FrameParser, FramingError
from providers.failure import UpstreamError


class EventFrames:
    """See providers.dialects.native_stream.Frames."""

    __slots__ = ("_parser",)

    def __init__(self) -> None:
        self._parser = FrameParser()

    @property
    def unfinished(self) -> bool:
        """Whether a frame has begun and not ended."""
        return self._parser.unfinished

    def feed(self, piece: bytes) -> Iterator[tuple[str, bytes]]:
        """Each event's type and payload. Raises UpstreamError."""
        try:
            for frame in self._parser.feed(piece):
                kind = frame.headers.get(":message-type")
                if kind in ("exception", "error"):
                    raise UpstreamError(failure_in_frame(frame.headers, frame.payload))
                yield str(frame.headers.get(":event-type", "")), frame.payload
        except FramingError as error:
            raise malformed(f"holds {error}") from None

    def finish(self) -> Iterator[tuple[str, bytes]]:
        """Nothing: the end of a body completes no frame."""
        return iter(())
