"""A listener with the gateway's own protocol and a handler that returns the body it read."""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web

from proxy.errors import GatewayError
from proxy.listener.buffered_response import BASE_HEADERS
from proxy.listener.http_connection import PublicServer
from proxy.listener.request_body import read_body
from proxy.surfaces.registry import surface_envelope

LIMIT = 2048


class Echo:
    """Returns the body it read, or the refusal's status and message. `raised` holds the exception to raise."""

    def __init__(self) -> None:
        self.reading = asyncio.Event()
        self.raised: Exception | None = None
        self.sizes: list[int] = []

    async def __call__(self, http: web.BaseRequest) -> web.StreamResponse:
        self.reading.set()
        if self.raised is not None:
            raise self.raised
        try:
            return web.Response(body=await read_body(http, self.sizes.append), headers=dict(BASE_HEADERS))
        except GatewayError as error:
            return web.Response(status=error.facts.status, text=error.facts.message)


@asynccontextmanager
async def listening(
    handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]], most_open: int = sys.maxsize
) -> AsyncIterator[int]:
    """Yield the port of a listener with the gateway's own protocol and this limit on idle connections."""
    public = PublicServer(handler, LIMIT, surface_envelope)
    public.most_open = most_open
    listener = await asyncio.get_running_loop().create_server(public, "127.0.0.1", 0)
    try:
        yield listener.sockets[0].getsockname()[1]
    finally:
        listener.close()
        await public.shutdown(0.1)
