"""Bulkheads with a limit, and takers of their places. Never a test's own assertion."""

import asyncio

from providers.failure import FailureKind, UpstreamError
from proxy.bulkhead import Bulkhead
from proxy.concurrency_limit import BulkheadRules

SAID = FailureKind.RATE_LIMITED
RULES = BulkheadRules()


def taught_exactly(size: int) -> Bulkhead:
    """A bulkhead that has learned that so many are enough, for good."""
    bulkhead = Bulkhead(BulkheadRules(least=0, forget=1e9))
    bulkhead.limit.lost(SAID, 0.0, 0.0, size + 1)
    return bulkhead


def small(bound: int = 2) -> Bulkhead:
    """So many places by the operator's word."""
    return Bulkhead(RULES, bound)


def taught(in_flight: int, lone: str | None = None) -> Bulkhead:
    """A bulkhead that has learned from so many under way at second 0."""
    bulkhead = Bulkhead(RULES)
    bulkhead.limit.lost(SAID, 0.0, 0.0, in_flight, lone)
    return bulkhead


async def took(bulkhead: Bulkhead, team: str = "a") -> str:
    """What became of a take."""
    try:
        await bulkhead.take(team)
    except UpstreamError as error:
        return error.failure.kind.value
    return "place"


async def arrive(group: asyncio.TaskGroup, bulkhead: Bulkhead, team: str, count: int) -> "list[asyncio.Task[str]]":
    """So many takers of a team, in this order, who wait by now if they have to."""
    tasks = [group.create_task(took(bulkhead, team)) for _ in range(count)]
    await asyncio.sleep(0)
    return tasks
