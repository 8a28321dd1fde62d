"""The container's own stream out of SageMaker's frames, which cut it anywhere, within a character too.

Never what the bytes mean.

Sources: botocore 1.44.5 service model `sagemaker-runtime` (`ResponseStream`: `PayloadPart`, `ModelStreamError`,
`InternalStreamFailure`).
"""

from collections.abc import Iterator

from providers.completion import StreamEvent
from providers.dialect import StreamDecoder
from providers.dialects.native_stream import cut
from providers.dialects.openai_read import malformed
from providers.dialects.sagemaker_errors import failure_in_frame
from providers.eventstream import FrameParser, FramingError
from providers.failure import UpstreamError


class _Payloads:
    """Each part's bytes, as they are."""

    __slots__ = ("_frames",)

    def __init__(self) -> None:
        self._frames = FrameParser()

    @property
    def unfinished(self) -> bool:
        """Whether a frame has begun and not ended."""
        return self._frames.unfinished

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Parts completed by a piece. Raises UpstreamError for a frame that tells a failure, or for none at all."""
        try:
            for frame in self._frames.feed(data):
                if frame.headers.get(":message-type") in ("exception", "error"):
                    raise UpstreamError(failure_in_frame(frame.headers, frame.payload))
                if frame.headers.get(":event-type") == "PayloadPart":
                    yield frame.payload
        except FramingError as error:
            raise malformed(f"holds {error}") from None


def contents(body: bytes) -> bytes:
    """All that the container wrote. Raises UpstreamError."""
    payloads = _Payloads()
    whole = b"".join(payloads.feed(body))
    if payloads.unfinished:
        raise cut()
    return whole


class FramedStream:
    """A container's decoder behind the frames. See providers.dialect.StreamDecoder."""

    __slots__ = ("_inner", "_payloads")

    def __init__(self, inner: StreamDecoder) -> None:
        self._inner = inner
        self._payloads = _Payloads()

    @property
    def complete(self) -> bool:
        """See StreamDecoder."""
        return self._inner.complete

    def feed(self, data: bytes) -> Iterator[StreamEvent]:
        """See StreamDecoder."""
        for payload in self._payloads.feed(data):
            yield from self._inner.feed(payload)
            if self._inner.complete:
                return

    def finish(self) -> Iterator[StreamEvent]:
        """See StreamDecoder."""
        if self._payloads.unfinished and not self._inner.complete:
            raise cut()
        return self._inner.finish()
