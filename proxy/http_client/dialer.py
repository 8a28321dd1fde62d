"""Opens connections: resolves names, checks and connects to addresses, and performs the TLS handshake.

If a name has several addresses, aiohappyeyeballs tries the next one after 0.25 s, with alternating families (RFC 8305).
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
"""Seconds after which another address is tried in parallel."""


class Destination(NamedTuple):
    """The destination of calls. Calls with equal destinations share connections. `twice` says whether their requests
    may be sent twice."""

    host: str
    port: int
    secure: bool
    allow_private: bool
    authorities: Authorities | None
    twice: bool


@lru_cache(maxsize=256)
def tls(authorities: Authorities | None = None) -> ssl.SSLContext:
    """Return the TLS context of https calls. It requires a certificate for the host from one of the given authorities,
    by default from an authority that the system trusts or that is in the file SSL_CERT_FILE. It also requires TLS 1.2
    or newer; some builds of Python leave the version to OpenSSL's configuration.

    Contexts are cached because creating one takes long. The cache is bounded because files of authorities change.
    """
    context = ssl.create_default_context(cadata=None if authorities is None else authorities.pem)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


class Dialer:
    """Opens the connections of a pool. `trusted` is the TLS context of calls without their own authorities, `None`
    until it is loaded."""

    __slots__ = ("_pool", "resolvers", "trusted")

    def __init__(self, pool: ConnectionPool) -> None:
        self._pool = pool
        self.resolvers = {allow_private: GuardedResolver(allow_private) for allow_private in (False, True)}
        self.trusted: ssl.SSLContext | None = None

    async def load_authorities(self) -> ssl.SSLContext:
        """Return the TLS context of calls without their own authorities. It is created in a thread on first use,
        because reading the authorities that the system trusts takes 30 ms and 1 MB."""
        if self.trusted is None:
            made = await asyncio.to_thread(tls)
            self.trusted = self.trusted or made
        return self.trusted

    async def dial(self, to: Destination, idle: float, within: float) -> Http1Connection:
        """Return a new connection, opened within `within` seconds, which may be idle for `idle` seconds. Raises
        OSError, which includes TimeoutError and TLS exceptions."""
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(within):
            addresses = await self.resolvers[to.allow_private].resolve(to.host, to.port)
            context = None
            if not to.secure:
                addresses = in_own_network(addresses)
            elif to.authorities is None:
                context = self.trusted or await self.load_authorities()
            else:
                context = tls(to.authorities)
            try:
                sock = await aiohappyeyeballs.start_connection(
                    addresses, happy_eyeballs_delay=NEXT_ADDRESS, interleave=1, loop=loop
                )
            except RuntimeError as error:
                raise OSError(str(error)) from error  # uvloop's error if a socket was closed meanwhile
            connection = Http1Connection(self._pool, to, idle)
            name = None if context is None else to.host.rstrip(".")
            await loop.create_connection(lambda: connection, sock=sock, ssl=context, server_hostname=name)
        return connection
