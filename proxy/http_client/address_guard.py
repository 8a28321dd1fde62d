"""Which addresses deployments may be reached at, checked after their names have been resolved."""

import asyncio
import socket
from typing import Final, TypeAlias, cast

from config.addresses import reach
from proxy.http_client.connect_failures import WithheldAddress

KEPT: Final = 10.0
"""Seconds for which the addresses of a name are kept. That a name has none is not kept."""

Found: TypeAlias = tuple[socket.AddressFamily, socket.SocketKind, int, str, tuple[str, int] | tuple[str, int, int, int]]
"""What `getaddrinfo` returns of each address."""


class GuardedResolver:
    """Resolves names, and withholds addresses that a base URL must not lead to.

    A vendor's name that resolves to a private or metadata address would send the operator's key inside; link-local
    (cloud metadata) is refused even where private addresses are allowed. Calls of one name wait for one look-up: those
    of a slow name must not take all threads of the loop.
    """

    def __init__(self, allow_private: bool) -> None:
        self._allow_private = allow_private
        self._kept: dict[tuple[str, int], tuple[float, list[Found]]] = {}
        self._under_way: dict[tuple[str, int], asyncio.Future[list[Found]]] = {}

    async def resolve(self, host: str, port: int = 0) -> list[Found]:
        """Return the permitted addresses. Raises OSError when there is none."""
        found = _numeric(host, port) or await self._addresses(host, port)
        allowed = [each for each in found if address_allowed(str(each[4][0]), self._allow_private)]
        if not allowed:
            raise WithheldAddress(None, "the name leads only to addresses that may not be called")
        return allowed

    async def _addresses(self, host: str, port: int) -> list[Found]:
        loop = asyncio.get_running_loop()
        key, now = (host, port), loop.time()
        kept = self._kept.get(key)
        if kept is not None and now < kept[0]:
            return kept[1]
        future = self._under_way.get(key)
        if future is None:
            self._kept = {each: kept for each, kept in self._kept.items() if now < kept[0]}
            future = self._under_way[key] = self._look_up(host, port)
            future.add_done_callback(lambda done: self._looked_up(key, done))
        return await asyncio.shield(future)

    def _look_up(self, host: str, port: int) -> "asyncio.Future[list[Found]]":
        return asyncio.get_running_loop().run_in_executor(None, _resolved, host, port)

    def _looked_up(self, key: tuple[str, int], done: "asyncio.Future[list[Found]]") -> None:
        del self._under_way[key]
        # The exception is retrieved here as well: those who waited may have gone.
        if not done.cancelled() and done.exception() is None:
            self._kept[key] = (done.get_loop().time() + KEPT, done.result())


def _numeric(host: str, port: int) -> list[Found]:
    """Return a host that is an address already; that needs no thread."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except (socket.gaierror, UnicodeError):
        return []
    return cast(list[Found], found)


def _resolved(host: str, port: int) -> list[Found]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
    except UnicodeError:
        # What cannot be written in the DNS has no address there.
        raise socket.gaierror(socket.EAI_NONAME, "not a name") from None
    return cast(list[Found], found)  # typeshed allows addresses of a build without IPv6


def in_own_network(found: list[Found]) -> list[Found]:
    """Return the addresses that plain http may be sent to: not the public ones, since keys and prompts could be read
    on the way there. Raises OSError if there is none."""
    own = [each for each in found if reach(str(each[4][0]).partition("%")[0]) != "public"]
    if not own:
        raise WithheldAddress(None, "the name leads only to public addresses, which plain http may not be sent to")
    return own


def address_allowed(address: str, allow_private: bool) -> bool:
    """Return whether a deployment may be reached at an IP address."""
    where = reach(address.partition("%")[0])
    return where == "public" or (allow_private and where in ("private", "loopback"))
