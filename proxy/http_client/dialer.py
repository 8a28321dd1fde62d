"""Makes connections: resolves, checks and dials addresses, and shakes hands by TLS.

Of several addresses the next is tried after 0.25 s, families in turns (RFC 8305), by aiohappyeyeballs.
"""

import asyncio
import ssl
from functools import lru_cache
from typing import Final, NamedTuple

import aiohappyeyeballs

from providers.vendor_credential import Authorities
from proxy.http_client.address_guard import GuardedResolver, in_own_network
from proxy.http_client.connection_pool import ConnectionPool
from proxy.http_client.http1_connection import Http1Connection

NEXT_ADDRESS: Final = 0.25
"""Seconds after which another address is tried beside the first."""


class Destination(NamedTuple):
    """What calls must have in common to share connections. `twice` says whether their requests may be sent twice."""

    host: str
    port: int
    secure: bool
    allow_private: bool
    authorities: Authorities | None
    twice: bool


@lru_cache(maxsize=256)
def tls(authorities: Authorities | None = None) -> ssl.SSLContext:
    """Return the TLS context of https calls: a certificate for the host, from one of the given authorities or else from
    one that the system trusts or the file SSL_CERT_FILE holds, and TLS 1.2 or newer, which some builds of Python leave
    to OpenSSL's configuration.

    Cached, because it takes long to make; bounded, because files of authorities change.
    """
    context = ssl.create_default_context(cadata=None if authorities is None else authorities.pem)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


class Dialer:
    """Makes the connections of a pool. `trusted` is the context of calls without authorities of their own."""

    __slots__ = ("_pool", "resolvers", "trusted")

    def __init__(self, pool: ConnectionPool) -> None:
        self._pool = pool
        self.resolvers = {allow_private: GuardedResolver(allow_private) for allow_private in (False, True)}
        self.trusted = tls()

    async def dial(self, to: Destination, idle: float, within: float) -> Http1Connection:
        """Return a new connection, made within so many seconds, which may be idle for `idle` seconds. Raises OSError,
        of which TimeoutError and TLS's exceptions are kinds."""
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(within):
            addresses = await self.resolvers[to.allow_private].resolve(to.host, to.port)
            if not to.secure:
                addresses = in_own_network(addresses)
            try:
                sock = await aiohappyeyeballs.start_connection(
                    addresses, happy_eyeballs_delay=NEXT_ADDRESS, interleave=1, loop=loop
                )
            except RuntimeError as error:
                raise OSError(str(error)) from error  # uvloop's, where a socket was closed meanwhile
            connection = Http1Connection(self._pool, to, idle)
            context = self._context(to)
            name = None if context is None else to.host.rstrip(".")
            await loop.create_connection(lambda: connection, sock=sock, ssl=context, server_hostname=name)
        return connection

    def _context(self, to: Destination) -> ssl.SSLContext | None:
        """Return the TLS context of calls to a destination, `None` if it is called in plain HTTP."""
        if not to.secure:
            return None
        return self.trusted if to.authorities is None else tls(to.authorities)
