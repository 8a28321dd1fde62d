"""Concurrency limits of known size, and requests that take or wait for their places."""

import asyncio

from providers.failure import FailureKind, UpstreamError
from proxy.deployment_health.concurrency_limit import ConcurrencyRules
from proxy.deployment_health.deployment_queue import DeploymentQueue

SAID = FailureKind.RATE_LIMITED
RULES = ConcurrencyRules()


def taught_exactly(size: int) -> DeploymentQueue:
    """A bulkhead that has learned that so many are enough, for good."""
    queue = DeploymentQueue(ConcurrencyRules(least=0, forget=1e9))
    queue.limit.lost(SAID, 0.0, 0.0, size + 1)
    return queue


def small(bound: int = 2) -> DeploymentQueue:
    """So many places by the operator's word."""
    return DeploymentQueue(RULES, bound)


def taught(in_flight: int, lone: str | None = None) -> DeploymentQueue:
    """A bulkhead that has learned from so many under way at second 0."""
    queue = DeploymentQueue(RULES)
    queue.limit.lost(SAID, 0.0, 0.0, in_flight, lone)
    return queue


async def took(queue: DeploymentQueue, team: str = "a") -> str:
    """What became of a take."""
    try:
        await queue.take(team)
    except UpstreamError as error:
        return error.failure.kind.value
    return "place"


async def arrive(group: asyncio.TaskGroup, queue: DeploymentQueue, team: str, count: int) -> "list[asyncio.Task[str]]":
    """So many takers of a team, in this order, who wait by now if they have to."""
    tasks = [group.create_task(took(queue, team)) for _ in range(count)]
    await asyncio.sleep(0)
    return tasks
