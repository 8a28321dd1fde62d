"""A compiled configuration: complete or refused, and immutable."""

import gc
import math
import tracemalloc
from dataclasses import FrozenInstanceError
from datetime import UTC

import pytest

from config.load_config import examine_embedded
from config.problem import ConfigError
from proxy.errors import GatewayError
from proxy.limits.limit import UNLIMITED
from proxy.routing.compile_limits import NO_LIMITS
from proxy.routing.deployment_load import IDLE
from proxy.routing.resolve_model import plan_for, visible
from proxy.routing.snapshot import ANYONE, CurrentSnapshot, Key, RouteMember, Snapshot, Team, build_snapshot
from tests.proxy.kit.tables import digest_of, loaded, snapshot
from tests.support.looped import looped

TEXT = f"""
vendors:
  openai: {{api_key: k}}
  fw: {{profile: openai, api_key: k}}
models:
  openai/gpt: {{policy: weighted, deployments: {{eu: {{weight: 3}}, us: {{}}}}}}
  fw/*: {{}}
routes:
  fast: {{policy: weighted, targets: [openai/gpt, {{target: fw/x, weight: 2}}]}}
teams:
  search:
    keys: ["{digest_of("one")}", "{digest_of("two").upper().replace("SHA", "sha")}"]
    models: ["openai/*", fast]
    routes: {{fast: fw/y}}
  strict:
    keys: ["{digest_of("three")}"]
    models: ["*"]
    on_unsupported: error
    context_length_exceeded_behavior: truncate
    inference_extra_params: false
    inference_extra_headers: false
server:
  surfaces: {{scale: {{default_vendor: openai, default_model: openai/gpt}}, pais: {{default_model: fast}}}}
"""
TABLE = snapshot(TEXT)


def test_models_wildcard_rows_and_routes_keep_their_order_and_weights() -> None:
    model = TABLE.models["openai/gpt"]
    assert (model.name, model.policy) == ("openai/gpt", "weighted")
    assert [(target.deployment, target.weight) for target in model.targets] == [("eu", 3), ("us", 1)]
    assert "fw/*" not in TABLE.models
    (target,) = TABLE.wildcards["fw"].targets
    assert (target.label, target.model_key) == ("fw/*/default", "fw/*")
    route = TABLE.routes["fast"]
    assert (route.name, route.policy) == ("fast", "weighted")
    assert route.members == (RouteMember("openai/gpt", 1), RouteMember("fw/x", 2))


def test_a_team_has_its_list_its_routes_and_its_keys() -> None:
    team = TABLE.teams["search"]
    assert (team.name, team.allow) == ("search", ("openai/*", "fast"))
    assert team.routes["fast"].members == (RouteMember("fw/y", 1),)
    strict = TABLE.teams["strict"]
    owners = {"one": team, "two": team, "three": strict}
    digests = {digest_of(key).removeprefix("sha256:"): owner for key, owner in owners.items()}
    found = {digest: (key.team, key.ends, key.name, key.label) for digest, key in TABLE.keys.items()}
    assert found == {digest: (owner, math.inf, "", digest[:8]) for digest, owner in digests.items()}


def test_a_key_ends_when_the_table_says_and_has_the_name_that_it_gives() -> None:
    keys = f'[{{key: "{digest_of("one")}", not_after: 2026-12-31T00:00:00Z}}, {{key: "{digest_of("two")}"}}]'
    table = snapshot(f"vendors: {{mock: {{}}}}\nmodels: {{mock/echo: {{}}}}\nteams: {{search: {{keys: {keys}}}}}")
    assert [key.ends for key in table.keys.values()] == [1_798_675_200.0, math.inf]
    keys = f'[{{key: "{digest_of("one")}", name: ci}}, "{digest_of("two")}"]'
    table = snapshot(f"vendors: {{mock: {{}}}}\nmodels: {{mock/echo: {{}}}}\nteams: {{search: {{keys: {keys}}}}}")
    assert [key.name for key in table.keys.values()] == ["ci", ""]


def test_a_team_has_its_own_word_on_what_its_requests_may_hold() -> None:
    strict = TABLE.teams["strict"]
    assert (strict.on_unsupported, strict.context_length_exceeded_behavior) == ("error", "truncate")
    assert (strict.extra_params, strict.extra_headers) == (False, False)


@pytest.mark.parametrize("team", [TABLE.teams["search"], ANYONE])
def test_a_team_that_is_told_nothing_has_the_deployment_s_word_and_all_freedom(team: Team) -> None:
    assert (team.on_unsupported, team.context_length_exceeded_behavior) == (None, None)
    assert (team.extra_params, team.extra_headers) == (True, True)


def test_surfaces_have_their_defaults() -> None:
    assert TABLE.default_vendors["scale"] == "openai"
    assert TABLE.default_models == {"scale": "openai/gpt", "pais": "fast"}


def test_every_deployment_is_told_wildcard_rows_included() -> None:
    assert [target.label for target in TABLE.targets()] == ["openai/gpt/eu", "openai/gpt/us", "fw/*/default"]


def test_nothing_of_it_can_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        TABLE.digest = "other"  # type: ignore[misc]
    for mapping in (TABLE.models, TABLE.wildcards, TABLE.routes, TABLE.teams, TABLE.keys, TABLE.default_models):
        assert not hasattr(mapping, "__setitem__")


def test_it_carries_the_digest_of_what_was_loaded() -> None:
    assert TABLE.digest == loaded(TEXT).digest
    assert snapshot(TEXT + "# a comment\n").digest != TABLE.digest


def test_every_problem_of_every_deployment_is_told_once() -> None:
    text = """
vendors:
  one: {profile: opnai}
  openai: {}
models:
  one/a: {deployments: {x: {}, y: {}}}
  one/b: {}
  openai/c: {deployments: {x: {}, y: {api_key: k}}}
"""
    with pytest.raises(ConfigError) as caught:
        snapshot(text)
    assert [str(problem) for problem in caught.value.problems] == [
        "table.yaml:4:18 vendors.one.profile: no profile is called 'opnai'; did you mean openai or pais? For a "
        "server that speaks OpenAI's API write profile: openai_compatible",
        "table.yaml:5:11 vendors.openai: the profile 'openai' needs an api_key",
    ]


def test_the_embedded_table_is_the_mock_for_anyone() -> None:
    table = build_snapshot(examine_embedded({}).sound())
    assert list(table.models) == ["mock/echo"]
    assert list(table.wildcards) == ["mock"]
    assert not table.keys
    assert (ANYONE.name, ANYONE.allow, dict(ANYONE.routes)) == ("anonymous", ("*",), {})


def test_a_reader_keeps_the_table_it_read_while_later_ones_get_the_next() -> None:
    old, new = (snapshot(f"vendors: {{mock: {{}}}}\nmodels: {{mock/{name}: {{}}}}") for name in ("old", "new"))
    live = CurrentSnapshot(old, 1_795_000_000)
    read = live.snapshot
    live.swap(new)
    assert list(read.models) == ["mock/old"]
    assert list(live.snapshot.models) == ["mock/new"]
    assert live.since == 1_795_000_000


def test_the_vendors_that_are_discovered_are_those_that_say_so() -> None:
    vendors = "vendors: {a: {profile: openai, api_key: k, discover: true}, b: {profile: openai, api_key: k}}\n"
    assert snapshot(vendors + "models: {a/*: {}, b/*: {}}\n").discover == {"a"}
    assert TABLE.discover == frozenset()


@looped("profile", ["vertex", "azure_v1", "bedrock", "mock"])
def test_a_vendor_without_a_list_that_could_be_fetched_is_told_at_its_setting(profile: str) -> None:
    params = "url_params: {location: eu, project: p, resource: r, region: eu-west-1}, api_key: k"
    text = f"vendors:\n  v: {{profile: {profile}, {params},\n      discover: true}}\nmodels: {{v/*: {{}}}}\n"
    with pytest.raises(ConfigError) as caught:
        snapshot(text)
    assert [str(problem) for problem in caught.value.problems] == [
        f"table.yaml:4:17 vendors.v.discover: the profile '{profile}' has no list of models that could be fetched"
    ]


LIMITED = f"""
server: {{timezone: Europe/Berlin}}
vendors:
  v: {{profile: openai, api_key: k, limits: {{requests_per_minute: 60}}}}
  w: {{profile: openai, api_key: k}}
models:
  v/m: {{limits: {{concurrent: 5}}, deployments: {{a: {{limits: {{concurrent: 2}}}}, b: {{}}}}}}
  v/n: {{}}
  w/*: {{limits: {{tokens_per_day: 5M}}}}
  w/free: {{}}
routes: {{fast: v/m, all: {{targets: [fast, w/x]}}}}
teams:
  t:
    keys:
      - "{digest_of("whole")}"
      - {{hash: "{digest_of("one")}", name: ci, models: [v/m], limits: {{concurrent: 1}}}}
      - {{hash: "{digest_of("two")}", models: [all]}}
      - {{hash: "{digest_of("three")}", models: [all]}}
      - {{hash: "{digest_of("four")}", models: [v/*, own]}}
    models: [v/*, all]
    routes: {{fast: v/n, own: w/free}}
    limits: {{requests_per_minute: 600, models: {{all: {{concurrent: 3}}}}}}
    budget: {{tokens: 5M, per: month}}
    tags: {{cost_center: "4711"}}
"""


HELD = snapshot(LIMITED)


def key_of(table: Snapshot, text: str) -> Key:
    return table.keys[digest_of(text).removeprefix("sha256:")]


def test_every_scope_with_limits_is_in_the_table_by_its_text() -> None:
    assert {scope: limits.concurrent for scope, limits in HELD.scopes.items()} == {
        "team t": None,
        "team t model all": 3,
        "key t/ci": 1,
        "vendor v": None,
        "model v/m": 5,
        "deployment v/m/a": 2,
        "model w/*": None,
    }
    assert not hasattr(HELD.scopes, "__setitem__")


def test_a_target_has_the_limits_of_its_vendor_its_model_and_itself() -> None:
    assert {label: [scope for scope, _ in found] for label, found in HELD.target_limits.items()} == {
        "v/m/a": ["vendor v", "model v/m", "deployment v/m/a"],
        "v/m/b": ["vendor v", "model v/m"],
        "v/n/default": ["vendor v"],
        "w/*/default": ["model w/*"],
    }
    assert all(limits is HELD.scopes[scope] for found in HELD.target_limits.values() for scope, limits in found)
    assert not hasattr(HELD.target_limits, "__setitem__")


def test_a_team_has_its_limits_its_budgets_and_its_tags() -> None:
    team = HELD.teams["t"]
    assert team.limits.own is HELD.scopes["team t"]
    assert team.limits.models["all"] is HELD.scopes["team t model all"]
    assert [budget.amount for budget in HELD.budgets["team t"]] == [5_000_000]
    assert team.tags == {"cost_center": "4711"}
    assert not hasattr(team.tags, "__setitem__")


def test_the_zone_is_the_table_s() -> None:
    assert str(snapshot(LIMITED).zone) == "Europe/Berlin"
    assert TABLE.zone is UTC


def test_a_table_without_limits_has_no_scopes() -> None:
    assert (dict(TABLE.scopes), dict(TABLE.target_limits)) == ({}, {})
    assert all(team.limits is NO_LIMITS and not team.tags for team in (*TABLE.teams.values(), ANYONE))


def test_a_key_has_a_label_and_limits_of_its_own() -> None:
    digest = digest_of("whole").removeprefix("sha256:")
    assert (key_of(HELD, "whole").label, key_of(HELD, "whole").name) == (digest[:8], "")
    assert (key_of(HELD, "whole").limits, key_of(HELD, "whole").allow) == (UNLIMITED, None)
    assert (key_of(HELD, "one").label, key_of(HELD, "one").allow) == ("ci", ("v/m",))
    assert key_of(HELD, "one").limits is HELD.scopes["key t/ci"]


def test_a_key_narrows_what_its_team_may_ask_for_and_nothing_else() -> None:
    whole, one = key_of(HELD, "whole").team, key_of(HELD, "one").team
    assert whole is HELD.teams["t"]
    assert (one.allow, dict(one.routes)) == (("v/m",), {})
    for same in ("name", "limits", "tags", "tenant", "extra_params", "media", "inner_routes"):
        assert getattr(one, same) == getattr(whole, same)


def test_keys_for_the_same_names_are_one_team_and_the_name_of_an_own_route_grants_it_alone() -> None:
    assert key_of(HELD, "two").team is key_of(HELD, "three").team
    assert key_of(HELD, "two").team is not key_of(HELD, "one").team
    team = key_of(snapshot(LIMITED), "four").team
    assert (team.allow, list(team.routes)) == (("v/*",), ["own"])


def test_a_narrowed_route_keeps_the_team_s_meaning_of_names_inside_it() -> None:
    # Compared by label: a target made of `w/*` may have been made again since the plan of one of them was cached.
    for team in (key_of(HELD, "two").team, HELD.teams["t"]):
        reached = plan_for(HELD, team, "all", "openai", IDLE).targets
        assert [target.label for target in reached] == ["v/n/default", "w/*/default"]


@looped(
    ("key", "name", "code"),
    [
        ("whole", "v/n", None),
        ("one", "v/m", None),
        ("one", "v/m/a", None),
        ("one", "v/n", "model_not_found"),
        ("one", "all", "model_not_found"),
        ("one", "fast", "model_not_found"),
        ("two", "all", None),
        ("two", "fast", "model_not_found"),
        ("two", "v/n", "model_not_allowed"),
        ("two", "v/m", "model_not_found"),
        ("four", "own", None),
        ("four", "fast", "model_not_found"),
        ("four", "w/free", "model_not_allowed"),
    ],
)
def test_a_key_may_ask_for_its_names_alone(key: str, name: str, code: str | None) -> None:
    if code is None:
        assert plan_for(HELD, key_of(HELD, key).team, name, "openai", IDLE).targets
        return
    with pytest.raises(GatewayError) as caught:
        plan_for(HELD, key_of(HELD, key).team, name, "openai", IDLE)
    assert caught.value.facts.code == code


def test_a_key_s_list_of_models_is_narrowed_too() -> None:
    listed = {name: visible(HELD, key_of(HELD, name).team) for name in ("whole", "one", "two", "four")}
    assert listed == {
        "whole": ("fast", "own", "all", "v/m", "v/m/a", "v/m/b", "v/n"),
        "one": ("v/m", "v/m/a", "v/m/b"),
        "two": ("all",),
        "four": ("own", "v/m", "v/m/a", "v/m/b", "v/n"),
    }


def test_ten_thousand_teams_with_limits_take_less_than_a_kilobyte_more_each() -> None:
    def size(limits: str) -> int:
        teams = "".join(
            f"  t{number}: {{keys: ['sha256:{number:064x}'], models: ['*']{limits.replace('N', str(number + 1))}}}\n"
            for number in range(200)
        )
        table = loaded(f"vendors: {{mock: {{}}}}\nmodels: {{mock/echo: {{}}}}\nteams:\n{teams}")
        gc.collect()
        tracemalloc.start()
        try:
            made = build_snapshot(table)
            gc.collect()
            return tracemalloc.get_traced_memory()[0] // len(made.teams)
        finally:
            tracemalloc.stop()

    size("")  # objects that are made once belong to no team
    limits = "{requests_per_minute: N, tokens_per_minute: 20N, concurrent: N}"
    assert size(f", limits: {limits}, budget: {{usd: N, per: month}}") - size("") < 1024
