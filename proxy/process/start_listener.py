"""Opens and closes the public and the operator's listener, and returns their URLs."""

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from typing import Any

from config.sections.server_section import ServerSection
from proxy.listener.http_connection import PublicServer
from proxy.listener.tls import Secured
from proxy.process.shutdown import STOP_AT_ONCE_TIMEOUT

BACKLOG = 1024
"""The most connections that the kernel queues until they are accepted."""

ACCEPTS_PER_ITERATION = 128
"""The most connections that are accepted in one event loop iteration.

asyncio (at least 3.11) accepts as many as the backlog holds, which makes requests in flight wait while a burst of
connections arrives: accepting 128 takes up to 16 ms, accepting 32 up to 7 ms. With 32, accepting is slower than the
requests that start in each iteration, and refusals wait for it. In the first second of 8,000 requests, most of them on
new connections, 1,300 to 5,000 were refused later than 50 ms after they were sent; with 128 it was 400 to 1,600.
"""

OPERATOR_ACCEPTS = 8
"""Connections to the operator's listener that are accepted in one event loop iteration. Requests must not wait for
bursts of these connections, for example with wrong tokens."""

ListenerOpener = Callable[[PublicServer, Secured], Awaitable[asyncio.Server]]
"""Begins to accept connections for a server, with the given TLS options. Raises OSError."""


async def open_listener(
    public: PublicServer, host: str, port: int, options: Mapping[str, Any], accepts: int = ACCEPTS_PER_ITERATION
) -> asyncio.Server:
    """Begin to accept connections; `options` are passed to the loop's `create_server`. Raises OSError."""
    listener = await asyncio.get_running_loop().create_server(public, host, port, backlog=accepts, **options)
    for each in listener.sockets:
        with socket.socket(fileno=os.dup(each.fileno())) as same:
            same.listen(BACKLOG)
    return listener


def close_with(stack: AsyncExitStack, server: PublicServer, listener: asyncio.Server) -> None:
    """Add the closing of the listener to the stack: it first stops new connections, then new requests on open
    connections, and then closes all connections."""
    stack.push_async_callback(server.shutdown, STOP_AT_ONCE_TIMEOUT)
    stack.callback(server.pre_shutdown)
    stack.callback(listener.close)


def scheme_of(server: ServerSection) -> str:
    """Return the URL scheme of the public listener."""
    return "http" if server.tls is None else "https"


def url_of(scheme: str, host: str, listener: asyncio.Server) -> str:
    """Return the URL of a listener on `host`; a wildcard address can be called from this machine."""
    shown = f"[{host}]" if ":" in host else host
    return f"{scheme}://{shown}:{listener.sockets[0].getsockname()[1]}"


def with_reach(url: str, host: str) -> str:
    """Return a listener's URL for the log, with a note if it listens on all addresses."""
    reach = {"0.0.0.0": " (all addresses)", "::": " (all IPv6 addresses)"}.get(host, "")  # noqa: S104 - only compared
    return url + reach
