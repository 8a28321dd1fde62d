"""A vendor that closes connections before the gateway gets to use them."""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from proxy.http_client.dialer import Destination, Dialer
from proxy.http_client.http1_connection import Http1Connection
from tests.support.vendor import FakeVendor


@contextmanager
def connections_handed_out_closed(vendor: FakeVendor) -> Iterator[None]:
    """Delay every new connection until the vendor has closed all of its own."""
    dial = Dialer.dial

    async def dial_and_wait(self: Dialer, to: Destination, idle: float, within: float) -> Http1Connection:
        connection = await dial(self, to, idle, within)
        while vendor.open_connections:
            await vendor.connected(0)
        return connection

    with patch.object(Dialer, "dial", dial_and_wait):
        yield
