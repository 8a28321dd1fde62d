"""The operator's listener: of those who have not shown the token, few connections at a time.

A crowd that opens thousands of connections and sends a wrong token on all of them at once would take the event loop
from the requests of clients for 20 to 60 us each. Of so few connections it takes 4 ms before others have their turn,
and each further one has to be made anew, of which the listener takes a few at a time.

Health probes show no token either. Kubernetes makes a connection for each, and asks at once; load balancers keep theirs
and ask every few seconds. From its first question on, a connection that asks for health alone is counted apart, so that
a crowd that guesses tokens takes none of their places.
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
"""Bytes of a body that the admin listener reads past; it takes none."""

MOST_STRANGERS: Final = 64
"""Connections that are open on which the token has not been shown. The oldest gives way to another one."""

MOST_PROBES: Final = 16
"""Connections besides that have asked for health alone. Whoever has not asked for longest gives way: it has been
answered."""


class AdminServer(PublicServer):
    """See the module."""

    def __init__(self, admin: Admin, guard: BrowserGuard) -> None:
        super().__init__(self._operate, ADMIN_BODY, error_body, guard)
        self._admin = admin
        self._strangers: dict[RequestHandler, asyncio.Transport] = {}
        self._probes: dict[RequestHandler, asyncio.Transport] = {}

    def connection_made(self, handler: RequestHandler, transport: asyncio.Transport) -> None:
        """Keep a new connection, in place of the oldest one where there are too many. Called by aiohttp."""
        super().connection_made(handler, transport)
        strangers = self._strangers
        strangers[handler] = transport
        if len(strangers) > MOST_STRANGERS:
            strangers.pop(next(iter(strangers))).abort()

    def connection_lost(self, handler: RequestHandler, exc: BaseException | None = None) -> None:
        """Forget a connection that has ended. Called by aiohttp."""
        self._known(handler)
        super().connection_lost(handler, exc)

    def _known(self, handler: RequestHandler) -> asyncio.Transport | None:
        """Count a connection no more, and return its transport, None where it was not counted."""
        return self._strangers.pop(handler, None) or self._probes.pop(handler, None)

    def _probed(self, handler: RequestHandler) -> None:
        """Count a connection as one that asks for health, the last to have asked."""
        transport, probes = self._known(handler), self._probes
        if transport is not None:
            probes[handler] = transport
            if len(probes) > MOST_PROBES:
                probes.pop(next(iter(probes))).abort()

    def _operate(self, http: web.BaseRequest) -> Awaitable[web.StreamResponse]:
        if self._admin.permits(http):
            self._known(http.protocol)
        elif path_of(http) in HEALTH_PATHS:
            self._probed(http.protocol)
        return self._admin.handle(http)
