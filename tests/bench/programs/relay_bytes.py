"""Relays bytes between sockets. It needs only the standard library, so any interpreter can run it.

python relay_bytes.py PORT TLS_PORT UPSTREAM_PORT UPSTREAM_TLS_PORT AUTHORITY
"""

import asyncio
import ssl
import sys
from functools import partial
from typing import cast


class Onward(asyncio.Protocol):
    """The connection to the upstream. Its bytes go to the client."""

    def __init__(self, client: asyncio.Transport) -> None:
        self._client = client

    def data_received(self, data: bytes) -> None:
        self._client.write(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._client.close()


class Client(asyncio.Protocol):
    """The connection of a client. Its bytes go to the upstream as soon as the upstream is connected."""

    def __init__(self, port: int, context: ssl.SSLContext | None) -> None:
        self._port = port
        self._context = context
        self._early = b""
        self._onward: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._dialing = asyncio.get_running_loop().create_task(self._dial(cast(asyncio.Transport, transport)))

    async def _dial(self, client: asyncio.Transport) -> None:
        name = None if self._context is None else "localhost"
        try:
            self._onward, _ = await asyncio.get_running_loop().create_connection(
                lambda: Onward(client), "127.0.0.1", self._port, ssl=self._context, server_hostname=name
            )
        except OSError:
            client.abort()
            return
        self._onward.write(self._early)

    def data_received(self, data: bytes) -> None:
        if self._onward is None:
            self._early += data
        else:
            self._onward.write(data)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._onward is not None:
            self._onward.abort()


async def serve(ports: tuple[int, int], upstream: tuple[int, int], authority: str) -> None:
    """Relay both ports, in plain bytes and over TLS to the upstream, until a signal ends the process."""
    context = ssl.create_default_context(cafile=authority)
    loop = asyncio.get_running_loop()
    plain = await loop.create_server(partial(Client, upstream[0], None), "127.0.0.1", ports[0], backlog=1024)
    secure = await loop.create_server(partial(Client, upstream[1], context), "127.0.0.1", ports[1], backlog=1024)
    async with plain, secure:
        await asyncio.Event().wait()


if __name__ == "__main__":
    given = [int(each) for each in sys.argv[1:5]]
    asyncio.run(serve((given[0], given[1]), (given[2], given[3]), sys.argv[5]))
