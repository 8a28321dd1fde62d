"""Warns of a Redis that may throw keys away when its memory is full: what is counted there would begin anew, and each
limit pass one burst more.

Source: redis.io, "Key eviction" and the command INFO, which managed services allow where CONFIG is forbidden (November
2026).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

LIMIT: Final = 2.0
"""Seconds for an answer: no request waits for it."""

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


async def watch_eviction(command: Command, log: logging.Logger) -> None:
    """Log each change for the worse until cancelled."""
    before = None
    while True:
        try:
            async with asyncio.timeout(LIMIT):
                policy = evicting_policy(await command(("INFO", "memory")))
        except (ConnectionError, TimeoutError):
            await asyncio.sleep(AGAIN)
            continue
        if policy is not None and policy != before:
            log.warning(
                "shared state: Redis throws keys away when its memory is full (maxmemory-policy %s), and limits would "
                "begin anew: set it to %s",
                *(policy, SAFE),
            )
        before = policy
        await asyncio.sleep(LOOK_EVERY)
