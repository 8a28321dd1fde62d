"""Checks which addresses of a deployment's host name may be called, after the name has been resolved."""

import asyncio
import socket
from typing import Final, TypeAlias, cast

from config.addresses import reach
from proxy.http_client.connect_failures import WithheldAddress

CACHED_SECONDS: Final = 10.0
"""Seconds for which the addresses of a name are cached. A failed look-up is not cached."""

Found: TypeAlias = tuple[socket.AddressFamily, socket.SocketKind, int, str, tuple[str, int] | tuple[str, int, int, int]]
"""An entry of the result of `getaddrinfo`."""


class GuardedResolver:
    """Resolves names, and withholds addresses that must not be called.

    If a vendor's name resolved to a private or metadata address, the operator's key would be sent into the internal
    network. Link-local addresses (cloud metadata) are refused even if private addresses are allowed. Concurrent calls
    of one name share one look-up, so that a slow name does not occupy all threads of the event loop.
    """

    def __init__(self, allow_private: bool) -> None:
        self._allow_private = allow_private
        self._cached: dict[tuple[str, int], tuple[float, list[Found]]] = {}
        self._lookups: dict[tuple[str, int], asyncio.Future[list[Found]]] = {}

    async def resolve(self, host: str, port: int = 0) -> list[Found]:
        """Return the permitted addresses. Raises OSError if there are none."""
        found = _numeric(host, port) or await self._addresses(host, port)
        allowed = [each for each in found if address_allowed(str(each[4][0]), self._allow_private)]
        if not allowed:
            raise WithheldAddress(None, "the name leads only to addresses that may not be called")
        return allowed

    async def _addresses(self, host: str, port: int) -> list[Found]:
        loop = asyncio.get_running_loop()
        key, now = (host, port), loop.time()
        cached = self._cached.get(key)
        if cached is not None and now < cached[0]:
            return cached[1]
        future = self._lookups.get(key)
        if future is None:
            self._cached = {each: cached for each, cached in self._cached.items() if now < cached[0]}
            future = self._lookups[key] = self._look_up(host, port)
            future.add_done_callback(lambda done: self._cache_lookup(key, done))
        return await asyncio.shield(future)

    def _look_up(self, host: str, port: int) -> "asyncio.Future[list[Found]]":
        return asyncio.get_running_loop().run_in_executor(None, _resolved, host, port)

    def _cache_lookup(self, key: tuple[str, int], done: "asyncio.Future[list[Found]]") -> None:
        del self._lookups[key]
        # The exception is also retrieved here, because all waiting calls may have been cancelled, and asyncio would log
        # it.
        if not done.cancelled() and done.exception() is None:
            self._cached[key] = (done.get_loop().time() + CACHED_SECONDS, done.result())


def _numeric(host: str, port: int) -> list[Found]:
    """Return the address if the host is an IP address, else an empty list. This needs no look-up in a thread."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except (socket.gaierror, UnicodeError):
        return []
    return cast(list[Found], found)


def _resolved(host: str, port: int) -> list[Found]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
    except UnicodeError:
        # A name that cannot be encoded for the DNS has no address.
        raise socket.gaierror(socket.EAI_NONAME, "not a name") from None
    return cast(list[Found], found)  # typeshed includes the addresses of a build without IPv6


def in_own_network(found: list[Found]) -> list[Found]:
    """Return the addresses to which plain http may be sent. Public addresses are excluded, since keys and prompts could
    be read in transit. Raises OSError if there are none."""
    own = [each for each in found if reach(str(each[4][0]).partition("%")[0]) != "public"]
    if not own:
        raise WithheldAddress(None, "the name leads only to public addresses, which plain http may not be sent to")
    return own


def address_allowed(address: str, allow_private: bool) -> bool:
    """Return whether a deployment may be called at an IP address."""
    where = reach(address.partition("%")[0])
    return where == "public" or (allow_private and where in ("private", "loopback"))
