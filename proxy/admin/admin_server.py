"""The operator's listener: it allows few connections whose client has not yet sent the token.

If a flood opens thousands of connections and sends a wrong token on all of them at once, each request takes 20 to 60 us
of the event loop from the requests of clients. With the limit, a flood takes 4 ms before other work runs. It then has
to open new connections, and the listener accepts only a few of them at a time.

Health probes do not send the token either. Kubernetes opens a connection for each probe and sends the request at once;
load balancers keep their connection open and send a request every few seconds. From its first health request on, a
connection is counted separately, so that a flood that guesses tokens cannot take its slot.
"""

import asyncio
from collections.abc import Awaitable
from typing import Final

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from proxy.admin.admin_endpoints import Admin, error_body
from proxy.listener.cors_and_host_names import BrowserGuard
from proxy.listener.health_endpoints import HEALTH_PATHS
from proxy.listener.http_connection import PublicServer, path_of

ADMIN_BODY: Final = 1024
"""The most bytes of a request body that the admin listener reads and discards. No endpoint takes a body."""

MOST_WITHOUT_TOKEN: Final = 64
"""The most open connections on which the token has not been sent. A new one closes the oldest one."""

MOST_PROBES: Final = 16
"""The most additional connections that have only requested health. A new one closes the connection whose last request
is the oldest: that request has been answered."""


class AdminServer(PublicServer):
    """The listener of the operator's endpoints, with a limit on connections without the token."""

    def __init__(self, admin: Admin, guard: BrowserGuard) -> None:
        super().__init__(self._operate, ADMIN_BODY, error_body, guard)
        self._admin = admin
        self._without_token: dict[RequestHandler, asyncio.Transport] = {}
        self._probes: dict[RequestHandler, asyncio.Transport] = {}

    def connection_made(self, handler: RequestHandler, transport: asyncio.Transport) -> None:
        """Count a new connection, and close the oldest one if there are too many. Called by aiohttp."""
        super().connection_made(handler, transport)
        without_token = self._without_token
        without_token[handler] = transport
        if len(without_token) > MOST_WITHOUT_TOKEN:
            without_token.pop(next(iter(without_token))).abort()

    def connection_lost(self, handler: RequestHandler, exc: BaseException | None = None) -> None:
        """Stop counting a connection that has ended. Called by aiohttp."""
        self._uncount(handler)
        super().connection_lost(handler, exc)

    def _uncount(self, handler: RequestHandler) -> asyncio.Transport | None:
        """Stop counting a connection, and return its transport, `None` if it was not counted."""
        return self._without_token.pop(handler, None) or self._probes.pop(handler, None)

    def _count_probe(self, handler: RequestHandler) -> None:
        """Count a connection as a health probe whose last request is the newest."""
        transport, probes = self._uncount(handler), self._probes
        if transport is not None:
            probes[handler] = transport
            if len(probes) > MOST_PROBES:
                probes.pop(next(iter(probes))).abort()

    def _operate(self, http: web.BaseRequest) -> Awaitable[web.StreamResponse]:
        if self._admin.permits(http):
            self._uncount(http.protocol)
        elif path_of(http) in HEALTH_PATHS:
            self._count_probe(http.protocol)
        return self._admin.handle(http)
