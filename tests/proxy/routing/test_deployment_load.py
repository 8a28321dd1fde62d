"""The load that policies receive of deployments, and of members that lead to several."""

from collections.abc import Callable
from dataclasses import replace

from proxy.deployment_health.breaker_registry import Breakers
from proxy.deployment_health.circuit_breaker import AnswerKind
from proxy.deployment_health.circuit_breaker_rules import HealthRules
from proxy.routing.deployment_load import IDLE, LiveLoad, Load, MemberLoad, RecordingLoad
from tests.providers.dialects.openai.kit import target
from tests.proxy.kit.deployment_loads import Told

A, B, C = (replace(target("vllm"), deployment=name) for name in "abc")


def test_the_live_load_is_the_health_s() -> None:
    breakers = Breakers(HealthRules(), lambda: 0.0)
    load = LiveLoad(breakers, lambda: 0.25)
    assert (load.in_flight(A), load.first_byte(A), load.draw()) == (0, None, 0.25)
    trial = breakers.of(A).begin(1.0, AnswerKind.STREAM)
    breakers.of(A).begin(1.0, AnswerKind.WHOLE)
    trial.first_byte(1.5)
    assert (load.in_flight(A), load.first_byte(A)) == (2, 0.5)
    trial.succeeded(9.0)
    assert (load.in_flight(A), load.in_flight(B)) == (1, 0)


def test_each_group_has_its_own_turns() -> None:
    load = LiveLoad(Breakers(HealthRules(), lambda: 0.0), lambda: 0.0)
    assert [load.turn(group) for group in ("g", "g", "h", "g", "h")] == [0, 1, 0, 2, 1]


def test_a_group_that_a_new_table_does_not_have_is_forgotten_and_another_goes_on() -> None:
    load = LiveLoad(Breakers(HealthRules(), lambda: 0.0), lambda: 0.0)
    for group in ("g", "g", "h"):
        load.turn(group)
    load.keep({"g", "new"})
    assert [load.turn(group) for group in ("g", "h", "new")] == [2, 0, 0]


def test_nothing_is_under_way_where_there_is_no_load() -> None:
    assert (IDLE.draw(), IDLE.turn("g"), IDLE.turn("g"), IDLE.in_flight(A), IDLE.first_byte(A)) == (0, 0, 0, 0, None)


def test_a_member_is_as_busy_as_its_deployments_together_and_as_fast_as_the_fastest_known() -> None:
    reach = [(A, B, A), (B,), (C,), ()]
    load = MemberLoad(Told(busy={A.name: 2, B.name: 3}, seconds={A.name: 0.5, B.name: 0.25}), "g", reach.__getitem__)
    assert [load.in_flight(position) for position in range(4)] == [5, 3, 0, 0]
    assert [load.first_byte(position) for position in range(4)] == [0.25, 0.25, None, None]


def test_a_member_s_draws_and_turns_are_the_load_s() -> None:
    told = Told(draw=lambda: 0.75)
    load = MemberLoad(told, "g", lambda position: ())
    assert (load.draw(), load.turn(), load.turn(), told.turns) == (0.75, 0, 1, {"g": 1})


def test_a_noting_load_tells_what_the_load_tells_and_that_it_was_asked() -> None:
    asks: list[tuple[Callable[[Load], object], object]] = [
        (lambda load: load.draw(), 0.75),
        (lambda load: load.turn("g"), 0),
        (lambda load: load.in_flight(A), 2),
        (lambda load: load.first_byte(A), 0.5),
    ]
    for ask, answer in asks:
        load = RecordingLoad(Told(draw=lambda: 0.75, busy={A.name: 2}, seconds={A.name: 0.5}))
        assert not load.used
        assert ask(load) == answer
        assert load.used
