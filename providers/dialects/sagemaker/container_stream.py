"""Extracts a container's own stream from SageMaker's frames, which may split it anywhere, even within a character.

Sources: botocore 1.44.5 service model `sagemaker-runtime` (`ResponseStream`: `PayloadPart`, `ModelStreamError`,
`InternalStreamFailure`).
"""

from collections.abc import Iterator

from providers.completion import StreamEvent, Usage
from providers.dialect import StreamDecoder, usage_so_far
from providers.dialects.platforms.aws_errors import SAGEMAKER
from providers.dialects.platforms.aws_events import EventFrames
from providers.dialects.shared.decode_stream import NOTHING, cut, failing
from providers.failure import UpstreamError

_PART = "PayloadPart"


def container_bytes(body: bytes) -> bytes:
    """Return all bytes that the container wrote. Raises UpstreamError."""
    frames = EventFrames(SAGEMAKER)
    whole = b"".join([payload for name, payload in frames.feed(body) if name == _PART])
    if frames.unfinished:
        raise cut()
    return whole


class FramedStream:
    """A `StreamDecoder` that passes the payloads of the frames to the container's decoder."""

    __slots__ = ("_frames", "_inner")

    def __init__(self, inner: StreamDecoder) -> None:
        self._inner = inner
        self._frames = EventFrames(SAGEMAKER)

    @property
    def complete(self) -> bool:
        return self._inner.complete

    def feed(self, data: bytes) -> Iterator[StreamEvent]:
        try:
            event = self._frames.only(data)
        except UpstreamError as error:
            return failing(error)
        if event is None:
            return self._events(data)
        name, payload = event
        return self._inner.feed(payload) if name == _PART else iter(NOTHING)

    def _events(self, data: bytes) -> Iterator[StreamEvent]:
        for name, payload in self._frames.feed(data):
            if name == _PART:
                yield from self._inner.feed(payload)
                if self._inner.complete:
                    return

    def finish(self) -> Iterator[StreamEvent]:
        if self._frames.unfinished and not self._inner.complete:
            raise cut()
        return self._inner.finish()

    def usage_so_far(self) -> Usage | None:
        return usage_so_far(self._inner)
