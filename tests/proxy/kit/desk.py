"""A listener with the gateway's own protocol whose handler waits, fails and records its calls."""

import asyncio
import functools
import inspect
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from contextvars import ContextVar
from typing import cast

import pytest
from aiohttp import web

from proxy.eager_task import EagerTask
from proxy.listener.http_connection import PublicHandler, PublicServer
from proxy.surfaces.registry import surface_envelope
from tests.proxy.kit.eager_tasks import LOOPS
from tests.proxy.kit.raw_client import RawClient, connected, request

carried: ContextVar[str] = ContextVar("carried", default="nothing")


class Abandoned(BaseException):
    """An exception that no handler should raise."""


class Desk:
    """A handler whose responses hold the path and the body. On `/wait...` it waits for `opened` first; on `/raise` and
    `/abandon` it fails.

    `eager` says for each request whether it ran in an EagerTask; `begun`, `ended` and `cancelled` list paths.
    """

    def __init__(self) -> None:
        self.opened = asyncio.Event()
        self.changed = asyncio.Event()
        self.eager: list[bool] = []
        self.begun: list[str] = []
        self.ended: list[str] = []
        self.cancelled: list[str] = []
        self.carried: list[str] = []
        self.depths: list[int] = []
        self.server: PublicServer
        self.port = 0

    async def __call__(self, http: web.BaseRequest) -> web.StreamResponse:
        path = http.path
        self.begun.append(path)
        self.changed.set()
        self.eager.append(isinstance(asyncio.current_task(), EagerTask))
        self.carried.append(carried.get())
        carried.set(path)
        self.depths.append(depth())
        try:
            body = await http.read()
            if path == "/raise":
                raise ValueError
            if path == "/abandon":
                raise Abandoned
            if path.startswith("/wait"):
                await self.opened.wait()
        except asyncio.CancelledError:
            self.cancelled.append(path)
            self.changed.set()
            raise
        self.ended.append(path)
        self.changed.set()
        return web.Response(text=f"{path}:{body.decode()}")

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until a condition holds that a request changes."""
        while not holds():
            self.changed.clear()
            await self.changed.wait()

    async def waits(self, client: RawClient) -> None:
        """Send a request of the client that waits until it is `opened`."""
        await client.send(get("/wait"))
        await self.until(lambda: self.begun == ["/wait"])

    async def opens(self, client: RawClient) -> None:
        """Let the waiting request get its response."""
        self.opened.set()
        assert await answered(client) == (200, b"/wait:")

    @property
    def connection(self) -> PublicHandler:
        """The protocol of the only connection."""
        (found,) = self.server.connections
        return cast(PublicHandler, found)


def depth() -> int:
    """Return the number of stack frames below this one."""
    frame, found = sys._getframe(), 0
    while (below := frame.f_back) is not None:
        frame, found = below, found + 1
    return found


@asynccontextmanager
async def desk() -> AsyncIterator[Desk]:
    """Yield a listener with a Desk."""
    made = Desk()
    made.server = PublicServer(made, 1 << 20, surface_envelope)
    listener = await asyncio.get_running_loop().create_server(made.server, "127.0.0.1", 0)
    made.port = listener.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        made.opened.set()
        listener.close()
        made.server.pre_shutdown()
        await made.server.shutdown(0.2)


def at_a_desk(test: Callable[..., Coroutine[None, None, None]]) -> Callable[..., None]:
    """Run a test with a Desk, and with a client of it if the test has that parameter, on either loop that the gateway
    runs on.
    """
    wanted = inspect.signature(test)
    fixtures = [each for name, each in wanted.parameters.items() if name not in ("made", "client")]

    async def scenario(arguments: dict[str, object]) -> None:
        async with asyncio.timeout(55), desk() as made, AsyncExitStack() as stack:
            if "client" in wanted.parameters:
                arguments["client"] = await stack.enter_async_context(connected(made.port))
            await test(made=made, **arguments)

    @functools.wraps(test)
    def runs(on: str, **arguments: object) -> None:
        with asyncio.Runner(loop_factory=LOOPS[on]) as runner:
            runner.run(scenario(arguments))

    loop = inspect.Parameter("on", inspect.Parameter.KEYWORD_ONLY)
    runs.__signature__ = wanted.replace(parameters=[*fixtures, loop])  # type: ignore[attr-defined]
    made: Callable[..., None] = pytest.mark.parametrize("on", LOOPS)(runs)
    return made


async def answered(client: RawClient) -> tuple[int, bytes]:
    """Return the next response's status and body."""
    status, headers = await client.head()
    return status, await client.reader.readexactly(int(headers["content-length"]))


async def settle(turns: int = 20) -> None:
    for _ in range(turns):
        await asyncio.sleep(0)


def get(path: str, **headers: str) -> bytes:
    return request("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})
