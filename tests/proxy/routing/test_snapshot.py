"""A table compiled: whole or not at all, and unchangeable."""

import math
from dataclasses import FrozenInstanceError

import pytest

from config.load_config import examine_embedded
from config.problem import ConfigError
from proxy.routing.snapshot import ANYONE, CurrentSnapshot, Key, RouteMember, Team, build_snapshot, expand
from tests.proxy.kit.tables import digest_of, loaded, snapshot

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


def test_models_keep_the_order_of_the_table_with_their_deployments() -> None:
    model = TABLE.models["openai/gpt"]
    assert (model.name, model.policy) == ("openai/gpt", "weighted")
    assert [(target.deployment, target.weight) for target in model.targets] == [("eu", 3), ("us", 1)]


def test_wildcard_rows_stand_apart_by_vendor() -> None:
    assert "fw/*" not in TABLE.models
    (target,) = TABLE.wildcards["fw"].targets
    assert (target.label, target.table_key) == ("fw/*/default", "fw/*")


def test_routes_keep_their_members_and_weights() -> None:
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
    assert TABLE.keys == {digest: Key(owner, label=digest[:8]) for digest, owner in digests.items()}


def test_a_key_ends_when_the_table_says() -> None:
    keys = f'[{{key: "{digest_of("one")}", not_after: 2026-12-31T00:00:00Z}}, {{key: "{digest_of("two")}"}}]'
    table = snapshot(f"vendors: {{mock: {{}}}}\nmodels: {{mock/echo: {{}}}}\nteams: {{search: {{keys: {keys}}}}}")
    assert [key.ends for key in table.keys.values()] == [1_798_675_200.0, math.inf]


def test_a_key_has_the_name_that_the_table_gives_it() -> None:
    keys = f'[{{key: "{digest_of("one")}", name: ci}}, "{digest_of("two")}"]'
    table = snapshot(f"vendors: {{mock: {{}}}}\nmodels: {{mock/echo: {{}}}}\nteams: {{search: {{keys: {keys}}}}}")
    assert [key.name for key in table.keys.values()] == ["ci", ""]


def test_a_team_has_its_own_word_on_what_its_requests_may_hold() -> None:
    strict = TABLE.teams["strict"]
    assert (strict.on_unsupported, strict.context_behavior) == ("error", "truncate")
    assert (strict.extra_params, strict.extra_headers) == (False, False)


@pytest.mark.parametrize("team", [TABLE.teams["search"], ANYONE])
def test_a_team_that_is_told_nothing_has_the_deployment_s_word_and_all_freedom(team: Team) -> None:
    assert (team.on_unsupported, team.context_behavior) == (None, None)
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


def test_a_wildcard_row_becomes_a_model_that_is_made_once() -> None:
    row = TABLE.wildcards["fw"]
    model = expand(row, "accounts/x")
    assert (model.name, model.policy) == ("fw/accounts/x", "priority")
    assert [target.name for target in model.targets] == ["fw/accounts/x/default"]
    assert [target.upstream_model for target in model.targets] == ["accounts/x"]
    assert expand(row, "accounts/x") is model
    assert expand(snapshot(TEXT).wildcards["fw"], "accounts/x") is not model


def test_names_that_clients_make_up_are_not_kept_for_ever() -> None:
    row = TABLE.wildcards["fw"]
    for number in range(5000):
        expand(row, f"made-up-{number}")
    assert expand.cache_info().currsize < 5000


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


@pytest.mark.parametrize("profile", ["vertex", "azure_v1", "bedrock", "mock"])
def test_a_vendor_without_a_list_that_could_be_fetched_is_told_at_its_setting(profile: str) -> None:
    params = "url_params: {location: eu, project: p, resource: r, region: eu-west-1}, api_key: k"
    text = f"vendors:\n  v: {{profile: {profile}, {params},\n      discover: true}}\nmodels: {{v/*: {{}}}}\n"
    with pytest.raises(ConfigError) as caught:
        snapshot(text)
    assert [str(problem) for problem in caught.value.problems] == [
        f"table.yaml:4:17 vendors.v.discover: the profile '{profile}' has no list of models that could be fetched"
    ]
