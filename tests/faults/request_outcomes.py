"""Checks of how a request to a faulty vendor ends: response, access log, metrics and deployment health."""

import asyncio
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

from providers.failure import Failure, FailureKind
from providers.json_types import JsonObject
from proxy.deployment_health.circuit_breaker import AnswerKind, Breaker, State
from proxy.teams.retry_budget import BudgetRules
from tests.faults.check_answers import good, refusal
from tests.faults.fault_rig import OPERATOR_KEY, SCALED, Rig, samples
from tests.proxy.kit.raw_client import Answer

ONE, TWO = "one/m/default", "two/m/default"


@dataclass(frozen=True, slots=True)
class ExpectedEnd:
    """The expected end of a request at a model with one deployment. `attempt` is the attempt's outcome, `upstream` the
    status the vendor sent. `retry` and `retry_after` are the response's headers, `None` if it has none.

    The deployment is called `calls` times. The vendor receives each of these requests unless `heard` differs.
    """

    status: int
    code: str
    attempt: str
    upstream: int | None = None
    retry: str | None = None
    retry_after: str | None = None
    calls: int = 1
    heard: int | None = None

    @property
    def outcome(self) -> str:
        """Return the request's outcome in the access log."""
        if self.attempt == "timeout":
            return "timeout"
        return "client_error" if self.status in (400, 404, 413, 422) else "upstream_error"


async def assert_fails_alone(rig: Rig, end: ExpectedEnd, asked: str = "one/m") -> Answer:
    """Assert that the failure of the only deployment is the response."""
    before = len(rig.one.requests)
    answer = await rig.ask(asked)
    assert refusal(answer) == (end.status, end.code)
    headers = answer.headers
    assert (headers.get("x-should-retry"), headers.get("retry-after")) == (end.retry, end.retry_after)
    assert (headers["x-dragoman-deployment"], headers["x-dragoman-attempts"]) == (ONE, str(end.calls))
    assert len(rig.one.requests) - before == (end.calls if end.heard is None else end.heard)
    line = (await rig.logged())[-1]
    assert (line["status"], line["code"], line["outcome"]) == (end.status, end.code, end.outcome)
    assert failed_attempts(line) == [(ONE, end.attempt, end.upstream)] * end.calls
    await assert_accounted(rig)
    return answer


async def assert_answered_elsewhere(rig: Rig, end: ExpectedEnd) -> Answer:
    """Assert that another deployment responds after one failure, which the client does not see."""
    before = len(rig.one.requests), len(rig.two.requests)
    answer = await rig.ask("both")
    assert good(answer, rig.stream) == "two"
    assert (answer.headers["x-dragoman-deployment"], answer.headers["x-dragoman-attempts"]) == (TWO, "2")
    assert len(rig.one.requests) - before[0] == (1 if end.heard is None else end.heard)
    assert len(rig.two.requests) - before[1] == 1
    line = (await rig.logged())[-1]
    assert (line["status"], line["outcome"], line["deployment"]) == (200, "ok", TWO)
    assert "code" not in line
    assert failed_attempts(line) == [(ONE, end.attempt, end.upstream)]
    await assert_accounted(rig)
    return answer


async def assert_not_sent_elsewhere(rig: Rig, end: ExpectedEnd) -> None:
    """Assert that the failure is the response although there is another deployment."""
    before = len(rig.two.requests)
    await assert_fails_alone(rig, end, "both")
    assert len(rig.two.requests) == before


async def assert_skipped(rig: Rig) -> None:
    """Assert that the circuit is open: another deployment is called at once."""
    before = len(rig.one.requests)
    answer = await rig.ask("both")
    assert good(answer, rig.stream) == "two"
    assert answer.headers["x-dragoman-attempts"] == "1"
    assert len(rig.one.requests) == before


def failed_attempts(line: JsonObject) -> list[tuple[object, object, object]]:
    """Return deployment, outcome and upstream status of each failed attempt in a line of the access log."""
    attempts = cast(list[JsonObject], line.get("attempts", []))
    assert all(attempt["message"] for attempt in attempts)
    return [(attempt["deployment"], attempt["outcome"], attempt["status"]) for attempt in attempts]


def maybe_executed(lines: Iterable[JsonObject]) -> list[bool]:
    """Return, for each failed attempt in the access log, whether the vendor may have executed it."""
    attempts = [attempt for line in lines for attempt in cast(list[JsonObject], line.get("attempts", []))]
    return [bool(attempt.get("maybe_executed")) for attempt in attempts]


async def assert_accounted(rig: Rig) -> None:
    """Assert that metrics and access log agree about the attempts, and that neither contains the operator's key."""
    told: Counter[str] = Counter()
    for line in await rig.logged():
        for deployment, outcome, _ in failed_attempts(line):
            told[f"attempts_total deployment={deployment} outcome={outcome}"] += 1
        if line["outcome"] == "ok":
            told[f"attempts_total deployment={line['deployment']} outcome=ok"] += 1
    exposition = await rig.exposition()
    assert samples(exposition, "attempts_total") == told
    assert OPERATOR_KEY not in exposition
    assert OPERATOR_KEY.encode() not in rig.log.getvalue()


def health(rig: Rig, label: str = ONE) -> Breaker:
    """Return the health record of a deployment that has been called."""
    known = rig.app.front.dispatcher.deployments.breakers._known
    return next(found for (name, *_), found in known.items() if name == label)


def consecutive_failures(rig: Rig, label: str = ONE) -> int:
    """Return the consecutive failures of a deployment, by counting how many more open its circuit."""
    known, now = health(rig, label), asyncio.get_running_loop().time()
    for more in range(SCALED.health.failures + 1):
        if known.state(now) is State.OPEN:
            return SCALED.health.failures - more
        known.begin(now, AnswerKind.WHOLE).failed(now, Failure(FailureKind.SERVER, "made up"))
    raise AssertionError("failures in a row do not eject")


def unspent_retries(rig: Rig, name: str = "both") -> int:
    """Return how many retries are left in the team's budget of this name. A full budget has 10. Retries that requests
    and time add are not counted, because a slow machine adds more."""
    now, left = asyncio.get_running_loop().time(), 0
    budget = rig.app.front.dispatcher.retry_budgets.of("search", name, now)
    while budget.spend(BudgetRules(per_request=0, per_second=0), now):
        left += 1
    return left
