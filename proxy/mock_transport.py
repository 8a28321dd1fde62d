"""The built-in mock vendor behind the same door as the network: its pure answers, played out in time.

Never decides what the mock answers; that is `providers.mock`.
"""

import asyncio
from collections.abc import Mapping

from providers import mock
from providers.dialect import UpstreamRequest
from providers.failure import FailureKind
from proxy.errors import model_not_found
from proxy.upstream import UpstreamResponse, fail

AT_ONCE = 16
"""Pieces without a delay that are handed out before others get their turn of the loop."""

SCHEME = "mock://"


class MockResponse:
    """A scripted answer; `delay` seconds pass before each piece."""

    __slots__ = ("_end", "_given", "_pieces", "headers", "status")

    def __init__(self, answer: mock.MockAnswer) -> None:
        self.status = answer.status
        self.headers: Mapping[str, str] = answer.headers
        self._pieces = iter(answer.pieces)
        self._end = answer.end
        self._given = 0

    async def read(self) -> bytes:
        """See UpstreamResponse."""
        for piece in self._pieces:
            self._given += 1
            if piece.delay or not self._given % AT_ONCE:
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
    """Answers `mock://` URLs inside the process. Faults, waits and lengths are for models that the table names: those
    that a client names by a row for any model are harmless, or not there."""

    async def open(self, request: UpstreamRequest, request_id: str) -> UpstreamResponse:
        """See Transport. Raises GatewayError for a model that is not served."""
        path = request.url.removeprefix(request.target.base_url).partition("?")[0]
        target = request.target
        if target.row.endswith("/*") and not mock.harmless(target.upstream_model):
            raise model_not_found(f"{target.vendor}/{target.model}", ())
        return MockResponse(mock.answer(path, request.body))

    async def aclose(self) -> None:
        """Nothing is held."""
