"""The conversation of a request in its plan: which names use it, which requests it places, and its outcome."""

import gc
import tracemalloc
from collections.abc import Mapping
from functools import partial

import pytest

from providers.target import Target
from proxy.routing.affinity_rules import OFF, AffinityRules
from proxy.routing.deployment_load import IDLE, LiveLoad, MemberLoad, RecordingLoad
from proxy.routing.resolve_model import plan_for
from proxy.routing.session_affinity import MemberGroup
from proxy.routing.session_key import SessionKey, key_names, session_number
from proxy.routing.session_load import SessionLoad
from proxy.routing.snapshot import ANYONE, Snapshot
from tests.proxy.kit.conversations import LONG, REQUEST, deployments, planned, session_load
from tests.proxy.kit.deployment_loads import Told
from tests.proxy.kit.tables import snapshot
from tests.support.looped import looped

ABC = ("a", "b", "c")
TABLE = """
vendors: {v: {profile: openai, api_key: k}, w: {profile: openai, api_key: k}}
models:
  v/one: {}
  v/first: {deployments: {a: {}, b: {}}}
  v/weighted: {policy: weighted, deployments: {a: {}, b: {}, c: {}}}
  v/turns: {policy: round_robin, deployments: {a: {}, b: {}, c: {}}}
  v/busy: {policy: least_busy, deployments: {a: {}, b: {}, c: {}}}
  v/fast: {policy: fastest, deployments: {a: {}, b: {}, c: {}}}
  v/fast-kept: {policy: fastest, affinity: auto, deployments: {a: {}, b: {}, c: {}}}
  v/first-kept: {affinity: auto, deployments: {a: {}, b: {}}}
  v/not: {policy: weighted, affinity: off, deployments: {a: {}, b: {}, c: {}}}
  w/*: {policy: weighted, deployments: {a: {}, b: {}, c: {}}}
routes:
  alias: v/weighted
  not: {targets: [alias], affinity: off}
  kept: {targets: [v/not], affinity: auto}
  fast: {targets: [v/fast], affinity: auto}
  both: {policy: weighted, targets: [v/weighted, v/turns]}
  both-not: {policy: weighted, affinity: off, targets: [v/weighted, v/turns]}
  first: [v/not]
  order: {targets: [v/weighted, v/busy]}
""".replace("first: [v/not]", "first: {targets: [v/not]}")


@looped(
    ("name", "placed"),
    {
        "v/one": False,
        "v/first": False,
        "v/first-kept": False,
        "v/weighted": True,
        "v/weighted/a": False,
        "v/turns": True,
        "v/busy": True,
        "v/fast": False,
        "v/fast-kept": True,
        "v/not": False,
        "w/any": True,
        "alias": True,
        "not": False,
        "kept": True,
        "fast": True,
        "both": True,
        "both-not": True,
        "first": False,
        "order": True,
    }.items(),
)
def test_a_name_with_affinity_places_the_turns_of_a_conversation_at_one_deployment(name: str, placed: bool) -> None:
    table = snapshot(TABLE)
    own = session_load("s")
    made = plan_for(table, ANYONE, name, "openai", own)
    assert (own.placed is not None and bool(own.placed.placements)) is placed
    for draw in (0.1, 0.5, 0.9) if placed and name != "both-not" else ():
        again = session_load("s", Told(partial(float, draw)))
        assert plan_for(table, ANYONE, name, "openai", again).targets == made.targets


def test_defaults_and_vendors_say_it_for_names_that_do_not() -> None:
    for level in ("defaults: {affinity: off}\n", ""):
        vendor = "" if level else "affinity: off, "
        text = f"{level}{deployments(ABC)}".replace("{v: {", f"{{v: {{{vendor}")
        own = session_load("s")
        plan_for(snapshot(text), ANYONE, "v/m", "openai", own)
        assert own.placed is None


def test_the_order_of_a_policy_is_that_of_a_request_without_a_conversation() -> None:
    table = snapshot(deployments(ABC, more="affinity: {key: [x-own]}, "))
    with_session, without = session_load("s", Told(lambda: 0.5)), Told(lambda: 0.5)
    assert (
        plan_for(table, ANYONE, "v/m", "openai", with_session).targets
        == plan_for(table, ANYONE, "v/m", "openai", without).targets
    )
    assert with_session.placed is not None
    assert (with_session.placed.number, with_session.placed.outcome("v/m/a")) == (None, "none")


@looped(("size", "outcome"), [(4095, "short"), (4096, "kept")])
def test_a_prompt_below_the_least_goes_by_the_policy_alone(size: int, outcome: str) -> None:
    own = session_load("s", size=size)
    made = plan_for(snapshot(deployments(ABC)), ANYONE, "v/m", "openai", own)
    assert own.placed is not None
    assert own.placed.outcome(made.targets[0].label) == outcome


def test_the_plan_of_a_name_with_affinity_is_not_that_of_the_request_before() -> None:
    table = snapshot(deployments(ABC, "least_busy"))
    first = {planned(table, f"s{number}")[0].targets[0] for number in range(50)}
    assert len(first) == 3


def home_and_others(table: Snapshot, name: str = "v/m") -> tuple[Target, tuple[Target, ...]]:
    made, _ = planned(table, "s", name=name)
    return made.targets[0], made.targets[1:]


def test_what_became_of_a_request_is_told_by_the_deployment_that_answered() -> None:
    table = snapshot(deployments(ABC))
    home, others = home_and_others(table)
    _, placed = planned(table, "s")
    assert [placed.outcome(each.label) for each in (home, *others)] == ["kept", "spilled_health", "spilled_health"]
    made, placed = planned(table, "s", Told(busy={home.name: 5}))
    assert made.targets == (others[0], home, *others[1:])
    assert [placed.outcome(each.label) for each in (home, *others)] == ["kept", "spilled_load", "spilled_load"]


def test_behind_a_route_each_choice_on_the_way_to_the_deployment_counts() -> None:
    table = snapshot(TABLE)
    home, _ = home_and_others(table, "both")
    made, placed = planned(table, "s", name="both")
    outcomes: Mapping[str, object] = {each.label: placed.outcome(each.label) for each in made.targets}
    assert [label for label, outcome in outcomes.items() if outcome == "kept"] == [home.label]
    assert len(outcomes) == 6


def test_behind_a_route_by_priority_the_first_model_s_choice_counts() -> None:
    table = snapshot(TABLE)
    made, placed = planned(table, "s", name="order")
    assert [placed.outcome(each.label) for each in made.targets] == ["kept", *["spilled_health"] * 5]


def test_a_first_target_that_is_in_no_group_has_no_outcome_and_leaving_it_for_one_has() -> None:
    table = snapshot(TABLE.replace("order: {targets: [", "order: {targets: [v/one, "))
    made, placed = planned(table, "s", name="order")
    placed.first = made.targets[0].label
    assert [placed.outcome(each.label) for each in made.targets[:3]] == [None, "kept", "spilled_health"]
    placed.first = "v/other/default"
    assert placed.outcome("v/one/default") == "spilled_health"


def test_what_is_out_of_service_is_missed_by_its_own_conversations_alone() -> None:
    table = snapshot(deployments(ABC))
    home, others = home_and_others(table)
    away = snapshot(deployments(ABC).replace(f"{home.deployment}: {{", f"{home.deployment}: {{out_of_service: true, "))
    made, placed = planned(away, "s")
    assert [each.deployment for each in made.targets] == [each.deployment for each in others]
    assert placed.outcome(made.targets[0].label) == "spilled_health"


def test_a_request_goes_on_in_the_conversation_of_what_it_continues_unless_something_names_another() -> None:
    rules = AffinityRules(on=True)
    for headers, source, number in (
        ({}, "previous_response_id", 7),
        ({"x-session-id": "s"}, "x-session-id", session_number("", "s")),
    ):
        load = SessionLoad(IDLE, "", LONG, headers, REQUEST, 7)
        assert load.session(rules) == SessionKey(source, number)
    own = SessionLoad(IDLE, "", LONG, {}, REQUEST, 7)
    assert own.session(AffinityRules(True, key_names(["x-own"]))) == SessionKey("previous_response_id", 7)


def test_vendors_are_told_a_digest_of_a_long_request_s_conversation_where_the_operator_says_so() -> None:
    send = AffinityRules(on=True, send=True)
    assert session_load("s").sent(send) == f"{session_number('', 's'):016x}"
    assert session_load("s").sent(AffinityRules(on=True)) is None
    assert session_load("s", size=99).sent(send) is None
    assert session_load("").sent(AffinityRules(True, key_names(["x-own"]), send=True)) is None
    assert snapshot(deployments(("a",), more="affinity: {send: true}, ")).has_affinity
    assert not snapshot(deployments(("a",))).has_affinity


def test_the_conversation_is_looked_for_once_and_only_where_a_group_is_met(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def noted(tenant: str, *rest: object) -> SessionKey:
        asked.append(tenant)
        return SessionKey("x", 7)

    monkeypatch.setattr("proxy.routing.session_load.session_key", noted)
    table = snapshot(TABLE)
    for name in ("v/one", "v/first", "v/not"):
        plan_for(table, ANYONE, name, "openai", session_load("s"))
    assert asked == []
    plan_for(table, ANYONE, "both", "openai", session_load("s"))
    assert asked == [""]


def test_loads_without_a_request_have_no_conversation_and_what_asks_is_noted() -> None:
    group = MemberGroup("g", ("a", "b"), (1, 1))
    members = MemberLoad(IDLE, "g", lambda position: ())
    assert IDLE.ordered(OFF, group, members) is None
    assert LiveLoad.ordered(LiveLoad.__new__(LiveLoad), OFF, group, members) is None
    noting = RecordingLoad(session_load("s"))
    assert sorted(noting.ordered(AffinityRules(on=True), group, members) or ()) == [0, 1]
    assert noting.used


def test_a_session_s_load_is_the_process_s() -> None:
    table = snapshot(deployments(ABC))
    target = next(table.targets())
    told = Told(lambda: 0.75, busy={target.name: 2}, seconds={target.name: 0.5})
    own = session_load("s", told)
    assert (own.draw(), own.turn("g"), own.in_flight(target), own.first_byte(target)) == (0.75, 0, 2, 0.5)


@pytest.mark.thorough
def test_new_conversations_without_end_take_no_more_memory() -> None:
    """Twice as many conversations as are remembered add next to nothing."""
    table = snapshot(TABLE)
    sizes: list[int] = []
    tracemalloc.start()
    try:
        for first in range(0, 3 * 8192, 8192):
            for number in range(first, first + 8192):
                headers = {"x-session-id": f"{number}"}
                plan_for(table, ANYONE, "v/weighted", "openai", SessionLoad(IDLE, "t", 10_000, headers, REQUEST))
            gc.collect()
            sizes.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert sizes[2] - sizes[1] < 100_000, sizes
