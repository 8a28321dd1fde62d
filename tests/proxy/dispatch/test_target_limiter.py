"""Limits of deployments: taken before a call, moved with the request to another deployment, and never waited for."""

from unittest.mock import patch

import pytest

from providers.completion import Usage
from providers.failure import FailureKind, UpstreamError
from proxy.dispatch.target_limiter import TargetLimiter
from proxy.errors import upstream_failed
from proxy.limits.limit import Limits, Period, Quota, Rate, Unit
from proxy.limits.limit_registry import LimitRegistry
from proxy.limits.reservation import NO_METERS, Reservation
from proxy.limits.token_estimate import UNKNOWN_RATIO
from proxy.request_record import Attempt, RequestRecord
from proxy.routing.snapshot import Snapshot
from proxy.teams.held_limits import BoundScopes, Held
from proxy.teams.team_limiter import TeamLimiter
from proxy.telemetry.metrics import Metrics
from proxy.telemetry.observer_guard import ObserverGuard
from tests.proxy.kit.tables import snapshot
from tests.support.looped import looped

WALL = 1_795_003_200.0

TABLE = """
vendors:
  v: {profile: openai, api_key: k, limits: {concurrent: 1, tokens_per_day: 1000}}
models:
  v/free: {}
  v/m: {limits: {requests_per_hour: 2}, deployments: {eu: {limits: {requests_per_minute: 6}}, us: {}}}
"""


class Door:
    """Requests that are subject to the limits of targets."""

    def __init__(self, text: str = TABLE) -> None:
        self.table: Snapshot = snapshot(text)
        self.registry = LimitRegistry(lambda: 0.0, lambda: WALL)
        self.teams = TeamLimiter(self.registry, lambda: 0.0, lambda: WALL, lambda: 0.0)
        self.teams.use(self.table)
        self.metrics = Metrics()
        guard = ObserverGuard(self.metrics.observer_failed)
        self.limiter = TargetLimiter(self.registry, lambda: 0.0, lambda: WALL, guard, draw=lambda: 0.0)
        self.limiter.use(self.table)

    def record(self, tokens: int = 10) -> RequestRecord:
        record = RequestRecord("r", 0.0, "openai", "/")
        record.held = Held(self.teams, BoundScopes(("t", "v/m")), NO_METERS, (tokens, 0, None))
        return record

    async def hold(self, record: RequestRecord, label: str) -> None:
        (target,) = [each for each in self.table.targets() if each.label == label]
        await self.limiter.hold(target, record)
        record.attempts.append(Attempt(label, 0.0))

    def used(self) -> dict[str, int]:
        return {f"{it.scope}: {it.unit} {it.period or it.kind}": it.used for it in self.registry.views(0.0, WALL)}


async def test_a_call_takes_from_its_vendor_its_model_and_its_deployment() -> None:
    door = Door()
    record = door.record()
    await door.hold(record, "v/m/eu")
    assert door.used() == {
        "vendor v: requests concurrent": 1,
        "vendor v: tokens day": 10,
        "model v/m: requests hour": 1,
        "deployment v/m/eu: requests minute": 1,
    }


async def test_the_next_call_of_the_request_leaves_the_one_before() -> None:
    door = Door()
    record = door.record()
    await door.hold(record, "v/m/eu")
    await door.hold(record, "v/m/us")
    used = door.used()
    assert (used["vendor v: requests concurrent"], used["vendor v: tokens day"]) == (1, 10)
    assert (used["model v/m: requests hour"], used["deployment v/m/eu: requests minute"]) == (2, 1)
    assert record.held is not None
    record.held.end(record)
    assert (door.used()["vendor v: requests concurrent"], door.used()["vendor v: tokens day"]) == (0, 0)


async def test_a_deployment_without_limits_holds_nothing_of_the_one_before() -> None:
    more = TABLE.replace("\nmodels:\n", "\n  w: {profile: openai, api_key: k}\nmodels:\n  w/m: {}\n")
    door = Door(more)
    record = door.record()
    await door.hold(record, "v/m/us")
    await door.hold(record, "w/m/default")
    assert (door.used()["vendor v: requests concurrent"], door.used()["vendor v: tokens day"]) == (0, 0)


async def test_a_fault_in_giving_back_hinders_no_call() -> None:
    door = Door(TABLE.replace("concurrent: 1,", "concurrent: 9,"))
    record = door.record()
    await door.hold(record, "v/m/eu")
    with patch.object(Reservation, "settle", side_effect=TypeError):
        await door.hold(record, "v/m/us")
    assert door.used()["model v/m: requests hour"] == 2
    assert b'dragoman_observer_failures_total{observer="limits"} 1.0' in door.metrics.render()


async def test_a_deployment_at_its_limit_is_a_failure_that_was_no_attempt() -> None:
    door = Door()
    await door.hold(door.record(), "v/m/us")
    record = door.record()
    with pytest.raises(UpstreamError) as raised:
        await door.hold(record, "v/m/eu")
    failure = raised.value.failure
    assert (failure.kind, failure.unsent, failure.withheld) == (FailureKind.RATE_LIMITED, True, True)
    assert failure.message == (
        "Too many requests of vendor v at once: Limit 1, Used 1. Please try again later. "
        "The gateway's operator has set this limit for all teams together."
    )
    assert failure.retry_after == 1.0
    assert record.attempts == []


async def test_of_several_deployments_the_soonest_says_when() -> None:
    door = Door(
        "vendors: {v: {profile: openai, api_key: k}}\nmodels: {v/m: {deployments: "
        "{eu: {limits: {requests_per_minute: 6, burst: 1}}, us: {limits: {requests_per_day: 1}}}}}"
    )
    for label in ("v/m/eu", "v/m/us"):
        await door.hold(door.record(), label)
    record, told = door.record(), []
    for label in ("v/m/us", "v/m/eu", "v/m/us"):
        with pytest.raises(UpstreamError) as raised:
            await door.hold(record, label)
        told.append((raised.value.failure.message, raised.value.failure.retry_after))
    day, rate, again = told
    assert day[0].startswith(
        "Limit reached for deployment v/m/us on requests per day: Limit 1, Used 1, Requested 1. It"
    )
    assert rate[0].startswith(
        "Rate limit reached for deployment v/m/eu on requests per minute: Limit 6 (1 in one go), Used 1, Requested 1. "
        "Please try again in 10s."
    )
    assert (rate[1], again) == (10.0, rate)


async def test_a_request_that_is_held_to_nothing_is_not_held_here() -> None:
    door = Door()
    record = RequestRecord("r", 0.0, "openai", "/")
    for _ in range(3):
        await door.hold(record, "v/m/eu")
    assert door.used() == {}


def test_a_table_without_limits_has_no_scopes() -> None:
    door = Door("vendors: {v: {profile: openai, api_key: k}}\nmodels: {v/m: {}}")
    assert door.limiter.scopes == {}


def test_the_words_of_a_table_are_those_of_the_limits() -> None:
    door = Door()
    assert door.table.scopes["vendor v"] == Limits((), (Quota(Unit.TOKENS, 1000, Period.DAY),), 1)
    assert door.table.scopes["deployment v/m/eu"] == Limits((Rate(Unit.REQUESTS, 6, Period.MINUTE, 1),))


SPENT = """
vendors:
  v: {{profile: openai, api_key: k, price: {{input: 1000, output: 1000}}{vendor}}}
models:
  v/m: {{{model}deployments: {{eu: {{{deployment}}}, us: {{}}}}}}
"""


@looped(
    ("place", "scope"),
    [("vendor", "vendor v"), ("model", "model v/m"), ("deployment", "deployment v/m/eu")],
)
async def test_a_spent_budget_of_a_target_has_it_skipped_with_its_end(place: str, scope: str) -> None:
    budget = "budget: {usd: 0.1, per: day}"
    written = {"vendor": f", {budget}", "model": f"{budget}, ", "deployment": budget}
    door = Door(SPENT.format(**{each: text if each == place else "" for each, text in written.items()}))
    record = door.record()
    assert isinstance(record.held, Held)
    record.held._estimate = (UNKNOWN_RATIO, 40, 40)  # 50 tokens, 0.05 USD
    await door.hold(record, "v/m/eu")
    assert door.used() == {f"{scope}: usd day": 50_000_000}
    record.usage, record.price = Usage(60, 40), door.table.models["v/m"].targets[0].price
    record.held.end(record)
    assert door.used() == {f"{scope}: usd day": 100_000_000}
    other = door.record()
    assert isinstance(other.held, Held)
    other.held._estimate = (UNKNOWN_RATIO, 40, 40)
    with pytest.raises(UpstreamError) as raised:
        await door.hold(other, "v/m/eu")
    assert other.limit is not None
    assert other.limit.words == f"budget of {scope}: 0.10 USD per day"
    facts = upstream_failed(raised.value.failure, 0).facts
    assert (facts.status, facts.type, facts.code) == (429, "insufficient_quota", "insufficient_quota")
    assert facts.message.startswith(f"The budget of {scope} per day is spent: 0.10 USD of 0.10 USD. It begins anew at")
    assert facts.headers == {"retry-after": "43200", "x-should-retry": "false"}


async def test_a_long_prompt_holds_what_it_costs_of_a_target_s_budget() -> None:
    long = "price: {input: 1000, output: 1000, long_context: [{above: 5, input: 3000, output: 2000}]}"
    door = Door(
        f"vendors: {{v: {{profile: openai, api_key: k, budget: {{usd: 1, per: day}}, {long}}}}}\nmodels: {{v/m: {{}}}}"
    )
    held = []
    for prompt_bytes in (20, 24):  # 5 and 6 tokens
        record = door.record()
        assert isinstance(record.held, Held)
        record.held._estimate = (UNKNOWN_RATIO, prompt_bytes, 40)
        before = door.used().get("vendor v: usd day", 0)
        await door.hold(record, "v/m/default")
        held.append(door.used()["vendor v: usd day"] - before)
    assert held == [45_000_000, 98_000_000]


async def test_a_price_that_nobody_knows_counts_as_nothing_of_a_vendor_s_budget() -> None:
    door = Door("vendors: {v: {profile: openai, api_key: k, budget: {usd: 1, per: day}}}\nmodels: {v/m: {}}")
    record = door.record()
    await door.hold(record, "v/m/default")
    record.usage = Usage(60, 40)
    assert record.held is not None
    record.held.end(record)
    assert door.used() == {"vendor v: usd day": 0}


async def test_a_deployment_that_may_answer_soon_is_named_before_one_whose_budget_is_spent() -> None:
    door = Door(
        "vendors: {v: {profile: openai, api_key: k}}\nmodels: {v/m: {deployments: "
        "{eu: {limits: {requests_per_minute: 6, burst: 1}}, us: {budget: {tokens: 10, per: day}}}}}"
    )
    for label in ("v/m/eu", "v/m/us"):
        await door.hold(door.record(), label)
    record, told = door.record(), []
    for label in ("v/m/us", "v/m/eu"):
        with pytest.raises(UpstreamError) as raised:
            await door.hold(record, label)
        told.append(raised.value.failure.code)
    assert told == ["insufficient_quota", "requests"]


async def test_a_second_call_at_the_same_time_takes_what_is_there_at_once_or_nothing() -> None:
    door = Door(TABLE.replace("concurrent: 1,", "concurrent: 2,"))
    eu, us = (each for each in door.table.targets() if each.label in ("v/m/eu", "v/m/us"))
    record = door.record()
    await door.hold(record, "v/m/eu")
    there, hold = door.limiter.hold_at_once(us, record)
    assert there
    assert hold is not None
    assert door.used()["vendor v: requests concurrent"] == 2
    assert door.limiter.hold_at_once(us, record) == (False, None)
    hold.settle(0, 0)
    assert door.used()["vendor v: requests concurrent"] == 1
    assert door.used()["model v/m: requests hour"] == 2
    record.held = None
    assert door.limiter.hold_at_once(eu, record) == (True, None)


async def test_a_deployment_without_limits_needs_nothing_for_a_second_call() -> None:
    door = Door(TABLE.replace("\nmodels:\n", "\n  w: {profile: openai, api_key: k}\nmodels:\n  w/m: {}\n"))
    (free,) = (each for each in door.table.targets() if each.label == "w/m/default")
    assert door.limiter.hold_at_once(free, door.record()) == (True, None)
