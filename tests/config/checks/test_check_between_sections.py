"""Checks of sections against each other."""

from textwrap import dedent

import pytest

from config.checks.check_between_sections import ConfiguredNames
from config.reading.yaml_tree import parse
from tests.config.tables import BASE, complaints
from tests.support.looped import looped

KEY_A, KEY_B = "sha256:" + "a" * 64, "sha256:" + "b" * 64


@looped(
    "name",
    [
        "openai/gpt-4o",
        "openai/gpt-4o/default",
        "azure/gpt-4o",
        "azure/gpt-4o/eu",
        "local/x",
        "local/a/b/c",
        "local/x/default",
    ],
)
def test_a_name_that_finds_something_may_be_a_target_and_be_allowed(name: str) -> None:
    assert complaints(f"{BASE}routes: {{r: {name}}}\nteams: {{t: {{keys: ['{KEY_A}'], models: [{name}]}}}}\n") == []


@looped(
    ("name", "hint"),
    [
        ("openai/gpt-40", "; did you mean openai/gpt-4o or openai/gpt-4o-mini?"),
        ("azure/gpt-4o/asia", ""),
        ("azure/gpt-4o/default", ""),
        ("gpt-4o", ""),
        ("nobody/x", ""),
        ("local", ""),
    ],
)
def test_a_name_that_finds_nothing_is_reported_with_the_nearest(name: str, hint: str) -> None:
    (told,) = complaints(f"{BASE}routes:\n  r: {{targets: [local/x, {name}]}}\n")
    assert told.startswith(f"9:26 routes.r.targets.1: no model or route named {name}{hint}")


def test_a_model_needs_its_vendor() -> None:
    text = "version: 1\nvendors: {openai: {}}\nmodels:\n  opnai/gpt: {}\n  opnai/*: {}\n"
    assert complaints(text) == [
        "4:3 models.opnai/gpt: no vendor named opnai; did you mean openai/gpt?",
        "5:3 models.opnai/*: no vendor named opnai; did you mean openai/*?",
    ]


def test_another_name_at_the_upstream_is_refused_where_names_are_passed_on() -> None:
    text = "version: 1\nvendors: {v: {}}\nmodels:\n  v/*: {upstream_model: x, deployments: {b: {upstream_model: y}}}\n"
    assert complaints(text) == [
        "4:9 models.v/*.upstream_model: has no effect under v/*: each name is sent unchanged",
        "4:46 models.v/*.deployments.b.upstream_model: has no effect under v/*: each name is sent unchanged",
    ]


def test_a_deployment_hidden_by_a_model_is_refused() -> None:
    text = "version: 1\nvendors: {v: {}}\nmodels:\n  v/a: {deployments: {b: {}}}\n  v/a/b: {}\n"
    assert complaints(text) == [
        "4:23 models.v/a.deployments.b: cannot be reached: the model of the same name is found first"
    ]


@looped(
    ("routes", "expected"),
    [
        ("a: a", ["9:6 routes.a: circular routes: a -> a"]),
        ("a: b\n  b: a", ["10:6 routes.b: circular routes: a -> b -> a"]),
        (
            "a: {targets: [local/x, b]}\n  b: c\n  c: {targets: [local/x, b]}",
            ["11:26 routes.c.targets.1: circular routes: b -> c -> b"],
        ),
        ("a: {targets: [b, c]}\n  b: c\n  c: local/x", []),
        (
            "openai/gpt-4o: {targets: [openai/gpt-4o, local/x]}",
            ["9:29 routes.openai/gpt-4o.targets.0: circular routes: openai/gpt-4o -> openai/gpt-4o"],
        ),
    ],
)
def test_routes_in_a_circle_are_refused_where_it_closes(routes: str, expected: list[str]) -> None:
    assert complaints(f"{BASE}routes:\n  {routes}\n") == expected


@looped(
    ("fallbacks", "expected"),
    [
        ("context_window: [openai/gpt-4o, local/x], content_filter: [azure/gpt-4o/eu]", None),
        ("context_window: [openai/gpt-4]", "fallbacks.context_window.0: no model named openai/gpt-4; did you mean"),
        (
            "content_filter: [local/x, others]",
            "fallbacks.content_filter.1: must be a model or a deployment, not a route",
        ),
        ("content_filter: [r]", "fallbacks.content_filter.0: must be a model or a deployment, not a route"),
    ],
)
def test_a_fallback_is_a_model_or_a_deployment(fallbacks: str, expected: str | None) -> None:
    text = f"{BASE}routes:\n  others: local/x\n  r: {{targets: [local/x], fallbacks: {{{fallbacks}}}}}\n"
    told = [each.partition(" routes.r.")[2] for each in complaints(text)]
    assert told == [] if expected is None else told[0].startswith(expected)


def team(routes: str, models: str = "[]", shared: str = "{}") -> str:
    return f"{BASE}routes: {shared}\nteams:\n  t:\n    keys: ['{KEY_A}']\n    models: {models}\n    routes: {routes}\n"


def test_a_teams_route_may_name_its_others_and_the_shared_ones() -> None:
    assert complaints(team("{mine: others, others: shared}", shared="{shared: local/x}")) == []


def test_a_shared_route_may_not_name_a_teams() -> None:
    (told,) = complaints(team("{mine: local/x}", shared="{shared: mine}"))
    assert told.startswith("8:18 routes.shared: no model or route named mine")


def test_a_circle_through_a_teams_route_and_a_shared_one_is_refused_at_the_teams() -> None:
    # In this team, `fast` inside `smart` means the team's own route, so a request for either would never end.
    told = complaints(team("{fast: smart}", shared="{smart: fast, fast: local/x}"))
    assert told == ["13:20 teams.t.routes.fast: circular routes: fast -> smart -> fast"]


def test_a_circle_of_shared_routes_is_reported_once_and_not_for_every_team() -> None:
    told = complaints(team("{mine: a}", shared="{a: b, b: a}"))
    assert told == ["8:19 routes.b: circular routes: a -> b -> a"]


def test_a_long_chain_of_routes_is_no_circle_and_no_strain() -> None:
    chain = "".join(f"  r{i}: r{i + 1}\n" for i in range(3000))
    assert complaints(f"{BASE}routes:\n{chain}  r3000: local/x\n") == []


@looped(
    ("text", "expected"),
    [
        (
            "models: {v/m: {policy: weighted, deployments: {a: {weight: 0}, b: {weight: 0}}}}",
            "3:34 models.v/m.deployments",
        ),
        (
            "models: {v/m: {}}\nroutes: {r: {policy: weighted, targets: [{target: v/m, weight: 0}]}}",
            "4:32 routes.r.targets",
        ),
        *(
            (f"models: {{v/m: {{deployments: {{a: {{weight: 0}}}}, policy: {policy}}}}}", "3:16 models.v/m.deployments")
            for policy in ("fastest", "least_busy", "round_robin")
        ),
    ],
)
def test_weights_that_sum_to_zero_are_refused(text: str, expected: str) -> None:
    assert complaints(f"version: 1\nvendors: {{v: {{}}}}\n{text}\n") == [
        f"{expected}: the weights sum to zero: no target could be chosen"
    ]


def test_a_single_weight_of_zero_rests_a_deployment() -> None:
    text = "version: 1\nvendors: {v: {}}\nmodels: {v/m: {policy: weighted, deployments: {a: {weight: 0}, b: {}}}}\n"
    assert complaints(text) == []


def test_a_team_may_name_everything_a_vendor_a_model_a_deployment_and_a_route() -> None:
    assert (
        complaints(
            team("{own: local/x}", "['*', openai/*, local/*, azure/gpt-4o/us, own, shared]", "{shared: local/x}")
        )
        == []
    )


def test_an_allowed_name_that_matches_nothing_is_refused() -> None:
    told = complaints(team("{}", "[opnai/*, azure/gpt-4o/usa, fast]"))
    assert told == [
        "12:14 teams.t.models.0: no vendor with models named opnai/*; did you mean openai/*?",
        "12:23 teams.t.models.1: no model or route named azure/gpt-4o/usa"
        "; did you mean azure/gpt-4o/us or azure/gpt-4o/eu or azure/gpt-4o?",
        "12:41 teams.t.models.2: no model or route named fast",
    ]


def test_a_vendor_without_models_allows_nothing() -> None:
    head = "version: 1\nvendors: {v: {}, w: {}}\nmodels: {v/m: {}}\n"
    text = f"{head}teams: {{t: {{keys: ['{KEY_A}'], models: [w/*]}}}}\n"
    assert complaints(text)[0].startswith("4:105 teams.t.models.0: no vendor with models named w/*")


def test_a_key_of_two_teams_is_refused_with_both_places() -> None:
    again = KEY_A.replace("a" * 64, "A" * 64)
    text = f"{BASE}teams:\n  a: {{keys: ['{KEY_A}'], models: ['*']}}\n"
    told = complaints(f"{text}  b: {{keys: ['{KEY_B}', '{again}'], models: ['*']}}\n")
    assert told == ["10:89 teams.b.keys.1: the same key already belongs to team a, at t.yaml:9:14"]


def test_a_key_that_ends_belongs_to_one_team_too() -> None:
    ends = f"{{key: 'sha256:{'a' * 64}', not_after: 2026-12-31}}"
    told = complaints(f"{BASE}teams:\n  a: {{keys: [{ends}]}}\n  b: {{keys: [{ends}]}}\n")
    assert told == ["10:20 teams.b.keys.0.key: the same key already belongs to team a, at t.yaml:9:20"]


def test_the_teams_whose_payloads_are_logged_must_be_there() -> None:
    teams = f"teams: {{search: {{keys: ['sha256:{'a' * 64}'], models: ['*']}}}}\n"
    written = f"{BASE}{teams}server: {{payload_log: {{path: p.jsonl, teams: ['*', search, %s]}}}}\n"
    assert complaints(written % "search") == []
    assert complaints(written % "serach") == [
        "9:60 server.payload_log.teams.2: no team named serach; did you mean search?"
    ]


def test_what_a_surface_assumes_must_be_there() -> None:
    def surfaces(text: str) -> list[str]:
        return complaints(f"{BASE}server: {{surfaces: {{scale: {text}}}}}\n")

    assert surfaces("{default_vendor: openai, default_model: gpt-4o}") == []
    assert surfaces("{default_model: openai/gpt-4o}") == []
    assert surfaces("{default_vendor: opnai}") == [
        "8:45 server.surfaces.scale.default_vendor: no vendor named opnai; did you mean openai?"
    ]
    assert surfaces("{default_model: gpt-4o}")[0].startswith("8:44 server.surfaces.scale.default_model: no model")


@looped(
    ("host", "token", "open_door"),
    [
        ("0.0.0.0", "", True),
        ("10.0.0.1", "", True),
        ("0.0.0.0", "t", False),
        ("localhost", "", False),
        ("::1", "", False),
    ],
)
def test_an_admin_listener_beyond_loopback_needs_a_token(host: str, token: str, open_door: bool) -> None:
    text = f'version: 1\nserver: {{admin: {{host: "{host}", token: "${{T:-}}"}}}}\n'
    expected = "2:24 server.admin.host: the admin listener needs a token to listen on an address other than loopback"
    assert complaints(text, {"T": token}) == ([expected] if open_door else [])


@looped(
    ("token", "told"),
    [
        ("${T}", "2:40 server.admin.token: the environment variable T is not set"),
        ("${file:/nonexistent/x}", "2:40 server.admin.token: cannot read the file /nonexistent/x: No such file"),
        ("a b", "2:40 server.admin.token: holds a space"),
    ],
)
def test_of_a_token_that_cannot_be_used_it_is_not_said_that_there_is_none(token: str, told: str) -> None:
    (problem,) = complaints(f'version: 1\nserver: {{admin: {{host: 0.0.0.0, token: "{token}"}}}}\n')
    assert problem.startswith(told)


@pytest.mark.parametrize("teams", [True, False])
def test_any_web_page_may_call_only_where_there_are_teams(teams: bool) -> None:
    text = "server: {cors: {origins: ['https://app.example.com', '*']}}\n"
    who = f"teams: {{t: {{keys: ['sha256:{'0' * 64}'], models: ['*']}}}}\n" if teams else ""
    expected = (
        "2:54 server.cors.origins.1: without teams any web page could use the keys: list the origins, or add teams"
    )
    models = "vendors: {openai: {}}\nmodels: {openai/x: {}}\n"
    assert complaints("version: 1\n" + text + models + who) == ([] if teams else [expected])


ADDRESSES = """\
version: 1
vendors: {v: {%s}}
models: {v/m: {%s}}
"""


@looped(
    ("vendor", "model", "expected"),
    [
        ("base_url: http://10.0.0.1", "", "2:25 vendors.v.base_url: is a private address; to allow it, add"),
        ("base_url: http://10.0.0.1", "allow_private: true", None),
        ("allow_private: true", "base_url: 'http://localhost'", None),
        ("base_url: http://10.0.0.1", "base_url: https://a.example", None),
        ("base_url: http://8.8.8.8, allow_private: true", "", "2:25 vendors.v.base_url: https required"),
        (
            "allow_private: true",
            "deployments: {a: {base_url: https://10.0.0.1, allow_private: false}}",
            "3:44 models.v/m.deployments.a.base_url: is a private",
        ),
        (
            "",
            "base_url: http://vllm:8000",
            "3:26 models.v/m.base_url: https required; for a server in your own network",
        ),
    ],
)
def test_an_address_is_judged_with_what_each_deployment_inherits(vendor: str, model: str, expected: str | None) -> None:
    told = complaints(ADDRESSES % (vendor, model))
    assert [each[: len(expected or "")] for each in told] == ([expected] if expected else [])


def test_the_address_of_a_vendor_without_models_is_judged_too() -> None:
    assert complaints("version: 1\nvendors: {v: {base_url: http://127.0.0.1}}\n")


def test_one_address_is_reported_once_however_many_deployments_use_it() -> None:
    text = "version: 1\nvendors: {v: {base_url: http://127.0.0.1}}\nmodels: {v/a: {}, v/b: {}, v/c: {}}\n"
    assert len(complaints(text)) == 1


def test_a_name_from_a_reference_is_not_repeated() -> None:
    env = {"X": "canary/canary", "V": "canary"}
    told = complaints(
        f"""\
        {dedent(BASE).replace(chr(10), chr(10) + " " * 8)}
        server: {{surfaces: {{scale: {{default_vendor: "${{V}}", default_model: "${{X}}"}}}}}}
        routes: {{r: "${{X}}", s: {{targets: ["${{X}}"]}}}}
        teams: {{t: {{keys: ["{KEY_A}"], models: ["${{X}}", "${{V}}/*"], routes: {{q: "${{X}}"}}}}}}
        """,
        env,
    )
    assert len(told) == 7
    assert not any("canary" in each for each in told)


def test_the_names_are_all_that_are_written() -> None:
    root = parse(f"{BASE}routes: {{r: 1}}\n", "t").root
    assert root is not None
    names = ConfiguredNames.of(root)
    assert names.vendors == {"openai", "azure", "local"}
    assert names.models["azure/gpt-4o"] == {"eu", "us"}
    assert next(names.all()) == "r"
    assert "azure/gpt-4o/us" in list(names.all())


def test_names_of_a_table_of_nonsense_are_none() -> None:
    root = parse("vendors: 1\nmodels: [a]\nroutes: x\n", "t").root
    assert root is not None
    assert list(ConfiguredNames.of(root).all()) == []


def test_nearest_names_are_sought_for_the_first_of_many_mistakes_only() -> None:
    models = "".join(f"  openai/model-{i}: {{}}\n" for i in range(300))
    routes = "".join(f"  r{i}: openai/modle-{i}\n" for i in range(300))
    told = complaints(f"{BASE}{models}routes:\n{routes}")
    assert len(told) == 300
    assert sum("did you mean" in each for each in told) == 20


def test_a_model_whose_name_has_a_slash_is_reported_with_its_vendor_before_it() -> None:
    text = "version: 1\nvendors: {local: {}}\nmodels: {meta-llama/Llama-3: {}}\n"
    assert complaints(text) == [
        "3:10 models.meta-llama/Llama-3: no vendor named meta-llama; a model of local is written "
        "local/meta-llama/Llama-3"
    ]


@looped(
    ("lines", "expected"),
    [
        (
            "models: {OpenAI/gpt-4o: {}}",
            ["3:10 models.OpenAI/gpt-4o: no vendor named OpenAI; did you mean openai/gpt-4o?"],
        ),
        (
            "models: {opnai/gpt-4o: {}}\nroutes: {r: openai/gpt-4o}",
            [
                "3:10 models.opnai/gpt-4o: no vendor named opnai; did you mean openai/gpt-4o?",
                "4:13 routes.r: no model or route named openai/gpt-4o",
            ],
        ),
        (
            "models: {openai/gpt-4o: {}}\nroutes: {r: OPENAI/GPT-4O}",
            ["4:13 routes.r: no model or route named OPENAI/GPT-4O; did you mean openai/gpt-4o?"],
        ),
    ],
)
def test_what_is_recommended_exists_whatever_its_case(lines: str, expected: list[str]) -> None:
    assert complaints(f"version: 1\nvendors: {{openai: {{}}}}\n{lines}\n") == expected
