"""Inflates responses that are compressed although no compression was requested. They are inflated in parts, in bounded
memory."""

import zlib
from collections.abc import Mapping
from typing import Final

from providers.failure import FailureKind
from proxy.http_client.http_response import BROKEN_OFF, HttpResponse
from proxy.upstream.transport import Take, UpstreamResponse, fail, read_each

OUTPUT_BYTES: Final = 64 * 1024
"""The most inflated bytes that one step returns."""

MEMBERS_LIMIT: Final = 1024
"""The most concatenated gzip members or zlib streams in one body (RFC 1952, 2.2)."""

_INPUT_BYTES: Final = 4096
"""The most compressed bytes that zlib gets in one step. They are few because zlib copies the bytes after the end of a
gzip member."""

_INFLATED_CODINGS: Final = frozenset({"gzip", "x-gzip", "deflate"})
_UNREADABLE: Final = frozenset({"br", "zstd", "compress", "x-compress"})


def readable(response: HttpResponse) -> UpstreamResponse | None:
    """Return a response with a content coding as one with a decoded body; `None` for a coding that was not requested
    and cannot be decoded. Other codings, such as `identity`, leave the body unchanged."""
    coding = response.headers["content-encoding"].strip().lower()
    if coding in _UNREADABLE:
        return None
    return InflatedResponse(response) if coding in _INFLATED_CODINGS else response


class InflatedResponse:
    """The response with its body inflated; it implements UpstreamResponse."""

    __slots__ = ("_compressed", "_decompressor", "_members", "_response")

    def __init__(self, response: HttpResponse) -> None:
        self._response = response
        self._compressed = b""
        self._decompressor: zlib._Decompress | None = None
        self._members = 0

    @property
    def status(self) -> int:
        return self._response.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._response.headers

    @property
    def head(self) -> bytes:
        return self._response.head

    def take_all(self) -> bytes | None:
        """Return `None`, since the whole inflated body may be too large for one chunk."""
        return None

    async def read(self) -> bytes:
        while True:
            if not self._compressed:
                self._compressed = await self._response.read()
                if not self._compressed:
                    if self._decompressor is not None and not self._decompressor.eof:
                        raise fail(FailureKind.TRUNCATED, BROKEN_OFF)
                    return b""
            if chunk := self._inflate():
                return chunk

    async def each(self, take: Take) -> None:
        await read_each(self, take)

    def release(self) -> None:
        if self._compressed:
            self._response.close()
        else:
            self._response.release()

    def close(self) -> None:
        self._response.close()

    def _inflate(self) -> bytes:
        """Inflate some of the received bytes and return the result, which may be empty."""
        decompressor = self._decompressor
        if decompressor is None or decompressor.eof:
            self._members += 1
            if self._members > MEMBERS_LIMIT:
                raise fail(FailureKind.TRUNCATED, BROKEN_OFF)
            decompressor = self._decompressor = zlib.decompressobj(_window(self._compressed[0]))
        fed, rest = self._compressed[:_INPUT_BYTES], self._compressed[_INPUT_BYTES:]
        try:
            chunk = decompressor.decompress(fed, OUTPUT_BYTES)
        except zlib.error:
            raise fail(FailureKind.TRUNCATED, BROKEN_OFF) from None
        left = decompressor.unused_data if decompressor.eof else decompressor.unconsumed_tail
        self._compressed = left + rest
        return chunk


def _window(first: int) -> int:
    """Return zlib's `wbits` for data with this first byte. zlib itself distinguishes gzip and zlib. Some servers send a
    raw deflate stream under the name `deflate`, whose first byte differs (RFC 1950, 2.2: the low four bits of zlib's
    first byte are 8)."""
    return zlib.MAX_WBITS + 32 if first == 0x1F or first & 0x0F == 8 else -zlib.MAX_WBITS
