"""The choice of the coordinator that counts a gateway's limits over several processes."""

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
    """The supervisor's reports of processes that have ended. `release_ended` makes the coordinator free their units."""

    release_ended: Callable[[str], Awaitable[None]] | None = None

    async def notify(self, process: str) -> None:
        """Free the units of a process that has ended."""
        if self.release_ended is not None:
            with suppress(ConnectionError):  # If the notice fails, the units lapse by themselves within seconds.
                await self.release_ended(process)


@dataclass(frozen=True, slots=True)
class Siblings:
    """The processes of one gateway. `processes` is how many serve. `source` is their coordinator if there is no Redis.
    `number` is the number of this process, from 1. `name` is its name among the processes of all gateways (empty: it
    chooses one). `ended` receives the processes that have ended."""

    processes: int = 1
    source: LeaseSource | None = None
    number: int = 1
    name: str = ""
    ended: EndedSiblings | None = None


SINGLE_PROCESS: Final = Siblings()
"""A single serving process, which counts by itself."""


def make_leases(shared: SharedState | None, siblings: Siblings, clock: Callable[[], float]) -> LeaseRegistry | None:
    """Return the registry that fetches leases from Redis if it is configured, otherwise from the supervisor. Return
    `None` if this process counts by itself."""
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
