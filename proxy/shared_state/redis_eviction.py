"""Warns if Redis may evict keys when its memory is full. The counts of evicted keys would begin at zero again, and each
limit would let one more burst pass.

The policy is read from the command INFO, because managed services forbid CONFIG but allow INFO. Source: redis.io, "Key
eviction" (November 2026).
"""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from config.sections.server_section import SharedSection
from proxy.shared_state.redis_sync import memory_facts

REPLY_TIMEOUT: Final = 2.0
"""The most seconds until a reply. No request waits for the reply."""

OPERATOR_TIMEOUT: Final = 2.0
"""The most seconds until a reply if an operator waits for it. On a busy machine the import of the client alone takes
one second."""

RETRY_EVERY: Final = 5.0
CHECK_EVERY: Final = 3600.0
"""Seconds until the next check: `RETRY_EVERY` after a failure, `CHECK_EVERY` after a reply."""

SAFE_POLICY: Final = "noeviction"

Command = Callable[[Sequence[str | bytes | int]], Awaitable[object]]
"""A function that sends a command. It raises ConnectionError if there is no reply, or an error."""

_KNOWN: Final = frozenset(
    f"{of}-{by}" for of in ("allkeys", "volatile") for by in ("lru", "lfu", "lrm", "random", "ttl")
)


def evicting_policy(reply: object) -> str | None:
    """Return the policy by which keys are evicted, from the reply to INFO as redis-py (8.1) parses it. Return `None` if
    no keys are evicted, or the reply does not contain the policy."""
    match reply:
        case {"maxmemory": int() as most, "maxmemory_policy": str() as policy} if most and policy in _KNOWN:
            return policy
        case _:
            return None


def eviction_warning(policy: str) -> str:
    """Return the warning about a policy, with its fix."""
    return (
        f"Redis evicts keys when its memory is full (maxmemory-policy {policy}), and limits would start anew: set "
        f"it to {SAFE_POLICY}"
    )


@dataclass(slots=True, eq=False)
class EvictionWatch:
    """Checks Redis regularly. `policy` is Redis's eviction policy; empty if Redis evicts no keys."""

    command: Command
    policy: str = ""

    async def run(self, log: logging.Logger) -> None:
        """Log a warning each time the policy changes to one that evicts keys, until cancelled."""
        while True:
            try:
                async with asyncio.timeout(REPLY_TIMEOUT):
                    policy = evicting_policy(await self.command(("INFO", "memory"))) or ""
            except (ConnectionError, TimeoutError):
                await asyncio.sleep(RETRY_EVERY)
                continue
            if policy and policy != self.policy:
                log.warning("shared state: %s", eviction_warning(policy))
            self.policy = policy
            await asyncio.sleep(CHECK_EVERY)


def policy_now(settings: SharedSection) -> str | None:
    """Query Redis once and return its eviction policy; `None` if it evicts no keys or does not reply in time. This
    blocks. If the lookup of the host hangs, it continues in a daemon thread, which ends with the process."""
    found: list[str | None] = []
    read_memory = partial(memory_facts, settings, OPERATOR_TIMEOUT)
    thread = threading.Thread(
        target=lambda: found.append(evicting_policy(read_memory())), name="redis-eviction", daemon=True
    )
    thread.start()
    thread.join(OPERATOR_TIMEOUT)
    return found[0] if found else None
