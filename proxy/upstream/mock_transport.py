"""The built-in mock vendor as a transport: the pure answers of `providers.mock.server`, with their delays."""

import asyncio
from collections.abc import Mapping

from providers.dialect import UpstreamRequest
from providers.failure import FailureKind
from providers.mock import server as mock
from providers.target import Target
from proxy.errors import GatewayError, model_not_found
from proxy.upstream.transport import Repeats, Take, UpstreamResponse, fail, read_each

AT_ONCE = 16
"""Pieces without a delay that are handed out before other tasks get a turn."""

SCHEME = "mock://"


class MockResponse:
    """A simulated response. `delay` seconds pass before each chunk."""

    __slots__ = ("_end", "_given", "_pieces", "head", "headers", "status")

    def __init__(self, answer: mock.SimulatedResponse) -> None:
        self.status = answer.status
        self.headers: Mapping[str, str] = answer.headers
        self.head = b""
        self._pieces = iter(answer.chunks)
        self._end = answer.end
        self._given = 0

    def take_all(self) -> bytes | None:
        """See UpstreamResponse. An answer's pieces may come late."""
        return None

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

    async def each(self, take: Take) -> None:
        """See UpstreamResponse."""
        await read_each(self, take)

    def release(self) -> None:
        """Nothing to release."""

    def close(self) -> None:
        """Nothing to close."""


def refused_by_mock(target: Target) -> GatewayError | None:
    """Return the answer where the mock does not serve a target. Faults, delays and long answers need a model that the
    table names: other models of an entry for any model are harmless, or do not exist."""
    if target.model_key.endswith("/*") and not mock.is_harmless(target.upstream_model):
        return model_not_found(f"{target.vendor}/{target.model}", ())
    return None


class MockTransport:
    """Answers `mock://` URLs inside the process, but none of what `refused_by_mock` names."""

    async def open(self, request: UpstreamRequest, request_id: str, repeats: Repeats = ()) -> UpstreamResponse:
        """See Transport. Raises GatewayError for a model that is not served."""
        path = request.url.removeprefix(request.target.base_url).partition("?")[0]
        if (refused := refused_by_mock(request.target)) is not None:
            raise refused
        request.note_written()
        return MockResponse(mock.respond(path, request.body))

    async def aclose(self) -> None:
        """Nothing to close."""
