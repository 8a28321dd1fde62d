"""Which addresses deployments may be reached at, checked after their names have been resolved."""

import socket

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from config.addresses import reach
from proxy.upstream.connect_failures import WithheldAddress


class GuardedResolver(AbstractResolver):
    """Resolves names, and withholds addresses that a base URL must not lead to.

    A vendor's name that resolves to a private or metadata address would send the operator's key inside; link-local
    (cloud metadata) is refused even where private addresses are allowed.
    """

    def __init__(self, allow_private: bool) -> None:
        self._inner = aiohttp.ThreadedResolver()
        self._allow_private = allow_private

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Return the permitted addresses. Raises OSError when there is none."""
        found = await self._inner.resolve(host, port, family)
        allowed = [entry for entry in found if address_allowed(entry["host"], self._allow_private)]
        if found and not allowed:
            raise WithheldAddress(None, "the name leads only to addresses that may not be called")
        return allowed

    async def close(self) -> None:
        """Release the inner resolver."""
        await self._inner.close()


def address_allowed(address: str, allow_private: bool) -> bool:
    """Return whether a deployment may be reached at an IP address."""
    where = reach(address.partition("%")[0])
    return where == "public" or (allow_private and where in ("private", "loopback"))
