"""Rules of affinity from the configuration: by level, by policy, and as text."""

from config.sections.affinity_section import AffinitySection
from proxy.routing.affinity_rules import (
    BUILT_IN,
    OFF,
    AffinityRules,
    affinity_rules,
    member_group,
    under_policy,
)
from proxy.routing.session_key import BUILT_IN_KEY
from tests.proxy.kit.tables import snapshot
from tests.support.looped import looped

POLICIES = ("priority", "weighted", "round_robin", "least_busy", "fastest")


def rules(value: object) -> AffinityRules:
    return affinity_rules(AffinitySection.model_validate(value))


def test_a_section_is_taken_over_and_without_one_the_built_in_rules_hold() -> None:
    assert affinity_rules(None) == rules("auto") == rules({}) == BUILT_IN == AffinityRules(on=True)
    assert rules("off") == rules(False) == rules({"mode": "off", "load": 2.0}) == OFF
    made = rules({"key": ["x-a", "user"], "load": 2.0, "least": 0, "send": True})
    assert (made.on, made.key.names, made.load, made.least, made.send) == (True, ("x-a", "user"), 2.0, 0, True)
    assert (BUILT_IN.key, BUILT_IN.load, BUILT_IN.least, BUILT_IN.send) == (BUILT_IN_KEY, 1.5, 4096, False)


@looped(
    ("value", "words"),
    [
        ("auto", "auto"),
        ("off", "off"),
        ({"load": 2.0, "send": True}, "load: 2, send: true"),
        ({"key": ["x-a", "prompt"], "least": 0}, "key: [x-a, prompt], least: 0"),
    ],
)
def test_rules_are_told_as_the_table_writes_them(value: object, words: str) -> None:
    assert rules(value).words == words


def test_which_policies_have_affinity() -> None:
    assert [under_policy(BUILT_IN, policy, written=False).on for policy in POLICIES] == [False, True, True, True, False]
    assert [under_policy(BUILT_IN, policy, written=True).on for policy in POLICIES] == [False, True, True, True, True]
    assert not under_policy(OFF, "weighted", written=True).on


def test_a_group_has_the_weights_that_its_policy_knows() -> None:
    for policy, weights in (("weighted", (3, 0, 2)), ("least_busy", (3, 0, 2)), ("round_robin", (1, 0, 1))):
        group = member_group("g", policy, ("a", "b", "c"), (3, 0, 2), [1])
        assert group is not None
        assert (group.label, group.names, group.away) == ("g", ("a", "b", "c"), frozenset({1}))
        assert group.weights == weights
    assert member_group("g", "fastest", ("a", "b"), (3, 2)) is not None
    assert member_group("g", "priority", ("a", "b"), (1, 1)) is None
    assert member_group("g", "weighted", ("a", "b"), (1, 0)) is None


def test_the_nearest_level_decides() -> None:
    table = snapshot(
        """
defaults: {affinity: {load: 2}}
vendors: {v: {profile: openai, api_key: k}, w: {profile: openai, api_key: k, affinity: {load: 3}}}
models: {v/m: {}, v/own: {affinity: {load: 4}}, w/m: {}, w/off: {affinity: off}, w/*: {}}
routes: {r: {targets: [v/m, w/m]}, own: {targets: [v/m, w/m], affinity: {load: 5}}}
"""
    )
    names = ("v/m", "v/own", "w/m", "w/off")
    assert [table.models[name].affinity.words for name in names] == ["load: 2", "load: 4", "load: 3", "off"]
    assert table.wildcards["w"].affinity.words == "load: 3"
    assert [table.routes[name].own_settings.affinity.words for name in ("r", "own")] == ["load: 2", "load: 5"]
    assert not table.has_affinity
