"""The built-in mock vendor behind the same door as the network: its pure answers, played out in time.

Never decides what the mock answers; that is `providers.mock`.
"""

import asyncio
from collections.abc import Mapping

from providers import mock
from providers.dialect import UpstreamRequest
from providers.failure import FailureKind
from proxy.upstream import UpstreamResponse, fail

SCHEME = "mock://"


class MockResponse:
    """A scripted answer; `delay` seconds pass before each piece."""

    __slots__ = ("_end", "_pieces", "headers", "status")

    def __init__(self, answer: mock.MockAnswer) -> None:
        self.status = answer.status
        self.headers: Mapping[str, str] = answer.headers
        self._pieces = iter(answer.pieces)
        self._end = answer.end

    async def read(self) -> bytes:
        """See UpstreamResponse."""
        for piece in self._pieces:
            if piece.delay:
                await asyncio.sleep(piece.delay)
            if piece.data:
                return piece.data
        if self._end == "hang":
            await asyncio.Event().wait()
        if self._end == "cut":
            raise fail(FailureKind.TRUNCATED, "The upstream's answer broke off.")
        return b""

    def release(self) -> None:
        """Nothing is held."""

    def close(self) -> None:
        """Nothing is held."""


class MockTransport:
    """Answers `mock://` URLs inside the process."""

    async def open(self, request: UpstreamRequest, request_id: str) -> UpstreamResponse:
        """See Transport."""
        path = request.url.removeprefix(request.target.base_url).partition("?")[0]
        return MockResponse(mock.answer(path, request.body))

    async def aclose(self) -> None:
        """Nothing is held."""
