"""Answers that are compressed although that was not asked for: inflated piece by piece, in bounded memory."""

import zlib
from collections.abc import Mapping
from typing import Final

from providers.failure import FailureKind
from proxy.http_client.http_response import BROKEN_OFF, HttpResponse
from proxy.upstream.transport import Take, UpstreamResponse, fail, read_each

INFLATED: Final = 64 * 1024
"""Bytes that are inflated at a time."""

MEMBERS_LIMIT: Final = 1024
"""Gzip members, or zlib streams, one behind the other (RFC 1952, 2.2)."""

_FED: Final = 4096
"""Compressed bytes that are given to zlib at a time: it copies what follows the end of a member."""

_INFLATED_CODINGS: Final = frozenset({"gzip", "x-gzip", "deflate"})
_UNREADABLE: Final = frozenset({"br", "zstd", "compress", "x-compress"})


def readable(response: HttpResponse) -> UpstreamResponse | None:
    """Return a response with a content coding as one whose body is what the vendor means; None for a coding that nobody
    asked for and that cannot be read. Others, such as `identity`, leave a body as it is."""
    coding = response.headers["content-encoding"].strip().lower()
    if coding in _UNREADABLE:
        return None
    return InflatedResponse(response) if coding in _INFLATED_CODINGS else response


class InflatedResponse:
    """See UpstreamResponse."""

    __slots__ = ("_members", "_packed", "_response", "_unpacking")

    def __init__(self, response: HttpResponse) -> None:
        self._response = response
        self._packed = b""
        self._unpacking: zlib._Decompress | None = None
        self._members = 0

    @property
    def status(self) -> int:
        """See UpstreamResponse."""
        return self._response.status

    @property
    def headers(self) -> Mapping[str, str]:
        """See UpstreamResponse."""
        return self._response.headers

    @property
    def head(self) -> bytes:
        """See UpstreamResponse."""
        return self._response.head

    def take_all(self) -> bytes | None:
        """See UpstreamResponse. What all of it amounts to may be too much for one piece."""
        return None

    async def read(self) -> bytes:
        """See UpstreamResponse."""
        while True:
            if not self._packed:
                self._packed = await self._response.read()
                if not self._packed:
                    if self._unpacking is not None and not self._unpacking.eof:
                        raise fail(FailureKind.TRUNCATED, BROKEN_OFF)
                    return b""
            if piece := self._inflate():
                return piece

    async def each(self, take: Take) -> None:
        """See UpstreamResponse."""
        await read_each(self, take)

    def release(self) -> None:
        """See UpstreamResponse."""
        if self._packed:
            self._response.close()
        else:
            self._response.release()

    def close(self) -> None:
        """See UpstreamResponse."""
        self._response.close()

    def _inflate(self) -> bytes:
        """Return what some of the bytes that have come amount to."""
        unpacking = self._unpacking
        if unpacking is None or unpacking.eof:
            self._members += 1
            if self._members > MEMBERS_LIMIT:
                raise fail(FailureKind.TRUNCATED, BROKEN_OFF)
            unpacking = self._unpacking = zlib.decompressobj(_window(self._packed[0]))
        fed, rest = self._packed[:_FED], self._packed[_FED:]
        try:
            piece = unpacking.decompress(fed, INFLATED)
        except zlib.error:
            raise fail(FailureKind.TRUNCATED, BROKEN_OFF) from None
        left = unpacking.unused_data if unpacking.eof else unpacking.unconsumed_tail
        self._packed = left + rest
        return piece


def _window(first: int) -> int:
    """Return zlib's `wbits` for data with this first byte: gzip or zlib, told apart by zlib itself, or a bare deflate
    stream, which some servers send under the name `deflate` (RFC 1950, 2.2: the low four bits of zlib's are 8)."""
    return zlib.MAX_WBITS + 32 if first == 0x1F or first & 0x0F == 8 else -zlib.MAX_WBITS
