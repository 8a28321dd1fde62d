"""Warns of a Redis that may throw keys away when its memory is full: what is counted there would begin anew, and each
limit pass one burst more.

Source: redis.io, "Key eviction" and the command INFO, which managed services allow where CONFIG is forbidden (November
2026).
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

LIMIT: Final = 2.0
"""Seconds for an answer: no request waits for it."""

AT_ONCE: Final = 2.0
"""Seconds for an answer to an operator who waits for it; on a busy machine the client's import alone takes one."""

AGAIN: Final = 5.0
LOOK_EVERY: Final = 3600.0
"""Seconds until it is asked again, after no answer and after one."""

SAFE: Final = "noeviction"

Command = Callable[[Sequence[str | bytes | int]], Awaitable[object]]
"""Sends a command. Raises ConnectionError where there is no reply, or an error."""

_KNOWN: Final = frozenset(
    f"{of}-{by}" for of in ("allkeys", "volatile") for by in ("lru", "lfu", "lrm", "random", "ttl")
)


def evicting_policy(reply: object) -> str | None:
    """Return by what policy keys are thrown away, by the reply to INFO, which redis-py (8.1) reads; None where none
    are, or it does not say."""
    match reply:
        case {"maxmemory": int() as most, "maxmemory_policy": str() as policy} if most and policy in _KNOWN:
            return policy
        case _:
            return None


def eviction_words(policy: str) -> str:
    """Return what is wrong with a policy, and what to do."""
    return (
        f"Redis throws keys away when its memory is full (maxmemory-policy {policy}), and limits would begin anew: set "
        f"it to {SAFE}"
    )


@dataclass(slots=True, eq=False)
class EvictionWatch:
    """Asks Redis every now and then; `policy` is that by which it throws keys away, empty where it does not."""

    command: Command
    policy: str = ""

    async def run(self, log: logging.Logger) -> None:
        """Log each change for the worse until cancelled."""
        while True:
            try:
                async with asyncio.timeout(LIMIT):
                    policy = evicting_policy(await self.command(("INFO", "memory"))) or ""
            except (ConnectionError, TimeoutError):
                await asyncio.sleep(AGAIN)
                continue
            if policy and policy != self.policy:
                log.warning("shared state: %s", eviction_words(policy))
            self.policy = policy
            await asyncio.sleep(LOOK_EVERY)


def policy_now(settings: SharedSection) -> str | None:
    """Ask Redis once and return by what policy it throws keys away; None where it does not, or does not answer at once.
    Blocks, and leaves a lookup that hangs to a thread that ends with the process."""
    found: list[str | None] = []
    ask = partial(memory_facts, settings, AT_ONCE)
    asking = threading.Thread(target=lambda: found.append(evicting_policy(ask())), name="redis-eviction", daemon=True)
    asking.start()
    asking.join(AT_ONCE)
    return found[0] if found else None
