"""How a request to a faulty vendor ends, held against everything that tells of it. Never a fault of its own."""

import asyncio
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

from providers.failure import Failure, FailureKind
from providers.unified import JsonObject
from proxy.health import Answer as Kind
from proxy.health import Health, State
from tests.faults.checks import good, refusal
from tests.faults.rig import OPERATOR_KEY, SCALED, Rig
from tests.proxy.raw_client import Answer

ONE, TWO = "one/m/default", "two/m/default"


@dataclass(frozen=True, slots=True)
class End:
    """What becomes of a request at a deployment that is alone. `attempt` is the attempt's outcome, `upstream` the
    status the vendor sent; `retry` and `retry_after` are the answer's headers, None where there is none.

    It is asked `calls` times, each of which the vendor hears unless `heard` says otherwise.
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
        """The request's outcome in the access log."""
        if self.attempt == "timeout":
            return "timeout"
        return "client_error" if self.status in (400, 404, 413, 422) else "upstream_error"


async def alone(rig: Rig, end: End, asked: str = "one/m") -> Answer:
    """Nobody else can be asked: the failure is the answer."""
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
    await accounted(rig)
    return answer


async def elsewhere(rig: Rig, end: End) -> Answer:
    """There is another deployment: after one failure it answers, and the client is told nothing of that."""
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
    await accounted(rig)
    return answer


async def final(rig: Rig, end: End) -> None:
    """There is another deployment, but asking it would change nothing."""
    before = len(rig.two.requests)
    await alone(rig, end, "both")
    assert len(rig.two.requests) == before


async def skipped(rig: Rig) -> None:
    """The deployment is left alone: another one is asked at once."""
    before = len(rig.one.requests)
    answer = await rig.ask("both")
    assert good(answer, rig.stream) == "two"
    assert answer.headers["x-dragoman-attempts"] == "1"
    assert len(rig.one.requests) == before


def failed_attempts(line: JsonObject) -> list[tuple[object, object, object]]:
    """Deployment, outcome and upstream status of each attempt that failed, as a line of the access log has it."""
    attempts = cast(list[JsonObject], line.get("attempts", []))
    assert all(attempt["message"] for attempt in attempts)
    return [(attempt["deployment"], attempt["outcome"], attempt["status"]) for attempt in attempts]


def executed(lines: Iterable[JsonObject]) -> list[bool]:
    """Whether the vendor may have worked on each attempt that failed, as the access log has it."""
    attempts = [attempt for line in lines for attempt in cast(list[JsonObject], line.get("attempts", []))]
    return [bool(attempt.get("maybe_executed")) for attempt in attempts]


async def accounted(rig: Rig) -> None:
    """The metrics tell of the attempts what the access log tells, and neither tells the operator's key."""
    told: Counter[str] = Counter()
    for line in await rig.logged():
        for deployment, outcome, _ in failed_attempts(line):
            told[f"attempts_total deployment={deployment} outcome={outcome}"] += 1
        if line["outcome"] == "ok":
            told[f"attempts_total deployment={line['deployment']} outcome=ok"] += 1
    series = await rig.series()
    assert {name: value for name, value in series.items() if name.startswith("attempts_total")} == told
    assert OPERATOR_KEY not in str(series)
    assert OPERATOR_KEY.encode() not in rig.log.getvalue()


def health(rig: Rig, label: str = ONE) -> Health:
    """What is known of a deployment that has been asked."""
    known = rig.app.dispatcher.deployments.healths._known
    return next(found for (name, *_), found in known.items() if name == label)


def strikes(rig: Rig, label: str = ONE) -> int:
    """How many failures in a row speak against a deployment, told by how many more it takes to eject it."""
    known, now = health(rig, label), asyncio.get_running_loop().time()
    for more in range(SCALED.health.failures + 1):
        if known.state(now) is State.OPEN:
            return SCALED.health.failures - more
        known.begin(now, Kind.WHOLE).failed(now, Failure(FailureKind.SERVER, "made up"))
    raise AssertionError("failures in a row do not eject")


def unspent(rig: Rig, name: str = "both") -> int:
    """How many retries the team's budget of this name still pays for; a full one pays for 10."""
    now, left = asyncio.get_running_loop().time(), 0
    while rig.app.dispatcher.budgets.spend(name, "search", now):
        left += 1
    return left
