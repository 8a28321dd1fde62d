"""Rules of second attempts: their inheritance in the configuration, their description, and the delay."""

from config.sections.failover_section import HedgeSection
from proxy.hedging.hedge_rules import MIN_WAIT, HedgeRules, hedge_rules
from tests.proxy.kit.tables import snapshot
from tests.support.looped import looped


def rules(value: object) -> HedgeRules | None:
    return hedge_rules(HedgeSection.model_validate(value))


def test_there_are_none_unless_the_operator_writes_them() -> None:
    assert hedge_rules(None) is rules("off") is rules({"mode": "off", "share": 0.5}) is None
    assert rules("auto") == rules({}) == HedgeRules(1.5, MIN_WAIT, 0.03, 20, 1.0)
    made = rules({"after": "800ms", "share": "5%", "burst": 3, "usd_per_hour": 0.5})
    assert made == HedgeRules(None, 0.8, 0.05, 3, 0.5)


@looped(
    ("value", "words"),
    [
        ("auto", "after 1.5x, share 3%, burst 20, 1 USD per hour"),
        (
            {"after": "1s500ms", "share": 0.125, "burst": 1, "usd_per_hour": 0.25},
            "after 1.5s, share 12.5%, burst 1, 0.25 USD per hour",
        ),
    ],
)
def test_rules_are_told_as_the_configuration_writes_them(value: object, words: str) -> None:
    made = rules(value)
    assert made is not None
    assert made.words == words
    assert rules({key: each for key, each in made.facts.items()}) == made


@looped(
    ("value", "percentile", "wait"),
    [
        ("auto", None, None),
        ("auto", 2.0, 3.0),
        ("auto", 0.05, MIN_WAIT),
        ({"after": "2x"}, 2.0, 4.0),
        ({"after": "50ms"}, None, 0.05),
        ({"after": "2s"}, 0.1, 2.0),
    ],
)
def test_how_long_the_first_attempt_may_be_without_content(
    value: object, percentile: float | None, wait: float | None
) -> None:
    made = rules(value)
    assert made is not None
    assert made.wait(percentile) == wait


def test_the_nearest_level_decides_and_a_route_takes_that_of_its_only_target() -> None:
    table = snapshot(
        "defaults: {hedge: {burst: 1}}\n"
        "vendors: {a: {profile: openai, api_key: k, hedge: {burst: 2}}, b: {profile: openai, api_key: k}}\n"
        "models: {a/m: {hedge: {burst: 3}}, a/n: {}, b/m: {}, b/off: {hedge: off}, 'b/*': {}}\n"
        "routes: {own: {targets: [a/m], hedge: {burst: 4}}, one: a/m, two: {targets: [a/m, b/m]}}\n"
    )
    bursts = {name: each.hedge and each.hedge.burst for name, each in (*table.models.items(), *table.wildcards.items())}
    assert bursts == {"a/m": 3, "a/n": 2, "b/m": 1, "b/off": None, "b": 1}
    from proxy.routing.deployment_load import IDLE
    from proxy.routing.resolve_model import plan_for
    from proxy.routing.snapshot import ANYONE

    found = {
        name: plan_for(table, ANYONE, name, "openai", IDLE).hedge for name in ("own", "one", "two", "b/off", "b/any")
    }
    assert {name: each and each.burst for name, each in found.items()} == {
        "own": 4,
        "one": 3,
        "two": 1,
        "b/off": None,
        "b/any": 1,
    }
