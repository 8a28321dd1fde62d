"""Names of discovered models: listed exactly if `plan` would let a team request them."""

from proxy.errors import GatewayError
from proxy.routing.deployment_load import IDLE
from proxy.routing.discovered_names import each_discovered
from proxy.routing.resolve_model import nearest, plan_for, visible
from tests.proxy.kit.tables import digest_of, snapshot
from tests.support.looped import looped

GRANTS = {"all": "['*']", "one": "[v/m, w/m]", "place": "[v/m/east]", "none": "[v/own]", "vendor": "['v/*']"}
DISCOVERED = """
vendors: {v: {profile: openai, api_key: k}, w: {profile: openai, api_key: k}}
models:
  v/*: {deployments: {east: {}, west: {}}}
  w/*: {}
  v/own: {}
  v/pair: {deployments: {north: {}, south: {}}}
  w/a/b: {}
routes: {v/routed: v/own, w/plain: v/own}
teams:
""" + "".join(
    f"  {team}: {{keys: ['{digest_of(team)}'], models: {models}, routes: {{v/mine-of-{team}: w/x}}}}\n"
    for team, models in GRANTS.items()
)
LISTED = (
    *("m", "own", "pair", "pair/north", "pair/east", "routed", "plain", "east", "m/east", "m/west", "a"),
    *("mine-of-vendor", "a/b", "a/b/default", "m/default", "default", "other/model:8b", "other/east"),
)


@looped("team", GRANTS)
@looped("vendor", ["v", "w"])
def test_a_discovered_name_is_listed_just_where_it_may_be_asked_for_and_is_that_model(team: str, vendor: str) -> None:
    table = snapshot(DISCOVERED)
    asking = table.teams[team]
    for model in LISTED:
        found = dict(each_discovered(table, asking, vendor, model))
        name = f"{vendor}/{model}"
        places = [target.deployment for target in table.wildcards[vendor].targets]
        for candidate, pinned in ((name, places), *((f"{name}/{place}", [place]) for place in places)):
            try:
                planned = plan_for(table, asking, candidate, "openai", IDLE)
            except GatewayError:
                assert candidate not in found
                continue
            reached = [(target.model_key, target.model, target.deployment) for target in planned.targets]
            leads = not planned.by_route and reached == [(f"{vendor}/*", model, place) for place in pinned]
            if candidate in found:
                assert leads
                assert [target.deployment for target in found[candidate]] == pinned
            else:
                # A deployment may be requested by names that the list does not show, like a configured deployment.
                assert not leads or candidate != name


def test_a_discovered_model_is_listed_with_its_deployments_as_the_table_s_own_are() -> None:
    table = snapshot(DISCOVERED)
    shown = {team: [name for name, _ in each_discovered(table, table.teams[team], "v", "m")] for team in table.teams}
    every = ["v/m", "v/m/east", "v/m/west"]
    assert shown == {"all": every, "vendor": every, "one": every, "place": ["v/m/east"], "none": []}


def test_listing_many_names_leaves_the_models_in_use_where_they_are() -> None:
    table = snapshot(DISCOVERED)
    kept = plan_for(table, table.teams["all"], "v/in-use", "openai", IDLE).targets
    for number in range(10_000):
        assert len([*each_discovered(table, table.teams["all"], "v", f"m{number}")]) == 3
        assert len([*each_discovered(table, table.teams["place"], "v", f"m{number}")]) == 0
    assert plan_for(table, table.teams["all"], "v/in-use", "openai", IDLE).targets[0] is kept[0]


def test_a_name_that_is_not_listed_works_and_is_neither_listed_nor_suggested() -> None:
    table = snapshot(
        f"""
vendors: {{v: {{profile: openai, api_key: k}}}}
models:
  v/open: {{}}
  v/behind: {{listed: false, deployments: {{a: {{}}, b: {{}}}}}}
  v/own: {{}}
  v/*: {{listed: false}}
routes: {{helper: {{targets: [v/behind], listed: false}}, shown: helper}}
teams:
  t:
    keys: ["{digest_of("t")}"]
    models: ["*"]
    routes: {{mine: {{targets: [v/open], listed: false}}, v/own: {{targets: [v/open], listed: false}}}}
"""
    )
    team = table.teams["t"]
    assert visible(table, team) == ("shown", "v/open")
    assert nearest(table, team, "v/behint") == ()
    assert not [*each_discovered(table, team, "v", "found")]
    for name in ("helper", "mine", "v/behind", "v/behind/a", "v/own", "v/found"):
        assert plan_for(table, team, name, "openai", IDLE).targets
