"""The public and the operator's listener: how they begin to accept, how they close, and the URLs they are told by."""

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from typing import Any

from config.sections.server_section import ServerSection
from proxy.listener.http_connection import PublicServer
from proxy.listener.tls import Secured
from proxy.process.shutdown import AT_ONCE

BACKLOG = 1024
"""Connections that the kernel keeps until they are accepted."""

ACCEPTED_AT_ONCE = 128
"""Connections that are accepted in one turn of the loop. asyncio (3.11 at least) takes as many as the backlog holds,
which makes requests in flight wait while a crowd arrives: of 128 a turn takes up to 16 ms, of 32 up to 7. With 32,
accepting loses against the requests that start in each turn, and refusals wait for it: in the first second of 8,000
requests, most of them on new connections, 1,300 to 5,000 were refused later than 50 ms after they were sent, with 128
400 to 1,600."""

OPERATORS_AT_ONCE = 8
"""The same for the operator's listener, whose crowds, of wrong tokens for one, requests are not to wait for."""

ListenerOpener = Callable[[PublicServer, Secured], Awaitable[asyncio.Server]]
"""Begins to accept connections for a server, with the given TLS options. Raises OSError."""


async def open_listener(
    public: PublicServer, host: str, port: int, options: Mapping[str, Any], at_once: int = ACCEPTED_AT_ONCE
) -> asyncio.Server:
    """Begin to accept connections; `options` are passed to the loop's `create_server`. Raises OSError."""
    listener = await asyncio.get_running_loop().create_server(public, host, port, backlog=at_once, **options)
    for each in listener.sockets:
        with socket.socket(fileno=os.dup(each.fileno())) as same:
            same.listen(BACKLOG)
    return listener


def close_with(stack: AsyncExitStack, server: PublicServer, listener: asyncio.Server) -> None:
    """Let the stack end first new connections, then new requests on the old ones, then all connections."""
    stack.push_async_callback(server.shutdown, AT_ONCE)
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
    """Return a listener's URL for the log, with a note where it listens on more than one address."""
    reach = {"0.0.0.0": " (all addresses)", "::": " (all IPv6 addresses)"}.get(host, "")  # noqa: S104 - only compared
    return url + reach
