"""Who counts a gateway's limits where several processes share them."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from proxy.limits.lease_book import LeaseBook
from proxy.shared_state.lease import LeaseSource
from proxy.shared_state.redis_leases import RedisLeases
from proxy.shared_state.redis_sync import SharedState


@dataclass(frozen=True, slots=True)
class Siblings:
    """The processes of one gateway: how many serve, who counts for them where there is no Redis, and which of them this
    one is, from 1."""

    processes: int = 1
    source: LeaseSource | None = None
    number: int = 1


ALONE: Final = Siblings()
"""One process that serves, and counts by itself."""


def lease_book(shared: SharedState | None, siblings: Siblings, clock: Callable[[], float]) -> LeaseBook | None:
    """Return what fetches leases, from Redis where the table has it, otherwise from the supervisor; None where this
    process counts by itself."""
    source = siblings.source
    if shared is not None:
        source = RedisLeases(shared.run_script, shared.prefix, secrets.token_hex(8))
    return None if source is None else LeaseBook(source, siblings.processes, clock)
