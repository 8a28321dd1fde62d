"""Names resolved to targets: which rule finds which target, which team may request it, and the message for a wrong
name."""

import pytest

from proxy.errors import ErrorFacts, GatewayError
from proxy.routing.deployment_load import IDLE, Load
from proxy.routing.request_plan import Plan, Step
from proxy.routing.resolve_model import (
    MAX_CACHED_NAMES,
    MAX_COMPARED,
    allowed,
    covered,
    knows,
    nearest,
    plan_for,
    visible,
)
from proxy.routing.snapshot import ANYONE, Team
from tests.proxy.kit.deployment_loads import Told
from tests.proxy.kit.tables import digest_of, snapshot
from tests.support.looped import looped

TABLE = snapshot(
    f"""
vendors:
  openai: {{api_key: k}}
  azure-eu: {{profile: openai, api_key: k}}
  fw: {{profile: openai, api_key: k}}
  local: {{profile: openai, api_key: k}}
models:
  openai/gpt: {{}}
  openai/gpt/turbo: {{}}
  openai/instruct: {{}}
  azure-eu/gpt:
    policy: weighted
    deployments: {{sweden: {{weight: 3}}, france: {{}}}}
  azure-eu/ordered: {{deployments: {{one: {{}}, two: {{}}, three: {{}}}}}}
  fw/*: {{}}
  fw/accounts/known: {{}}
  local/*: {{deployments: {{a: {{}}, b: {{}}}}}}
routes:
  fast: {{targets: [openai/gpt, azure-eu/ordered]}}
  cheap: {{targets: [fw/accounts/any, fast]}}
  even: {{policy: weighted, targets: [{{target: openai/gpt, weight: 1}}, {{target: openai/instruct, weight: 3}}]}}
  openai/alias: azure-eu/gpt/france
teams:
  search:
    keys: ["{digest_of("s")}"]
    models: ["openai/*", azure-eu/gpt/sweden, cheap, fw/small]
    routes: {{fast: openai/instruct, own: fast}}
  narrow: {{keys: ["{digest_of("n")}"], models: [openai/gpt]}}
  azure: {{keys: ["{digest_of("a")}"], models: [azure-eu/gpt]}}
  none: {{keys: ["{digest_of("0")}"], routes: {{own: openai/gpt}}}}
server: {{surfaces: {{scale: {{default_vendor: openai}}}}}}
"""
)
SEARCH, NARROW, NONE = (TABLE.teams[name] for name in ("search", "narrow", "none"))


def planned(name: str, team: Team = ANYONE, surface: str = "openai", draw: float = 0.0) -> Plan:
    return plan_for(TABLE, team, name, surface, Told(lambda: draw))


def targets(name: str, team: Team = ANYONE, surface: str = "openai", draw: float = 0.0) -> list[str]:
    return [target.name for target in planned(name, team, surface, draw).targets]


def refusal(name: str, team: Team = ANYONE, surface: str = "openai") -> ErrorFacts:
    with pytest.raises(GatewayError) as caught:
        planned(name, team, surface)
    return caught.value.facts


@looped(
    ("name", "expected", "rule", "label"),
    [
        ("openai/gpt", ["openai/gpt/default"], "model", "openai/gpt"),
        ("openai/gpt/default", ["openai/gpt/default"], "deployment", "openai/gpt"),
        ("openai/gpt/turbo", ["openai/gpt/turbo/default"], "model", "openai/gpt/turbo"),
        ("openai/gpt/turbo/default", ["openai/gpt/turbo/default"], "deployment", "openai/gpt/turbo"),
        ("azure-eu/gpt/france", ["azure-eu/gpt/france"], "deployment", "azure-eu/gpt"),
        ("fw/accounts/known", ["fw/accounts/known/default"], "model", "fw/accounts/known"),
        ("fw/accounts/x/models/y", ["fw/accounts/x/models/y/default"], "vendor/*", "fw/*"),
        ("fw/x/default", ["fw/x/default"], "vendor/* deployment", "fw/*"),
        ("fw/default", ["fw/default/default"], "vendor/*", "fw/*"),
        ("local/m", ["local/m/a", "local/m/b"], "vendor/*", "local/*"),
        ("local/m/b", ["local/m/b"], "vendor/* deployment", "local/*"),
        ("local/m/c", ["local/m/c/a", "local/m/c/b"], "vendor/*", "local/*"),
    ],
)
def test_the_longest_key_wins_before_the_deployment(name: str, expected: list[str], rule: str, label: str) -> None:
    found = planned(name)
    assert [target.name for target in found.targets] == expected
    assert (found.asked, found.label, found.by_route, found.steps) == (name, label, False, (Step(rule, name),))


def test_a_model_behind_a_wildcard_is_called_by_its_own_name_upstream() -> None:
    (target,) = planned("fw/accounts/x/models/y").targets
    assert (target.model, target.upstream_model, target.label) == (
        "accounts/x/models/y",
        "accounts/x/models/y",
        "fw/*/default",
    )


def test_a_model_asked_for_twice_is_the_same_target_so_that_compiled_tables_are_kept() -> None:
    assert planned("fw/x").targets[0] is planned("fw/x").targets[0]


def test_a_policy_orders_the_deployments_of_a_model() -> None:
    assert targets("azure-eu/ordered") == [f"azure-eu/ordered/{name}" for name in ("one", "two", "three")]
    assert targets("azure-eu/gpt", draw=0.74) == ["azure-eu/gpt/sweden", "azure-eu/gpt/france"]
    assert targets("azure-eu/gpt", draw=0.76) == ["azure-eu/gpt/france", "azure-eu/gpt/sweden"]


def test_a_route_stands_for_its_members_in_order_with_their_deployments() -> None:
    found = planned("fast")
    assert [target.name for target in found.targets] == [
        "openai/gpt/default",
        "azure-eu/ordered/one",
        "azure-eu/ordered/two",
        "azure-eu/ordered/three",
    ]
    assert (found.label, found.by_route) == ("fast", True)
    assert found.steps == (Step("route", "fast"), Step("model", "openai/gpt"), Step("model", "azure-eu/ordered"))


def test_a_weighted_route_draws_its_first_member() -> None:
    assert targets("even", draw=0.24) == ["openai/gpt/default", "openai/instruct/default"]
    assert targets("even", draw=0.26) == ["openai/instruct/default", "openai/gpt/default"]


LOADED = snapshot(
    """
vendors: {a: {profile: openai, api_key: k}, b: {profile: openai, api_key: k}}
models:
  a/m: {policy: least_busy, deployments: {x: {}, y: {weight: 2}, z: {weight: 0}}}
  b/m: {policy: fastest, deployments: {x: {}, y: {}}}
  b/*: {policy: round_robin, deployments: {x: {}, y: {}}}
routes:
  calm: {policy: least_busy, targets: [inner, b/m]}
  quick: {policy: fastest, targets: [inner, b/m, {target: b/n, weight: 0}]}
  inner: {targets: [a/m]}
  turns: {policy: round_robin, targets: [a/m/x, b/m/x]}
"""
)


def loaded(name: str, load: Load) -> list[str]:
    return [target.name for target in plan_for(LOADED, ANYONE, name, "openai", load).targets]


def test_the_load_orders_the_deployments_of_a_model() -> None:
    assert loaded("a/m", Told(busy={"a/m/x": 2, "a/m/y": 3})) == ["a/m/y", "a/m/x"]
    seconds = {"b/m/x": 0.9, "b/m/y": 0.4}
    assert loaded("b/m", Told(lambda: 0.5, seconds=seconds)) == ["b/m/y", "b/m/x"]


def test_the_load_of_a_route_s_member_is_that_of_all_it_leads_to() -> None:
    busy = {"a/m/x": 1, "a/m/y": 2, "b/m/x": 4}
    assert loaded("calm", Told(lambda: 0.5, busy))[0].startswith("a/m/")
    assert loaded("calm", Told(lambda: 0.5, {**busy, "a/m/x": 9}))[0].startswith("b/m/")
    seconds = {"a/m/x": 0.9, "a/m/y": 0.3, "b/m/x": 0.5, "b/m/y": 0.4}
    assert loaded("quick", Told(lambda: 0.5, seconds=seconds))[0].startswith("a/m/")
    assert loaded("quick", Told(lambda: 0.5, seconds={**seconds, "a/m/y": 0.6}))[0] == "b/m/y"


def test_turns_are_counted_by_the_table_s_own_names() -> None:
    told = Told()
    first = [loaded(name, told)[0] for name in ("turns", "b/one", "turns", "b/two", "turns", "b/one")]
    assert first == ["a/m/x", "b/one/x", "b/m/x", "b/two/y", "a/m/x", "b/one/x"]
    assert told.turns == {"turns": 2, "b/*": 2}


def test_a_route_over_a_route_expands_depth_first() -> None:
    assert targets("cheap")[:2] == ["fw/accounts/any/default", "openai/gpt/default"]


def test_a_target_that_two_members_lead_to_is_tried_once() -> None:
    table = snapshot(
        "vendors: {openai: {api_key: k}}\nmodels: {openai/a: {}, openai/b: {}}\n"
        "routes: {r: {targets: [openai/a, openai/b, s]}, s: {targets: [openai/b, openai/a/default]}}"
    )
    found = plan_for(table, ANYONE, "r", "openai", IDLE)
    assert [target.name for target in found.targets] == ["openai/a/default", "openai/b/default"]


def test_a_team_s_own_route_comes_first_and_inside_other_routes_too() -> None:
    assert targets("fast", SEARCH) == ["openai/instruct/default"]
    assert targets("own", SEARCH) == ["openai/instruct/default"]
    assert targets("cheap", SEARCH) == ["fw/accounts/any/default", "openai/instruct/default"]
    assert planned("own", SEARCH).steps[0] == Step("team route", "own")
    assert planned("own", SEARCH).label == "own"


def test_a_route_comes_before_a_model() -> None:
    assert targets("openai/alias") == ["azure-eu/gpt/france"]


def test_the_surface_s_default_vendor_is_asked_last() -> None:
    assert targets("gpt", surface="scale") == ["openai/gpt/default"]
    assert targets("gpt/turbo", surface="scale") == ["openai/gpt/turbo/default"]
    assert targets("fast", surface="scale")[0] == "openai/gpt/default"
    assert planned("gpt", surface="scale").steps == (Step("default vendor", "openai"), Step("model", "openai/gpt"))
    assert planned("gpt", surface="scale").label == "openai/gpt"
    assert refusal("gpt").status == 404


@looped(
    ("name", "surface", "expected"),
    [
        ("openai/gpt", "openai", "openai/gpt"),
        ("openai/gpt/default", "openai", "openai/gpt/default"),
        ("gpt", "scale", "gpt"),
        ("fw/x", "openai", "fw/x"),
        ("fast", "openai", "openai/gpt"),
        ("cheap", "openai", "fw/accounts/any"),
    ],
)
def test_the_answer_names_what_was_asked_or_after_a_route_what_served(name: str, surface: str, expected: str) -> None:
    found = planned(name, surface=surface)
    assert found.served_name(found.targets[0]) == expected


@looped(
    "name",
    ["", "/", "gpt", "openai", "openai/", "/openai/gpt", "openai/nothing", "azure-eu/gpt/norway", "fw/", "OPENAI/GPT"],
)
def test_a_name_that_leads_nowhere_is_a_404(name: str) -> None:
    facts = refusal(name)
    assert (facts.status, facts.code, facts.param) == (404, "model_not_found", "model")


@looped("name", ["fw/..", "fw/.", "fw/a/../b", "fw/../../x", "fw//a", "fw/a/", "fw/a//b", "fw/a/./b"])
def test_a_name_that_would_step_upwards_in_an_address_leads_nowhere(name: str) -> None:
    assert refusal(name).status == 404


def test_a_404_tells_the_nearest_names() -> None:
    assert "Did you mean 'openai/instruct'" in refusal("openai/instruct-1").message
    assert "Did you mean 'openai/instruct'" in refusal("instruct").message
    assert "Did you mean" not in refusal("zzzzzzzz").message
    assert len(nearest(TABLE, ANYONE, "azure-eu/ordered/on")) <= 3


def test_in_a_large_table_the_nearest_names_of_the_same_vendor_are_still_found() -> None:
    rows = "\n".join(f"  {vendor}/model-{number}: {{}}" for vendor in ("one", "two") for number in range(MAX_COMPARED))
    table = snapshot(
        f"defaults: {{api_key: k}}\nvendors: {{one: {{profile: openai}}, two: {{profile: openai}}}}\nmodels:\n{rows}"
    )
    assert nearest(table, ANYONE, "two/model-17x")[0] == "two/model-17"
    assert "two/model-249" in nearest(table, ANYONE, "model-249")


def test_a_404_tells_no_name_the_team_may_not_ask_for() -> None:
    assert nearest(TABLE, NARROW, "azure-eu/gpt/norway") == ()
    assert nearest(TABLE, NARROW, "openai/gpt-") == ("openai/gpt",)


@looped(
    "name", ["openai/gpt", "openai/instruct", "openai/alias", "azure-eu/gpt/sweden", "fast", "own", "cheap", "fw/small"]
)
def test_a_team_may_ask_for_what_its_list_and_its_own_routes_say(name: str) -> None:
    assert targets(name, SEARCH)


@pytest.mark.parametrize("name", ["azure-eu/gpt", "azure-eu/gpt/france"])
def test_what_its_own_names_tell_it_of_is_refused_to_it(name: str) -> None:
    facts = refusal(name, SEARCH)
    assert (facts.status, facts.code) == (403, "model_not_allowed")


@looped("name", ["azure-eu/ordered", "even", "fw/x"])
def test_everything_else_does_not_exist_for_it(name: str) -> None:
    facts = refusal(name, SEARCH)
    assert (facts.status, facts.code) == (404, "model_not_found")


def test_a_granted_model_includes_its_deployments() -> None:
    assert targets("openai/gpt/default", NARROW) == ["openai/gpt/default"]
    assert targets("fw/small/default", SEARCH) == ["fw/small/default"]


@pytest.mark.parametrize(("name", "team"), [("openai/gpt/turbo", NARROW), ("fw/small/other", SEARCH)])
def test_a_granted_model_is_no_grant_for_another_whose_name_goes_on(name: str, team: Team) -> None:
    assert refusal(name, team).code == "model_not_found"


def test_a_granted_route_may_lead_where_the_team_may_not_go_itself() -> None:
    assert targets("own", NONE) == ["openai/gpt/default"]
    assert refusal("openai/gpt", NONE).status == 403


def test_through_the_default_vendor_the_whole_name_must_be_granted() -> None:
    assert targets("gpt", NARROW, "scale") == ["openai/gpt/default"]
    assert refusal("instruct", NARROW, "scale").code == "model_not_found"
    assert "'instruct'" in refusal("instruct", NARROW, "scale").message


@looped(
    ("pattern", "name", "expected"),
    [
        ("*", "a/b/c", True),
        ("a/*", "a/b", True),
        ("a/*", "a/b/c", True),
        ("a/*", "ab/c", False),
        ("a/*", "a", False),
        ("a/b", "a/b", True),
        ("a/b", "a/bc", False),
        ("a/b/c", "a/b", False),
        ("quick", "quick", True),
        ("quick", "quicker", False),
    ],
)
def test_a_pattern_grants_a_name_a_vendor_or_everything(pattern: str, name: str, expected: bool) -> None:
    team = Team("t", (pattern,), {})
    assert covered(team, name) is expected
    assert allowed(TABLE, team, name) is expected


def test_a_name_that_is_a_route_s_grants_the_route_and_not_the_model_it_hides() -> None:
    team = Team("t", ("openai/alias",), {})
    assert covered(team, "openai/alias")
    assert not allowed(TABLE, team, "openai/alias")
    assert not allowed(TABLE, Team("t", ("openai/gpt",), {"openai/gpt": TABLE.routes["fast"]}), "openai/gpt")


def test_the_list_shows_what_may_be_asked_for_routes_first_and_no_wildcard() -> None:
    assert visible(TABLE, NARROW) == ("openai/gpt",)
    assert visible(TABLE, NONE) == ("own",)
    assert visible(TABLE, TABLE.teams["azure"]) == ("azure-eu/gpt", "azure-eu/gpt/sweden", "azure-eu/gpt/france")
    assert visible(TABLE, SEARCH) == (
        "fast",
        "own",
        "cheap",
        "openai/alias",
        "openai/gpt",
        "openai/gpt/turbo",
        "openai/instruct",
        "azure-eu/gpt/sweden",
    )
    everything = visible(TABLE, ANYONE)
    assert everything[:4] == ("fast", "cheap", "even", "openai/alias")
    assert "azure-eu/gpt" in everything
    assert "azure-eu/gpt/france" in everything
    assert not [name for name in everything if "*" in name]


def test_every_name_of_the_list_can_be_asked_for() -> None:
    for team in (ANYONE, SEARCH, NARROW, NONE):
        for name in visible(TABLE, team):
            assert targets(name, team)


def test_a_team_knows_of_the_models_behind_its_routes_and_of_those_of_its_deployments() -> None:
    assert knows(TABLE, SEARCH, "azure-eu/gpt")
    assert knows(TABLE, NONE, "openai/gpt")
    assert knows(TABLE, NONE, "openai/gpt/default")
    assert not knows(TABLE, NONE, "azure-eu/gpt")
    assert not knows(TABLE, SEARCH, "azure-eu/ordered")
    assert not knows(TABLE, SEARCH, "nothing")


def test_a_plan_that_no_load_decides_is_made_once_for_a_team_a_name_and_a_surface() -> None:
    for name in ("openai/gpt", "azure-eu/ordered", "fw/accounts/x", "cheap", "azure-eu/gpt/france"):
        assert planned(name) is planned(name)
        assert planned(name).targets == plan_for(TABLE, ANYONE, name, "openai", IDLE).targets
    assert planned("fast") is not planned("fast", SEARCH)
    assert planned("gpt", surface="scale").steps[0].rule == "default vendor"
    assert refusal("gpt").code == "model_not_found"
    assert refusal("fast", NARROW).status == 404


@pytest.mark.parametrize("name", ["azure-eu/gpt", "even"])
def test_a_plan_that_the_load_decides_is_ordered_anew_for_each_request(name: str) -> None:
    first, second = planned(name, draw=0.0), planned(name, draw=0.99)
    assert first.targets == second.targets[::-1]
    assert (first.steps[0], first.label, first.asked) == (second.steps[0], second.label, second.asked)
    assert planned(name, draw=0.0).targets == first.targets


def test_what_is_kept_of_names_is_bounded_and_dies_with_the_table() -> None:
    table, other = (snapshot("vendors: {fw: {profile: openai, api_key: k}}\nmodels: {fw/*: {}}") for _ in range(2))
    for number in range(MAX_CACHED_NAMES + 10):
        plan_for(table, ANYONE, f"fw/{number}", "openai", IDLE)
    assert 0 < len(table.cached_names) <= MAX_CACHED_NAMES
    assert not other.cached_names


def test_a_name_that_is_refused_is_not_kept() -> None:
    table = snapshot("vendors: {fw: {profile: openai, api_key: k}}\nmodels: {fw/m: {}}")
    with pytest.raises(GatewayError):
        plan_for(table, ANYONE, "fw/x", "openai", IDLE)
    assert not table.cached_names
