"""The attempts that the retry budget pays for, under load in virtual time, and the attempts that are free."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextvars import Context
from dataclasses import replace

import pytest
from typing_extensions import override

from providers.failure import FailureKind
from providers.target import Retries, RetryBudget, Target
from providers.unified_request import Operation, TextPrompt, UnifiedRequest
from proxy.deadlines import Deadlines
from proxy.deployment_health.circuit_breaker import TEAM_FAILURES
from proxy.deployment_health.circuit_breaker_rules import HealthRules
from proxy.dispatch.exchange import Exchange
from proxy.dispatch.retry_rules import DeploymentRules, RetryRules
from proxy.dispatch.single_attempt import Dispatcher
from proxy.routing.request_plan import Plan
from proxy.routing.snapshot import ANYONE, Team
from proxy.teams.retry_budget import BudgetRules
from tests.proxy.kit.dispatch_rig import OK, TARGETS, Behaviour, Rig, fails, hangs, outcome_of, refuses
from tests.proxy.kit.mark_streams import Body
from tests.proxy.kit.virtual_time import VirtualLoop, run
from tests.support.looped import looped

TOLERANT = DeploymentRules(HealthRules(failures=10**9, window_least=10**9))
"""Failures open no circuit, so that only the retry budget limits the attempts."""

UNPAID = RetryRules(budget=BudgetRules(per_request=0.0, per_second=0.0, least=0.0))
"""A retry budget that is always empty."""

HURRIED = 600.0
"""The operator's deadline for a request, in seconds; a request with a shorter one is hurried."""

DOWN = refuses("server", 503, 0.02)


def targets(rig: Rig, names: Iterable[str]) -> tuple[Target, ...]:
    """Return deployments of these names, which behave as the rig's script says."""
    for name in names:
        rig.behaviours.setdefault(name, [OK])
    return tuple(replace(TARGETS["a"], deployment=name) for name in names)


def asking(
    rig: Rig, label: str, order: Sequence[Target], team: Team = ANYONE, total: float = HURRIED
) -> Exchange[UnifiedRequest]:
    plan = Plan(label, label, tuple(order), False, (), {})
    request = UnifiedRequest(Operation.COMPLETIONS, label, TextPrompt(("hi",)), {})
    return Exchange(plan, team, request, rig.record, Deadlines(total), total, hurried=total < HURRIED)


async def paced(dispatcher: Dispatcher, jobs: Iterable[Exchange[UnifiedRequest]], rate: float) -> Counter[str]:
    """Return the outcomes of requests that come at `rate` a second, whether or not the previous ones have ended."""
    begun = []
    for job in jobs:
        begun.append(asyncio.ensure_future(outcome_of(dispatcher, job)))
        await asyncio.sleep(1 / rate)
    return Counter(await asyncio.gather(*begun))


def outcomes_of(rig: Rig, *orders: Sequence[Target], team: Team = ANYONE) -> list[str]:
    """Return the outcomes of requests for these deployments at one dispatcher, one after the other."""

    async def main() -> list[str]:
        dispatcher = rig.dispatcher()
        return [await outcome_of(dispatcher, asking(rig, "route", order, team)) for order in orders]

    return run(main())


@looped(("count", "rate"), [(40, 1e6), (400, 40.0)])
@looped("rules", [DeploymentRules(), replace(TOLERANT, retries=UNPAID)], ids=["built in", "without a budget"])
def test_forty_routes_of_a_vendor_that_is_down_go_to_another(rules: DeploymentRules, count: int, rate: float) -> None:
    rig = Rig({f"a{number}": [DOWN] for number in range(40)}, rules)
    good, *dead = targets(rig, ["good", *rig.behaviours])

    async def main() -> Counter[str]:
        jobs = (asking(rig, f"route-{number % 40}", (dead[number % 40], good)) for number in range(count))
        return await paced(rig.dispatcher(), jobs, rate)

    assert run(main()) == {"ok": count}


@looped(
    ("kind", "group", "seconds"),
    [("server", 2, 0.02), ("server", 3, 0.5), ("not_found", 3, 0.02), ("nonconforming", 2, 0.02)],
)
def test_a_total_outage_is_not_made_worse(kind: str, group: int, seconds: float) -> None:
    names = ["a", "b", "c"][:group]
    rig = Rig({name: [refuses(kind, 503, seconds)] for name in names}, TOLERANT)
    order = targets(rig, names)

    async def main() -> Counter[str]:
        turned = ((*order[number % group :], *order[: number % group]) for number in range(800))
        return await paced(rig.dispatcher(), (asking(rig, "route", each) for each in turned), 100.0)

    assert run(main()) == {kind: 800}
    # The bound: 0.2 of the requests, 10 at the start, 1 a second, and the requests in flight before the first failure.
    assert len(rig.asked) <= 960 + 10 + 9 + 100 * seconds + TEAM_FAILURES * group <= 1.3 * 800


def test_nor_do_forty_names_over_the_same_dead_deployments_ask_them_more_than_one_does() -> None:
    rig = Rig({name: [DOWN] for name in "abc"})
    order = targets(rig, "abc")

    async def main() -> None:
        jobs = (asking(rig, f"route-{number % 40}", order) for number in range(2000))
        await paced(rig.dispatcher(), jobs, 100.0)

    run(main())
    assert len(rig.asked) <= 0.1 * 2000


def test_nor_is_one_in_which_only_the_clients_lose_their_patience() -> None:
    rig = Rig({"a": [hangs()], "b": [hangs()]}, TOLERANT)
    order = targets(rig, ["a", "b"])

    async def main() -> Counter[str]:
        jobs = (asking(rig, "route", order, total=5.0) for _ in range(200))
        return await paced(rig.dispatcher(), jobs, 2.0)

    run(main())
    assert len(rig.asked) <= 200 + 40 + 10 + 100 + 2 * 5


def test_repeats_and_second_hops_are_paid_for() -> None:
    rig = Rig({"a": [DOWN], "b": [DOWN], "c": [OK]}, replace(TOLERANT, retries=UNPAID))
    a, b, c = targets(rig, ["a", "b", "c"])
    assert outcomes_of(rig, (a,), (a, b, c), (a, c)) == ["server", "server", "ok"]
    assert rig.order == ["a", "a", "b", "a", "c"]
    assert rig.series("retry_budget_denied_total") == {"v/m": 2.0}


def test_after_targets_that_could_not_be_reached_one_hop_is_free() -> None:
    rig = Rig({"a": [fails(FailureKind.CONNECT)], "b": [DOWN], "c": [OK]}, replace(TOLERANT, retries=UNPAID))
    assert (outcomes_of(rig, targets(rig, "abc")), rig.order) == (["ok"], ["a", "b", "c"])


def test_a_target_that_failed_is_free_again_after_it_has_answered() -> None:
    rig = Rig({"a": [DOWN], "b": [DOWN, DOWN, OK]}, replace(TOLERANT, retries=UNPAID))
    a, b = targets(rig, ["a", "b"])
    assert outcomes_of(rig, (a, b), (a, b), (a, b), (b,), (a, b)) == ["server", "server", "server", "ok", "ok"]
    assert rig.order == ["a", "b", "a", "b", "a", "b", "a", "b"]


def test_one_stray_failure_of_the_other_target_costs_nobody_the_way_there() -> None:
    rig = Rig({"a": [DOWN], "b": [DOWN, OK]}, TOLERANT)
    order = targets(rig, ["a", "b"])

    async def main() -> Counter[str]:
        dispatcher = rig.dispatcher()
        await outcome_of(dispatcher, asking(rig, "route", order))
        return await paced(dispatcher, (asking(rig, "route", order) for _ in range(60)), 1e6)

    assert run(main()) == {"ok": 60}


def test_or_once_that_is_long_ago() -> None:
    rig = Rig({"a": [DOWN], "b": [DOWN, DOWN, OK]}, replace(TOLERANT, retries=UNPAID))
    order = targets(rig, ["a", "b"])

    async def main() -> list[str]:
        dispatcher, seen = rig.dispatcher(), []
        for pause in (0.0, 0.0, 29.0, 1.5):
            await asyncio.sleep(pause)
            seen.append(await outcome_of(dispatcher, asking(rig, "route", order)))
        return seen

    assert run(main()) == ["server", "server", "server", "ok"]


def test_what_failed_one_team_is_free_for_another() -> None:
    rig = Rig({"a": [DOWN], "b": [DOWN, DOWN, OK]}, replace(TOLERANT, retries=UNPAID))
    order = targets(rig, ["a", "b"])
    hostile, honest = (replace(ANYONE, name=name) for name in ("hostile", "honest"))

    async def main() -> list[str]:
        dispatcher = rig.dispatcher()
        return [
            await outcome_of(dispatcher, asking(rig, "route", order, team))
            for team in (hostile, hostile, hostile, honest, hostile)
        ]

    assert run(main()) == ["server", "server", "server", "ok", "server"]


SAME_FIRST = Retries(3, "safe", same_deployment=1)


@looped(
    ("behaviours", "order", "rules"),
    [
        ({"a": [DOWN, OK], "b": [OK]}, ["a", "a"], TOLERANT),
        ({"a": [DOWN], "b": [OK]}, ["a", "a", "b"], TOLERANT),
        ({"a": [DOWN], "b": [DOWN, OK]}, ["a", "a", "b"], TOLERANT),
        ({"a": [DOWN], "b": [OK]}, ["a", "b"], replace(TOLERANT, retries=UNPAID)),
        ({"a": [refuses("rate_limited 2", 429), OK], "b": [OK]}, ["a", "a"], DeploymentRules()),
        ({"a": [refuses("rate_limited", 429), OK], "b": [OK]}, ["a", "b"], DeploymentRules()),
        ({"a": [refuses("rate_limited 30", 429), OK], "b": [OK]}, ["a", "b"], DeploymentRules()),
        ({"a": [DOWN], "b": [OK]}, ["a", "b"], DeploymentRules(HealthRules(failures=1))),
        ({"a": [refuses("auth", 401)], "b": [OK]}, ["a", "b"], TOLERANT),
        ({"a": [DOWN]}, ["a", "a"], TOLERANT),
    ],
    ids=[
        *("it passes", "it stays", "three attempts in all", "an empty budget", "it says when", "it does not say when"),
        *("it says too long", "it is left alone", "it would not help", "alone it is once all the same"),
    ],
)
def test_where_it_is_written_the_same_deployment_is_asked_again_first(
    behaviours: dict[str, list[Behaviour]], order: list[str], rules: DeploymentRules
) -> None:
    rig = Rig(behaviours, rules)
    outcomes_of(rig, [replace(target, retries=SAME_FIRST) for target in targets(rig, list(behaviours))])
    assert rig.order == order


class EarlyLoop(VirtualLoop):
    """A loop whose timers fire half a millisecond early, as some of uvloop's do."""

    @override
    def call_at(
        self, when: float, callback: Callable[..., object], *args: object, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return super().call_at(max(self.time(), when - 0.0005), callback, *args, context=context)


def test_a_timer_that_ends_early_costs_nobody_the_second_attempt() -> None:
    rig = Rig({"a": [refuses("rate_limited 2", 429), OK]}, draw=lambda: 0.0)

    async def main() -> str:
        return await outcome_of(rig.dispatcher(), asking(rig, "route", targets(rig, "a")))

    with asyncio.Runner(loop_factory=EarlyLoop) as runner:
        assert (runner.run(main()), rig.order) == ("ok", ["a", "a"])
    assert rig.asked[1][1] >= 2


def test_the_last_attempt_goes_elsewhere_however_many_repeats_are_written() -> None:
    rig = Rig({"a": [DOWN], "b": [OK]}, TOLERANT)
    plan = [replace(target, retries=Retries(3, "safe", same_deployment=9)) for target in targets(rig, "ab")]
    assert (outcomes_of(rig, plan), rig.order) == (["ok"], ["a", "a", "b"])


def test_what_one_name_spends_no_other_pays_for() -> None:
    rig = Rig({"a": [DOWN], "b": [DOWN, OK]}, TOLERANT)
    a, b = targets(rig, ["a", "b"])

    async def main() -> list[str]:
        dispatcher = rig.dispatcher()
        await paced(dispatcher, (asking(rig, "drained", (a,)) for _ in range(100)), 1000.0)
        return [
            await outcome_of(dispatcher, asking(rig, name, order)) for name, order in (("drained", (a,)), ("own", (b,)))
        ]

    assert run(main()) == ["server", "ok"]


@looped(
    ("own", "most"),
    [
        (RetryBudget(share=0.0, per_second=0.0, least=0.0), 0),
        (RetryBudget(share=0.0, per_second=0.0, least=25.0), 25),
        (RetryBudget(share=0.5, per_second=0.0, least=0.0), 150),
        (RetryBudget(share=0.0, per_second=3.0, least=0.0), 30),
        (RetryBudget(share=1.0), 300),
        (RetryBudget(), 80),
    ],
)
def test_the_budget_is_that_of_the_target_that_is_asked_first(own: RetryBudget, most: int) -> None:
    rig = Rig({"a": [DOWN]}, TOLERANT)
    (target,) = targets(rig, ["a"])
    target = replace(target, retries=Retries(3, "safe", budget=own))

    async def main() -> None:
        await paced(rig.dispatcher(), (asking(rig, "route", (target,)) for _ in range(300)), 30.0)

    run(main())
    assert most - 5 <= len(rig.asked) - 300 <= most + 1


@pytest.mark.parametrize("fault", [asyncio.CancelledError, LookupError])
def test_after_what_is_no_failure_of_an_upstream_nothing_is_called_again(fault: type[BaseException]) -> None:
    def breaks() -> Body:
        raise fault

    rig = Rig({"a": [DOWN], "b": [breaks], "c": [OK]})
    with pytest.raises(fault):
        rig.whole()
    assert rig.order == ["a", "b"]
