"""The resolution of every name, with a row for each deployment, for all names and for a team's."""

import json
from collections.abc import Callable

import pytest

from proxy.cli.routes_command import (
    AFFINITY_COLUMNS,
    CACHE_COLUMNS,
    FORMS,
    HEDGE_COLUMNS,
    MODEL_COLUMNS,
    ROUTE_COLUMNS,
    SETTINGS,
    TEAM_COLUMNS,
    print_columns,
)
from proxy.cli.routes_command import routes as routes_as
from proxy.process.load_table import Source
from proxy.routing.route_settings import CACHED_REQUESTS
from tests.proxy.cli.conftest import CANARY, TABLE

Writer = Callable[[str], Source]
Output = pytest.CaptureFixture[str]


def routes(source: Source, team: str | None) -> int:
    return routes_as(source, team, FORMS["text"])


def rows(output: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in output.splitlines()]


def test_each_deployment_is_a_row(source: Writer, capsys: Output) -> None:
    assert routes(source(TABLE), None) == 0
    found = rows(capsys.readouterr().out)
    assert found[0] == list(MODEL_COLUMNS)
    assert found[1] == ["openai/gpt-4o-mini", "default", "-", "-", "openai", "gpt-4o-mini", "api.openai.com"]
    assert found[2] == ["azure-eu/gpt-4o", "sweden", "weighted", "3", "azure", "gpt4o-prod", "swe.example.com"]
    assert found[3] == ["azure-eu/gpt-4o", "france", "weighted", "1", "azure", "gpt4o-prod", "fra.example.com"]
    assert [row[0] for row in found[4:7]] == ["anthropic/claude-haiku-4-5", "gpu/llama", "mock/*"]


def test_routes_show_every_deployment_they_lead_to(source: Writer, capsys: Output) -> None:
    routes(source(TABLE), None)
    found = rows(capsys.readouterr().out)
    mini, haiku = "openai/gpt-4o-mini/default", "anthropic/claude-haiku-4-5/default"
    start = found.index(list(ROUTE_COLUMNS)) + 1
    assert [row for row in found[start:] if row[:2] in (["fast", "-"], ["any", "-"]) and len(row) == 6] == [
        ["fast", "-", "priority", "-", "openai/gpt-4o-mini", mini],
        ["fast", "-", "priority", "-", "anthropic/claude-haiku-4-5", haiku],
        ["any", "-", "weighted", "2", "fast", f"{mini}, {haiku}"],
        ["any", "-", "weighted", "1", "gpu/llama", "gpu/llama/default"],
    ]


def test_routes_show_what_they_fall_back_to_and_when(source: Writer, capsys: Output) -> None:
    routes(source(TABLE), None)
    assert [row[2:] for row in rows(capsys.readouterr().out) if row and row[0] == "long"] == [
        ["priority", "-", "openai/gpt-4o-mini", "openai/gpt-4o-mini/default"],
        ["on context_window", "-", "anthropic/claude-haiku-4-5", "anthropic/claude-haiku-4-5/default"],
        ["on context_window", "-", "gpu/llama", "gpu/llama/default"],
    ]


def test_routes_show_whose_fallbacks_they_have(source: Writer, capsys: Output) -> None:
    routes(source(TABLE.replace("routes:\n", "routes:\n  again: long\n", 1)), None)
    policies = [row[2] for row in rows(capsys.readouterr().out) if row and row[0] == "again"]
    assert policies == ["priority", *["on context_window of long"] * 2]


def test_retries_are_shown_where_they_differ(source: Writer, capsys: Output) -> None:
    routes(source("version: 1\nvendors: {mock: {}}\nmodels: {mock/a: {retries: {safety: strict}}, mock/b: {}}\n"), None)
    assert [row[-1] for row in rows(capsys.readouterr().out)] == [SETTINGS, "retries.safety: strict", "-"]


def test_budgets_and_circuit_breakers_are_shown_where_they_differ(source: Writer, capsys: Output) -> None:
    table = """\
version: 1
vendors: {mock: {}}
models:
  mock/a: {retries: {budget: {share: 0, per_second: 1, least: 2.5}}, circuit_breaker: {failures: 5, cooldown: 500ms}}
  mock/b: {circuit_breaker: {failures: 3, cooldown: 1m}}
"""
    routes(source(table), None)
    assert [row[-1] for row in rows(capsys.readouterr().out)] == [
        SETTINGS,
        "retries.budget.share: 0, retries.budget.least: 2.5, circuit_breaker.cooldown: 0.5s",
        "circuit_breaker.failures: 3, circuit_breaker.cooldown: 60s, circuit_breaker.longest_cooldown: 60s",
    ]


def test_the_teams_own_routes_follow_with_their_team(source: Writer, capsys: Output) -> None:
    routes(source(TABLE), None)
    sweden_first = "azure-eu/gpt-4o/sweden, azure-eu/gpt-4o/france"
    assert [row for row in rows(capsys.readouterr().out) if row[1:2] == ["search"] and len(row) == 6] == [
        ["fast", "search", "priority", "-", "azure-eu/gpt-4o", sweden_first],
        ["cheap", "search", "priority", "-", "gpu/llama", "gpu/llama/default"],
    ]


def test_a_team_sees_only_what_it_may_ask_for(source: Writer, capsys: Output) -> None:
    assert routes(source(TABLE), "search") == 0
    output = capsys.readouterr().out
    names = [row[0] for row in rows(output) if row]
    assert names[:6] == ["MODEL", "azure-eu/gpt-4o/sweden", "mock/echo", "ROUTE", "fast", "cheap"]
    assert names[6:] == ["AFFINITY OF", "fast"]
    assert routes(source(TABLE), "data") == 0
    assert [row[0] for row in rows(capsys.readouterr().out)] == ["MODEL", "openai/gpt-4o-mini"]


PLACING = """\
version: 1
vendors: {mock: {}, v: {profile: mock}}
models:
  mock/a: {policy: weighted, deployments: {one: {}, two: {}}}
  mock/b: {policy: fastest, deployments: {one: {}, two: {}}}
  mock/c: {policy: least_busy, affinity: off, deployments: {one: {}, two: {}}}
  v/*: {policy: round_robin, affinity: {load: 2, send: true}, deployments: {one: {}, two: {}}}
routes:
  first: {targets: [mock/a, v/x]}
  kept: {targets: [mock/b], affinity: auto}
  not: {targets: [mock/a], affinity: off}
"""


def test_names_that_place_conversations_are_shown_with_their_rules(source: Writer, capsys: Output) -> None:
    routes(source(PLACING), None)
    found = rows(capsys.readouterr().out)
    assert found[found.index(list(AFFINITY_COLUMNS)) + 1 :] == [
        ["mock/a", "-", "auto", "mock/a"],
        ["v/*", "-", "load: 2, send: true", "v/*"],
        ["first", "-", "auto", "mock/a"],
        ["first", "-", "load: 2, send: true", "v/*"],
        ["kept", "-", "auto", "mock/b"],
    ]
    routes_as(source(PLACING), None, FORMS["json"])
    assert json.loads(capsys.readouterr().out)["affinities"][0] == {
        "name": "mock/a",
        "team": None,
        "rules": "auto",
        "among": "mock/a",
    }


HEDGING = """\
version: 1
defaults: {hedge: {burst: 5}}
vendors: {mock: {}, v: {profile: mock}}
models:
  mock/a: {deployments: {one: {}, two: {}}}
  mock/b: {hedge: {after: 800ms, share: 1%, usd_per_hour: 0.5}}
  mock/c: {hedge: off, deployments: {one: {}, two: {}}}
  mock/d: {deployments: {one: {}, two: {}}, retries: {safety: strict}}
  v/*: {hedge: auto, deployments: {one: {}, two: {}}}
routes:
  both: {targets: [mock/b, mock/c]}
"""


def test_names_with_second_attempts_are_shown_with_their_rules_and_why_they_make_none(
    source: Writer, capsys: Output
) -> None:
    routes(source(HEDGING), None)
    found = rows(capsys.readouterr().out)
    burst = "after 1.5x, share 3%, burst 5, 1 USD per hour"
    assert found[found.index(list(HEDGE_COLUMNS)) + 1 :] == [
        ["mock/a", "-", burst, "-"],
        ["mock/b", "-", "after 0.8s, share 1%, burst 20, 0.5 USD per hour", "there is one deployment"],
        ["mock/d", "-", burst, "retries.safety or retries.attempts permits none"],
        ["v/*", "-", "after 1.5x, share 3%, burst 20, 1 USD per hour", "-"],
        ["both", "-", burst, "-"],
    ]
    routes_as(source(HEDGING), None, FORMS["json"])
    assert json.loads(capsys.readouterr().out)["hedges"][1] == {
        "name": "mock/b",
        "team": None,
        "rules": "after 0.8s, share 1%, burst 20, 0.5 USD per hour",
        "no_effect_since": "there is one deployment",
    }


DIFFERING = f"""\
version: 1
defaults: {{on_unsupported: drop}}
vendors: {{mock: {{}}}}
models:
  mock/echo: {{context_length_exceeded_behavior: truncate}}
  mock/plain: {{on_unsupported: error}}
  mock/*: {{}}
teams:
  strict:
    keys: ["sha256:{"1" * 64}"]
    models: ["*", mock/made-up]
    on_unsupported: error
    inference_extra_params: false
    inference_extra_headers: false
  lax: {{keys: ["sha256:{"2" * 64}"], models: ["*"], context_length_exceeded_behavior: error}}
  silent: {{keys: ["sha256:{"3" * 64}"], models: ["*"]}}
"""
DROP, TRUNCATE = "on_unsupported: drop", "context_length_exceeded_behavior: truncate"


def test_settings_are_shown_where_they_differ_from_what_is_built_in(source: Writer, capsys: Output) -> None:
    routes(source(DIFFERING), None)
    models, teams = capsys.readouterr().out.split("\n\n")
    found = rows(models)
    assert found[0] == [*MODEL_COLUMNS, SETTINGS]
    assert [(row[0], row[-1]) for row in found[1:]] == [
        ("mock/echo", f"{DROP}, {TRUNCATE}"),
        ("mock/plain", "-"),
        ("mock/*", DROP),
    ]
    assert rows(teams) == [
        list(TEAM_COLUMNS),
        ["strict", "on_unsupported: error, inference_extra_params: false, inference_extra_headers: false"],
        ["lax", "context_length_exceeded_behavior: error"],
    ]


def test_what_clients_may_send_is_shown_with_the_team_s_word_first(source: Writer, capsys: Output) -> None:
    table = f"""\
version: 1
vendors: {{mock: {{}}}}
models:
  mock/echo: {{allow_fields: [b, a], allow_headers: [X-A, "x-b-*"], media: {{schemes: [gs, https]}}}}
teams:
  t: {{keys: ["sha256:{"1" * 64}"], models: ["*"], media: {{schemes: [data], allow_private: true}}}}
"""
    permitted = "allow_fields: [a, b], allow_headers: [x-a, x-b-*], "
    own = "media.schemes: [data], media.allow_private: true"
    routes(source(table), None)
    models, teams = capsys.readouterr().out.split("\n\n")
    assert rows(models)[1][-1] == f"{permitted}media.schemes: [gs, https]"
    assert rows(teams)[1] == ["t", own]
    routes(source(table), "t")
    assert rows(capsys.readouterr().out)[1][-1] == permitted + own


def test_a_team_s_own_word_is_what_it_sees_at_each_deployment(source: Writer, capsys: Output) -> None:
    routes(source(DIFFERING), "strict")
    found = [(row[0], row[-1]) for row in rows(capsys.readouterr().out) if row]
    assert found[1:5] == [("mock/echo", TRUNCATE), ("mock/plain", "-"), ("mock/*", "-"), ("mock/made-up", "-")]
    routes(source(DIFFERING), "lax")
    error = "context_length_exceeded_behavior: error"
    found = [(row[0], row[-1]) for row in rows(capsys.readouterr().out) if row]
    assert found[1:4] == [("mock/echo", f"{DROP}, {error}"), ("mock/plain", error), ("mock/*", f"{DROP}, {error}")]


def test_a_team_without_settings_of_its_own_has_no_table(source: Writer, capsys: Output) -> None:
    routes(source(DIFFERING), "silent")
    assert list(TEAM_COLUMNS) not in rows(capsys.readouterr().out)


def test_no_secret_is_shown(source: Writer, capsys: Output) -> None:
    routes(source(TABLE), None)
    assert CANARY not in "".join(capsys.readouterr())


def test_columns_are_aligned(capsys: Output) -> None:
    print_columns(("A", "B"), [("1", "2"), ("longer", "3")])
    assert capsys.readouterr().out == "A       B\n1       2\nlonger  3\n"


def test_the_operators_limit_on_requests_at_once_is_shown(source: Writer, capsys: Output) -> None:
    text = "version: 1\nvendors: {mock: {concurrent: 64}}\nmodels: {mock/a: {concurrent: 8}, mock/b: {}, mock/*: {}}\n"
    routes(source(text), None)
    assert [(row[0], row[-1]) for row in rows(capsys.readouterr().out)[1:]] == [
        ("mock/a", "concurrent: 8"),
        ("mock/b", "concurrent: 64"),
        ("mock/*", "concurrent: 64"),
    ]


CACHES = """\
version: 1
defaults: {cache: {ttl: 5m}}
vendors: {mock: {}}
models:
  mock/a: {}
  mock/b: {cache: {ttl: 1h, stale: 2h, scope: table, max_bytes: 1024}}
  mock/off: {cache: {where: off}}
routes:
  fast: {targets: [mock/a], cache: {ttl: 30s}}
teams:
  search: {keys: ["sha256:KEY"], models: [mock/a, fast], routes: {own: {targets: [mock/b], cache: {ttl: 1s}}}}
""".replace("KEY", "0" * 64)


def test_caches_are_shown_with_what_they_are_of_and_who_is_answered_by_them(source: Writer, capsys: Output) -> None:
    routes(source(CACHES), None)
    output = capsys.readouterr().out
    found = rows(output)
    start = found.index(list(CACHE_COLUMNS)) + 1
    assert found[start:-1] == [
        ["mock/a", "-", "300s", "-", "team", "memory", "256KiB"],
        ["mock/b", "-", "1h", "2h", "table", "memory", "1KiB"],
        ["fast", "-", "30s", "-", "team", "memory", "256KiB"],
        ["own", "search", "1s", "-", "team", "memory", "256KiB"],
    ]
    assert output.endswith(f"Caches are for {CACHED_REQUESTS}.\n")


def test_a_team_is_shown_the_caches_of_its_names_alone(source: Writer, capsys: Output) -> None:
    routes(source(CACHES), "search")
    found = rows(capsys.readouterr().out)
    start = found.index(list(CACHE_COLUMNS)) + 1
    assert [row[:2] for row in found[start:-1]] == [["mock/a", "-"], ["fast", "-"], ["own", "search"]]


def test_the_same_is_said_as_json(source: Writer, capsys: Output) -> None:
    routes_as(source(CACHES), None, FORMS["json"])
    said = json.loads(capsys.readouterr().out)
    assert said["caches"][1] == {
        **{"name": "mock/b", "team": None, "ttl": 3600.0, "stale": 7200.0},
        **{"scope": "table", "where": "memory", "max_bytes": 1024},
    }
    assert [each["team"] for each in said["caches"]] == [None, None, None, "search"]
    assert "x-dragoman-cache: use" in said["caches_are_for"]
    assert said["models"][0]["model"] == "mock/a"
    assert [each["route"] for each in said["routes"]] == ["fast", "own"]
    routes_as(source("version: 1\nvendors: {mock: {}}\nmodels: {mock/a: {}}\n"), None, FORMS["json"])
    assert json.loads(capsys.readouterr().out)["caches"] == []
