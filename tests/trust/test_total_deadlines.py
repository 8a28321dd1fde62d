"""R22: each of 2,000 requests that exceed their deadline ends at it, and no attempt begins after it."""

import asyncio
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from random import Random
from typing import Final

import pytest
from typing_extensions import override

from providers.dialect import UpstreamRequest
from providers.failure import FailureKind, UpstreamError
from providers.unified_request import UnifiedRequest
from proxy.deadlines import DeadlinePassed
from proxy.deployment_health.circuit_breaker_rules import HealthRules
from proxy.deployment_health.concurrency_limit import ConcurrencyRules
from proxy.dispatch.exchange import Exchange
from proxy.dispatch.retry_rules import DeploymentRules, RetryRules
from proxy.dispatch.single_attempt import Dispatcher
from proxy.errors import upstream_failed
from proxy.request_record import RequestRecord
from proxy.teams.retry_budget import BudgetRules
from proxy.telemetry.request_outcomes import record_failure
from proxy.upstream.transport import Repeats, UpstreamResponse
from tests.proxy.kit.dispatch_rig import OK, Behaviour, Rig, fails, hangs, refuses
from tests.proxy.kit.mark_streams import Body
from tests.proxy.kit.virtual_time import run

REQUESTS: Final = 2_000
EXACT: Final = 1e-6

PATIENT: Final = DeploymentRules(
    HealthRules(failures=10**9, window_least=10**9, hanging_least=10**9),
    ConcurrencyRules(least=10**6),
    RetryRules(budget=BudgetRules(least=10**9)),
)
"""No circuit opens, no request waits, and the retry budget is never empty: only time ends a request."""


@dataclass
class Timed(Rig):
    """A rig that records the request of each attempt."""

    begun: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    @override
    async def open(self, request: UpstreamRequest, request_id: str, repeats: Repeats = ()) -> UpstreamResponse:
        self.begun[request_id].append(asyncio.get_running_loop().time())
        return await super().open(request, request_id, repeats)


@dataclass(frozen=True, slots=True)
class Ended:
    name: str
    started: float
    limit: float
    took: float
    status: int


def mixed(draw: Random) -> list[Behaviour]:
    """Return a deployment with a random behaviour each time: it hangs before or in its response, responds late or well,
    or fails at once or late."""

    def behave() -> Behaviour:
        match draw.randrange(6):
            case 0:
                return hangs()
            case 1:
                return hangs(b":", b": ")
            case 2:
                return lambda: Body(draw.uniform(0, 60), b"+late", b"")
            case 3:
                return refuses("server", 500, draw.uniform(0, 30))
            case 4:
                return fails(FailureKind.CONNECT)
            case _:
                return OK

    return [lambda: behave()()]


def wordless(draw: Random) -> list[Behaviour]:
    """Return a deployment that accepts every request, after a random delay, and never sends content."""
    return [lambda: Body(draw.uniform(0, 100), b":", 1e6, b"")]


async def one(rig: Timed, dispatcher: Dispatcher, number: int, limit: float, stream: bool) -> Ended:
    """Send a request, and return its end, whether good or bad."""
    clock = asyncio.get_running_loop().time
    name = f"req-{number}"
    record = RequestRecord(name, clock(), "openai", "/", model="v/m")
    job: Exchange[UnifiedRequest] = replace(rig.job(limit), record=record)
    started = clock()
    try:
        with job.deadlines:
            if stream:
                async with await dispatcher.streamed(job):
                    status = 200
            else:
                await dispatcher.whole(job)
                status = 200
    except (UpstreamError, DeadlinePassed) as error:
        status = upstream_failed(record_failure(record, error), len(record.attempts)).facts.status
    return Ended(name, started, limit, clock() - started, status)


async def asked(rig: Timed, draw: Random) -> list[Ended]:
    """Send all requests of a run, each with a limit of its own, a hundred a second."""
    dispatcher = rig.dispatcher()

    async def later(number: int) -> Ended:
        await asyncio.sleep(number / 100)
        return await one(rig, dispatcher, number, draw.uniform(0.05, 90.0), draw.random() < 0.5)

    return await asyncio.gather(*(later(number) for number in range(REQUESTS // 2)))


def in_time(rig: Timed, ended: list[Ended]) -> None:
    """Assert that no request outlives its limit, and that no attempt begins after it."""
    for each in ended:
        assert each.took <= each.limit + EXACT, each
        assert all(begun < each.started + each.limit for begun in rig.begun[each.name]), each


def test_who_is_never_answered_is_told_so_at_the_limit() -> None:
    draw = Random(1)
    rig = Timed({"a": wordless(draw), "b": wordless(draw)}, PATIENT, draw=draw.random)
    ended = run(asked(rig, draw))
    in_time(rig, ended)
    assert {each.status for each in ended} == {504}
    # The last deployment may use all the remaining time, so the request's own limit ends it.
    assert all(abs(each.took - each.limit) <= EXACT for each in ended)
    assert {len(rig.begun[each.name]) for each in ended} == {2}


@pytest.mark.thorough
def test_whatever_deployments_do_nothing_goes_on_after_the_limit() -> None:
    draw = Random(2)
    rig = Timed({"a": mixed(draw), "b": mixed(draw), "c": mixed(draw)}, PATIENT, draw=draw.random)
    ended = run(asked(rig, draw))
    in_time(rig, ended)
    statuses = Counter(each.status for each in ended)
    assert statuses.keys() >= {200, 502, 504}
    assert statuses[504] >= 50
    assert max(len(times) for times in rig.begun.values()) == 3
