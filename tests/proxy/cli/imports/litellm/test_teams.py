"""LiteLLM's teams and keys: their models as LiteLLM itself resolves them, their limits and their expiry."""

import csv
import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from config.sections.team_section import TeamKey, TeamSection
from proxy.cli.imports.import_command import import_to_file
from proxy.cli.imports.written_file import write_new
from proxy.errors import GatewayError
from proxy.routing.deployment_load import IDLE
from proxy.routing.resolve_model import plan_for
from tests.proxy.cli.imports.kit import FIXTURES, Imported, imported
from tests.proxy.cli.imports.litellm.kit import export, rows
from tests.support.litellm_installation import installation
from tests.support.looped import looped

ALLOWED = json.loads((FIXTURES / "litellm_allowed.json").read_text(encoding="utf-8"))
BASE = "http://127.0.0.1:4999/v1"


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Imported:
    folder = tmp_path_factory.mktemp("shop")
    exports = export(installation(BASE), folder)
    return imported("litellm", folder / "config.json", exports=exports)


def reached(made: Imported, secret: str, names: list[str]) -> list[str]:
    """Return the model names that a key may use; the set is empty for a key that does not work."""
    key = made.table.snapshot.keys.get(hashlib.sha256(secret.encode()).hexdigest())
    found = []
    if key is None:
        return []
    for name in names:
        try:
            plan_for(made.table.snapshot, key.team, name, "openai", IDLE)
        except GatewayError:
            continue
        found.append(name)
    return found


@pytest.mark.thorough
def test_each_key_may_ask_for_the_names_that_it_could_at_litellm(shop: Imported) -> None:
    secrets = installation(BASE).secrets
    wrong = {}
    for row in ALLOWED["allowed"]:
        for alias in row["keys"]:
            got = reached(shop, secrets[alias], ALLOWED["names"])
            if got != row["models"]:
                wrong[alias] = (sorted({*got} - {*row["models"]}), sorted({*row["models"]} - {*got}))
    assert wrong == {}


def test_a_strict_check_has_nothing_but_prices_to_say(shop: Imported) -> None:
    said = {problem.message.partition(":")[0] for problem in shop.table.warnings}
    assert all(message.startswith("no price is known for ") for message in said), said


def test_no_secret_is_in_the_table_or_told(shop: Imported) -> None:
    told = shop.text + "".join(map(str, shop.losses)) + "".join(shop.remarks.hints)
    assert "canary" not in told
    assert "sk-" not in told
    assert shop.remarks.counts["model"] == (39, 39)
    assert shop.remarks.counts["team"][1] == 30
    assert shop.remarks.counts["key"][1] == 200


def test_the_command_sums_up_and_says_that_something_was_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    exports = export(installation(BASE), tmp_path)
    file = tmp_path / "config.json"
    assert import_to_file("litellm", file, "config", tmp_path / "table.yaml", write_new, exports) == 3
    told = capsys.readouterr().err.splitlines()
    assert told[-1].startswith("taken: 39 of 39 models, ")
    assert told[-2].startswith("ok: ")
    pages = replace(exports, keys=exports.keys[:1])
    assert import_to_file("litellm", file, "config", tmp_path / "half.yaml", write_new, pages) == 3
    assert "has 100 of 200 keys: give --keys for each page" in capsys.readouterr().err


def cell(value: object) -> str:
    """Return a value as PostgreSQL's COPY writes it into CSV."""
    if isinstance(value, bool):
        return "t" if value else "f"
    if isinstance(value, list):
        return f"{{{','.join(map(str, value))}}}"
    return json.dumps(value) if isinstance(value, dict) else "" if value is None else str(value)


def test_the_key_table_as_csv_says_the_same(shop: Imported, tmp_path: Path) -> None:
    made = installation(BASE)
    exports = export(made, tmp_path)
    path = tmp_path / "keys.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, made.keys[0])
        writer.writeheader()
        writer.writerows({name: cell(value) for name, value in key.items()} for key in made.keys)
    again = imported("litellm", tmp_path / "config.json", exports=replace(exports, keys=(path,)))
    assert again.draft.section("teams").entries == shop.draft.section("teams").entries


def only(made: Imported, team: str) -> tuple[TeamSection, TeamKey]:
    """Return the configuration's only team and its first key."""
    section = made.table.loaded.config.teams[team]
    return section, section.keys[0]


TEAM: dict[str, Any] = {"team_id": "t", "team_alias": "core", "models": []}


def test_limits_budgets_and_expiry(tmp_path: Path) -> None:
    limits = {"rpm_limit": 60, "tpm_limit": 9000, "tpd_limit": 99000, "max_parallel_requests": 4}
    key = {"team_id": "t", "rpm_limit": 6, "tpm_limit": 9000, "expires": "2031-06-30 12:00:00", "models": ["a"]}
    team = {**TEAM, **limits, "max_budget": 50, "soft_budget": 40, "budget_duration": "30d", "models": ["a", "b"]}
    made = rows(tmp_path, [key], [team])
    section, own = only(made, "core")
    written = {limit.key: limit.amount for limit in section.limits.amounts()}
    assert written == {"requests_per_minute": 60, "tokens_per_minute": 9000, "tokens_per_day": 99000}
    assert section.limits.concurrent == 4
    assert [(each.usd, each.per, each.at, each.then) for each in section.budget] == [
        (50.0, "month", 1.0, "reject"),
        (50.0, "month", 0.8, "warn"),
    ]
    assert {limit.key: limit.amount for limit in own.limits.amounts()} == {"requests_per_minute": 6}
    assert own.expires is not None
    assert own.expires.isoformat() == "2031-06-30T12:00:00+00:00"
    assert (own.name, own.models) == ("k0", ["a"])


@looped(
    ("key", "team", "name", "lost"),
    [
        ({"max_budget": 5, "budget_duration": "7d"}, {}, "core", ""),
        ({"max_budget": 5, "budget_duration": "7d"}, {"rpm_limit": 9}, "core", ""),
        ({"aliases": {"x": "a"}}, {}, "core-k0", ""),
        ({"aliases": {"x": "a"}}, {"max_budget": 9, "budget_duration": "1d"}, "core", "keys.k0.aliases"),
        ({"metadata": {"model_rpm_limit": {"a": 3}}}, {}, "core-k0", ""),
        ({"metadata": {"model_tpm_limit": {"a": 3000}}}, {"tpm_limit": 9000}, "core", "keys.k0.metadata"),
        ({"team_id": None, "max_budget": 5, "budget_duration": "1mo"}, {}, "k0", ""),
        ({"models": ["a", "zz"]}, {}, "core", ""),
        ({"blocked": True}, {}, "", "keys.k0"),
        ({"expires": "2020-01-01T00:00:00Z"}, {}, "", "keys.k0"),
        ({"expires": "soon"}, {}, "", "keys.k0"),
        ({"models": ["no-default-models"]}, {}, "", "keys.k0"),
        ({"models": ["a"]}, {"models": ["b"]}, "", "keys.k0"),
        ({"team_id": "gone"}, {}, "", "keys.k0"),
        ({"rpm_limit": 0}, {}, "", "keys.k0"),
        ({}, {"blocked": True}, "", "keys.k0"),
        ({"allowed_routes": ["management_routes"]}, {}, "", "keys.k0"),
        ({"allowed_routes": ["/v1/chat/completions"]}, {}, "core", "keys"),
        ({"token": "odd"}, {}, "", "keys.k0"),
    ],
)
def test_a_key_is_where_it_can_be_held_or_is_named(
    key: dict[str, Any], team: dict[str, Any], name: str, lost: str, tmp_path: Path
) -> None:
    made = rows(tmp_path, [{"team_id": "t", **key}], [{**TEAM, **team}])
    assert list(made.table.loaded.config.teams) == ([name] if name else [])
    assert not lost or lost in made.lost
    taken = 1 if name else 0
    assert made.remarks.counts["key"] == (taken, 1)


def test_a_key_has_its_budget_in_its_team(tmp_path: Path) -> None:
    key = {"team_id": "t", "max_budget": 5, "budget_duration": "7d"}
    made = rows(tmp_path, [key], [{**TEAM, "max_budget": 50, "budget_duration": "1d"}])
    section, own = only(made, "core")
    assert [[(each.usd, each.per) for each in budgets] for budgets in (section.budget, own.budget)] == [
        [(50.0, "day")],
        [(5.0, "week")],
    ]


def test_a_team_of_a_key_alone_keeps_what_its_team_grants(tmp_path: Path) -> None:
    team = {**TEAM, "models": ["a"], "litellm_model_table": {"model_aliases": '{"chat": "b"}'}}
    made = rows(tmp_path, [{"team_id": "t", "max_budget": 5, "budget_duration": "1d", "aliases": {"x": "a"}}], [team])
    section, _ = only(made, "core-k0")
    assert (section.models, sorted(section.routes), section.tags) == (["a"], ["chat", "x"], {"team": "core"})
    assert [(each.usd, each.per) for each in section.budget] == [(5.0, "day")]
    assert made.lost["teams.core"].startswith("each of its keys is a team of its own")


def test_keys_as_digests_alone_and_twice(tmp_path: Path) -> None:
    made = rows(tmp_path, ["0" * 64, {"team_id": None}, {"team_id": None, "token": f"{1:064x}"}])
    assert made.lost["keys.00000000…"].startswith("has its digest alone")
    assert made.lost["keys.k2"].startswith("comes twice")
    assert made.table.loaded.config.teams["k1"].models == ["*"]


def test_a_key_that_is_written_out_is_only_digested(tmp_path: Path) -> None:
    made = rows(tmp_path, [{"token": "sk-canary-1", "key_alias": None}])
    (team,) = made.table.loaded.config.teams.values()
    assert team.keys[0].digest == f"sha256:{hashlib.sha256(b'sk-canary-1').hexdigest()}"
    assert "canary-1" not in made.text + "".join(map(str, made.losses))


ODD: list[object] = [None, True, -1, 0, 1e300, 10**17, "", "x y", "*", "os.environ/", [], {}, [[]], {"": ""}, [None, 7]]
ODD += ["\u2028", "a" * 300, {"a": {"b": [1]}}, "9999-12-31T23:59:59+23:59", ["a", "*" * 50], {"a": "b", "x y": "a"}]
SCHEMA = json.loads((FIXTURES / "litellm_schema.json").read_text(encoding="utf-8"))


@pytest.mark.thorough
@looped(("kind", "field"), [(kind, field) for kind in ("key", "team") for field in SCHEMA[kind] if field != "token"])
def test_odd_values_make_a_table_that_can_be_served(kind: str, field: str, tmp_path: Path) -> None:
    # Each value has its own team and key: an invalid one must not affect the others.
    teams = [{**TEAM, "team_id": f"t{index}", "team_alias": f"t{index}"} for index in range(len(ODD))]
    keys: list[dict[str, object]] = [{"team_id": each["team_id"]} for each in teams]
    for row, value in zip(keys if kind == "key" else teams, ODD, strict=True):
        row[field] = value
    made = rows(tmp_path, [*keys, {"team_id": None, "key_alias": "last"}], teams)
    assert "last" in made.table.loaded.config.teams
