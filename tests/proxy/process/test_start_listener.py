"""Listeners: many connections that wait for them, and the URLs that are reported for them."""

import asyncio
import socket
from contextlib import ExitStack
from pathlib import Path

import pytest

from proxy.process.assemble_app import Addresses
from proxy.process.start_listener import ACCEPTS_PER_ITERATION, with_reach
from tests.proxy.kit.raw_client import request
from tests.proxy.kit.whole_gateway import MOCK, port_of, up
from tests.support.looped import looped

pytestmark = pytest.mark.smoke


PATIENCE = 30.0
"""Seconds within which even a slow machine responds."""


async def test_an_address_is_shown_as_it_is_listened_on(tmp_path: Path) -> None:
    async with up(MOCK, tmp_path, listen=Addresses("127.0.0.1", 0, "0.0.0.0", 0)) as app:
        assert app.admin_url == f"http://0.0.0.0:{port_of(app.admin_url)}"


@looped(
    ("host", "told"),
    [("127.0.0.1", "URL"), ("10.0.0.1", "URL"), ("0.0.0.0", "URL (all addresses)"), ("::", "URL (all IPv6 addresses)")],
)
def test_how_far_a_listener_reaches_is_told_behind_its_address(host: str, told: str) -> None:
    assert with_reach("URL", host) == told


async def test_a_crowd_is_kept_by_the_kernel_while_the_loop_is_at_something_else(tmp_path: Path) -> None:
    async with up(MOCK, tmp_path) as app:
        address = ("127.0.0.1", port_of(app.url))
        with ExitStack() as crowd:
            # A connection that the kernel does not queue waits here for ever, because the event loop does not accept
            # it.
            clients = [
                crowd.enter_context(socket.create_connection(address, PATIENCE))
                for _ in range(3 * ACCEPTS_PER_ITERATION)
            ]
            for client in clients:
                client.sendall(request("GET", "/v1/models"))
            for client in clients:
                assert (await asyncio.to_thread(client.recv, 65536)).startswith(b"HTTP/1.1 200 OK\r\n")
