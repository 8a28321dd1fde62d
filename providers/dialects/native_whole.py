"""A stream for a client out of an answer that a vendor only gives whole.

Never a vendor's body.
"""

from collections.abc import Callable, Iterator

from providers.completion import Completion, StreamEvent
from providers.dialects.native_stream import cut
from providers.dialects.openai_read import is_json, malformed
from providers.gather import as_chunks

MAX_BODY = 32 * 1024 * 1024
"""Bytes that are gathered before the body makes no sense."""


class WholeStream:
    """One chunk, when the body has ended. See providers.dialect.StreamDecoder. `decode` reads the whole of it."""

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
        yield from as_chunks(self._decode(body))
        self.complete = True
