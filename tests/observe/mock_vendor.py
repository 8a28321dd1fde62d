"""The built-in mock vendor behind a socket. Unlike inside the gateway, its failures count against a deployment."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from aiohttp import web

from providers.mock import server as mock


async def respond(request: web.Request) -> web.StreamResponse:
    """Send the response of `providers.mock.server`, with its delays and its broken ends."""
    answer = mock.respond(f"/{request.match_info['path']}", await request.read())
    response = web.StreamResponse(status=answer.status, headers=answer.headers)
    with suppress(ConnectionError):  # the gateway may disconnect before the end
        await response.prepare(request)
        for chunk in answer.chunks:
            await asyncio.sleep(chunk.delay)
            await response.write(chunk.data)
    if answer.end != "eof" and request.transport is not None:
        request.transport.abort()
    return response


@asynccontextmanager
async def mock_vendor() -> AsyncIterator[str]:
    """Start the vendor and yield its base URL."""
    app = web.Application()
    app.router.add_post("/v1/{path:.*}", respond)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        (address,) = runner.addresses
        yield f"http://127.0.0.1:{address[1]}/v1"
    finally:
        await runner.cleanup()
