"""The time of a connection's first bytes, as its protocol sees it."""

import asyncio

import pytest
from aiohttp import web

from proxy.listener import http_connection as server
from proxy.listener.http_connection import PublicHandler, PublicServer
from proxy.surfaces.registry import surface_envelope
from tests.proxy.kit.raw_client import connected


async def fail_if_called(http: web.BaseRequest) -> web.StreamResponse:
    """Fail: no complete request arrives."""
    raise AssertionError(http)


class Early(PublicHandler):
    """A handler that gets a part of a head during `connection_made`, before it waits for a request."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.data_received(b"GET /")


async def test_a_head_that_begins_with_its_connection_is_not_waited_for_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "LOOK_EVERY", 0.01)
    monkeypatch.setattr(server, "HEAD_WAIT", 0.1)
    loop, public = asyncio.get_running_loop(), PublicServer(fail_if_called, 1024, surface_envelope)
    listener = await loop.create_server(
        lambda: Early(public, surface_envelope, loop=loop, **public._kwargs), "127.0.0.1", 0
    )
    async with connected(listener.sockets[0].getsockname()[1]) as client:
        assert (await client.answer()).status == 408
        assert await client.closed() == b""
    listener.close()
    await public.shutdown(0.1)
