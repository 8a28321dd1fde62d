"""Reused connections to vendors: notes whether one was reused, and refuses those on which something has come since."""

import asyncio
import select
from contextvars import ContextVar
from functools import cached_property
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import aiohttp

if TYPE_CHECKING:
    from aiohttp.base_protocol import BaseProtocol
    from aiohttp.connector import Connection
    from aiohttp.tracing import Trace

reused: ContextVar[bool] = ContextVar("reused")
"""Whether the connection of the running call had carried an answer before."""


class NotingConnector(aiohttp.TCPConnector):
    """Notes whether a connection has been handed out before, which aiohttp does not tell, and hands out none on which
    something came since: aiohttp (3.14.5) takes it for the answer to the next call, perhaps another client's."""

    @cached_property
    def _seen(self) -> "WeakKeyDictionary[BaseProtocol, select.poll]":
        """The connections that were handed out, and a poll that shows whether something came on one since."""
        return WeakKeyDictionary()

    async def connect(
        self,
        req: aiohttp.ClientRequest,
        traces: "list[Trace]",
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - aiohttp's signature
    ) -> "Connection":
        """See BaseConnector."""
        connection = await super().connect(req, traces, timeout)
        while (protocol := connection.protocol) is not None and (arrivals := self._seen.get(protocol)) is not None:
            # Neither read by aiohttp nor still in the socket: bytes or the end.
            if not protocol.should_close and not _shows(connection, arrivals):
                reused.set(True)
                return connection
            connection.close()
            connection = await super().connect(req, traces, timeout)
        reused.set(False)
        transport = connection.transport
        if protocol is None or transport is None or transport.is_closing() or _signs(transport, _END).poll(0):
            connection.close()
            raise ClosedUnsent
        self._seen[protocol] = _signs(transport, select.POLLIN)
        return connection


class ClosedUnsent(aiohttp.ClientConnectionError):
    """A fresh connection was closed before anything was written to it; aiohttp reports that like any other end."""


_END = getattr(select, "POLLRDHUP", 0)
"""The other side has closed; a reset shows whatever is polled for. Some systems show nothing but a reset."""


def _signs(transport: asyncio.Transport, sign: int) -> "select.poll":
    """Return a poll for these signs on an open connection's socket, of which the loop may not know yet."""
    signs = select.poll()
    signs.register(transport.get_extra_info("socket").fileno(), sign)
    return signs


def _shows(connection: "Connection", signs: "select.poll") -> bool:
    """Return whether a connection shows one of the signs, or is gone."""
    transport = connection.transport
    return transport is None or transport.is_closing() or bool(signs.poll(0))
