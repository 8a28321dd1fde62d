"""Objects that a connection leaves behind, which never include its data."""

import asyncio
import gc
import socket

from tests.proxy.kit.echo_listener import Echo, listening
from tests.proxy.kit.raw_client import request


def asks_and_leaves(port: int) -> None:
    """Send one request on a connection in which asyncio takes no part on this side."""
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(request("POST", "/", b"x", {"Connection": "close"}))
        while client.recv(65536):
            pass


def transports() -> int:
    """Return the number of asyncio's connections."""
    return sum(type(each).__name__ == "_SelectorSocketTransport" for each in gc.get_objects())


async def test_a_connection_that_has_ended_leaves_nothing_for_the_collector() -> None:
    async with listening(Echo()) as port:
        gc.collect()
        gc.disable()
        try:
            before = transports()
            for _ in range(20):
                await asyncio.to_thread(asks_and_leaves, port)
            async with asyncio.timeout(30.0):
                while transports() > before:  # noqa: ASYNC110 - no event
                    await asyncio.sleep(0.01)
        finally:
            gc.enable()
