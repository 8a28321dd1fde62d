"""Concurrency limits of known size, and requests that take or wait for their slots."""

import asyncio

from providers.failure import FailureKind, UpstreamError
from proxy.deployment_health.concurrency_limit import ConcurrencyRules
from proxy.deployment_health.deployment_queue import DeploymentQueue

SAID = FailureKind.RATE_LIMITED
RULES = ConcurrencyRules()


def taught_exactly(size: int) -> DeploymentQueue:
    """Return a queue that has learned a limit of `size` which does not expire."""
    queue = DeploymentQueue(ConcurrencyRules(least=0, forget=1e9))
    queue.limit.lost(SAID, 0.0, 0.0, size + 1)
    return queue


def small(bound: int = 2) -> DeploymentQueue:
    """Return a queue with `bound` slots by the operator's setting."""
    return DeploymentQueue(RULES, bound)


def taught(in_flight: int, lone: str | None = None) -> DeploymentQueue:
    """Return a queue that has learned from a failure at second 0 with `in_flight` requests in flight."""
    queue = DeploymentQueue(RULES)
    queue.limit.lost(SAID, 0.0, 0.0, in_flight, lone)
    return queue


async def took(queue: DeploymentQueue, team: str = "a") -> str:
    """Return the result of a take: `place`, or the kind of the failure."""
    try:
        await queue.take(team)
    except UpstreamError as error:
        return error.failure.kind.value
    return "place"


async def arrive(group: asyncio.TaskGroup, queue: DeploymentQueue, team: str, count: int) -> "list[asyncio.Task[str]]":
    """Start `count` takers of a team in this order. They wait by now unless there was a free slot."""
    tasks = [group.create_task(took(queue, team)) for _ in range(count)]
    await asyncio.sleep(0)
    return tasks
