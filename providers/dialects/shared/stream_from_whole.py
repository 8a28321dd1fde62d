"""Streams for clients from answers that a vendor only gives whole."""

from collections.abc import Callable, Iterator

from providers.completion import Completion, StreamEvent
from providers.dialects.shared.read_json import is_json, malformed
from providers.dialects.shared.stream_reader import cut
from providers.emulation.collect_stream import to_chunks

MAX_BODY = 32 * 1024 * 1024
"""The largest body in bytes; a larger one is malformed."""


class WholeStream:
    """Yields the answer when the body has ended; `decode` reads the body. See providers.dialect.StreamDecoder."""

    __slots__ = ("_body", "_decode", "complete")

    def __init__(self, decode: Callable[[bytes], Completion]) -> None:
        self.complete = False
        self._decode = decode
        self._body = bytearray()

    def feed(self, data: bytes) -> Iterator[StreamEvent]:
        """See StreamDecoder."""
        self._body += data
        if len(self._body) > MAX_BODY:
            raise malformed("is too large")
        return iter(())

    def finish(self) -> Iterator[StreamEvent]:
        """See StreamDecoder."""
        body = bytes(self._body)
        if not is_json(body):
            raise cut()
        yield from to_chunks(self._decode(body))
        self.complete = True
