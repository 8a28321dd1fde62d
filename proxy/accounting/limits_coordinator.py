"""Who counts a gateway's limits where several processes share them."""

import secrets
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from proxy.limits.lease_registry import LeaseRegistry
from proxy.shared_state.lease import LeaseSource
from proxy.shared_state.redis_leases import RedisLeases
from proxy.shared_state.redis_sync import SharedState


@dataclass(slots=True, eq=False)
class EndedSiblings:
    """Receives the names of ended processes from the supervisor. `release_ended` gives back a process's leases."""

    release_ended: Callable[[str], Awaitable[None]] | None = None

    async def hear(self, process: str) -> None:
        """Pass it on."""
        if self.release_ended is not None:
            with suppress(ConnectionError):  # then it comes back by itself within seconds
                await self.release_ended(process)


@dataclass(frozen=True, slots=True)
class Siblings:
    """The processes of one gateway: how many serve, who counts for them where there is no Redis, which of them this
    one is, from 1, the name that it has among all gateways (none: it makes one up), and who hears which have ended."""

    processes: int = 1
    source: LeaseSource | None = None
    number: int = 1
    name: str = ""
    ended: EndedSiblings | None = None


ALONE: Final = Siblings()
"""One process that serves, and counts by itself."""


def lease_book(shared: SharedState | None, siblings: Siblings, clock: Callable[[], float]) -> LeaseRegistry | None:
    """Return what fetches leases, from Redis where the table has it, otherwise from the supervisor; None where this
    process counts by itself."""
    source = siblings.source
    if shared is not None:
        source = counted = RedisLeases(shared.run_script, shared.prefix, siblings.name or secrets.token_hex(8))
        if siblings.ended is not None:
            siblings.ended.release_ended = counted.release_ended
    if source is None:
        return None
    leases = LeaseRegistry(source, siblings.processes, clock)
    if shared is not None:
        leases.expect_other_gateways()
    return leases
