"""A vendor that closes connections before the gateway gets to use them."""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import aiohttp
from aiohttp.connector import Connection
from aiohttp.tracing import Trace

from tests.support.vendor import FakeVendor


@contextmanager
def connections_handed_out_closed(vendor: FakeVendor) -> Iterator[None]:
    """Hand out every new connection of aiohttp's client only once the vendor has closed all of its own."""
    connect = aiohttp.TCPConnector.connect

    async def connect_and_wait(
        self: aiohttp.TCPConnector,
        req: aiohttp.ClientRequest,
        traces: list[Trace],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - aiohttp's signature
    ) -> Connection:
        connection = await connect(self, req, traces, timeout)
        while vendor.open_connections:
            await vendor.connected(0)
        return connection

    with patch.object(aiohttp.TCPConnector, "connect", connect_and_wait):
        yield
