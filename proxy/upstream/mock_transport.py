"""The built-in mock vendor as a transport. It sends the responses of `providers.mock.server` with their delays."""

import asyncio
from collections.abc import Mapping

from providers.dialect import UpstreamRequest
from providers.failure import FailureKind
from providers.mock import server as mock
from providers.target import Target
from proxy.errors import GatewayError, model_not_found
from proxy.upstream.transport import Repeats, Take, UpstreamResponse, fail, read_each

CHUNKS_PER_ITERATION = 16
"""The most consecutive chunks without a delay. After them other tasks may run."""

SCHEME = "mock://"


class MockResponse:
    """A simulated response. `delay` seconds pass before each chunk."""

    __slots__ = ("_chunks", "_end", "_given", "head", "headers", "status")

    def __init__(self, answer: mock.SimulatedResponse) -> None:
        self.status = answer.status
        self.headers: Mapping[str, str] = answer.headers
        self.head = b""
        self._chunks = iter(answer.chunks)
        self._end = answer.end
        self._given = 0

    def take_all(self) -> bytes | None:
        """Return `None`, because the chunks of a response may have delays."""
        return None

    async def read(self) -> bytes:
        for chunk in self._chunks:
            self._given += 1
            if chunk.delay or not self._given % CHUNKS_PER_ITERATION:
                await asyncio.sleep(chunk.delay)
            if chunk.data:
                return chunk.data
        if self._end == "hang":
            await asyncio.Event().wait()
        if self._end == "cut":
            raise fail(FailureKind.TRUNCATED, "The upstream's response broke off.")
        return b""

    async def each(self, take: Take) -> None:
        await read_each(self, take)

    def release(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Nothing to close."""


def refused_by_mock(target: Target) -> GatewayError | None:
    """Return the error if the mock does not serve a target; `None` if it does. Models with faults, delays or long
    responses are only served if the configuration names them. Under an entry for any model, clients can only use the
    harmless models."""
    if target.model_key.endswith("/*") and not mock.is_harmless(target.upstream_model):
        return model_not_found(f"{target.vendor}/{target.model}", ())
    return None


class MockTransport:
    """A transport that responds to `mock://` URLs inside the process, except for targets that `refused_by_mock`
    refuses."""

    async def open(self, request: UpstreamRequest, request_id: str, repeats: Repeats = ()) -> UpstreamResponse:
        """Return the simulated response. Raises GatewayError for a model that is not served."""
        path = request.url.removeprefix(request.target.base_url).partition("?")[0]
        if (refused := refused_by_mock(request.target)) is not None:
            raise refused
        request.note_written()
        return MockResponse(mock.respond(path, request.body))

    async def aclose(self) -> None:
        """Nothing to close."""
