"""Keys that two teams share, that name a model which their team may not use, or that are missing."""

import pytest

from tests.config.tables import BASE, complaints
from tests.support.looped import looped

A, B = (f"sha256:{letter * 64}" for letter in "ab")
TABLE = BASE + "routes: {fast: openai/gpt-4o, slow: azure/gpt-4o}\nteams:\n"


def complaints_in(teams: str) -> list[str]:
    return complaints(TABLE + teams)


def names(models: str, allowed: str = "openai/*, azure/gpt-4o, fast") -> list[str]:
    """Return the complaints about a key that lists these models."""
    key = f"{{hash: '{A}', models: [{models}]}}"
    found = complaints_in(f"  t: {{models: [{allowed}], routes: {{own: local/x}}, keys: [{key}]}}\n")
    return [each.partition(" ")[2].removeprefix("teams.t.keys.0.models.") for each in found]


@pytest.mark.parametrize(
    ("team", "problem"),
    [
        ("{models: ['*']}", "10:3 teams.t.keys: required key is missing"),
        ("{keys: [], models: ['*']}", "10:13 teams.t.keys: must not be empty"),
    ],
)
def test_a_team_needs_keys(team: str, problem: str) -> None:
    assert complaints_in(f"  t: {team}\n") == [problem]


def test_a_digest_belongs_to_one_team_in_both_spellings() -> None:
    older = f"  a: {{keys: [{{key: '{A}'}}], models: ['*']}}\n"
    newer = f"  b: {{keys: [{{hash: '{A}'}}], models: ['*']}}\n"
    assert complaints_in(older + newer) == [
        "11:21 teams.b.keys.0.hash: the same key already belongs to team a, at t.yaml:10:20"
    ]


@looped("models", ["fast", "openai/*", "openai/gpt-4o", "azure/gpt-4o/eu", "own", "fast, own"])
def test_a_key_may_name_what_its_team_may_ask_for(models: str) -> None:
    assert names(models) == []


@looped("models", ["slow", "local/*", "'*'", "local/x", "azure/*"])
def test_a_key_may_name_nothing_more(models: str) -> None:
    assert names(models) == [
        "0: the team may not request this name: a key can only narrow the names in its team's models"
    ]


def test_everything_is_narrowed_by_anything() -> None:
    assert names("'*', openai/*, fast, local/x", "'*'") == []


@looped("models", ["openai/gpt-5", "nobody/*", "fsat"])
def test_a_name_that_leads_nowhere_is_told_once(models: str) -> None:
    (only,) = names(models, "'*'")
    assert only.startswith(("0: no model or route named", "0: no vendor with models named"))


def test_a_model_whose_name_continues_a_granted_one_is_not_its_deployment() -> None:
    table = TABLE.replace("local/*: {}", "local/a: {}\n  local/a/b: {}")
    key = f"{{hash: '{A}', models: [local/a/b]}}"
    (only,) = complaints(f"{table}  t: {{models: [local/a], keys: [{key}]}}\n")
    assert "the team may not request this name" in only


def test_a_route_that_hides_a_model_grants_none_of_its_deployments() -> None:
    key = f"{{hash: '{A}', models: [azure/gpt-4o/eu]}}"
    routes = "routes: {azure/gpt-4o: local/x}"
    (only,) = complaints_in(f"  t: {{models: [azure/gpt-4o], {routes}, keys: [{key}]}}\n")
    assert "the team may not request this name" in only


def test_keys_of_one_name_have_the_same_limits() -> None:
    def two(limits: str) -> list[str]:
        first = f"{{hash: '{A}', name: ci, limits: {{concurrent: 2}}}}"
        return complaints_in(
            f"  t:\n    models: ['*']\n    keys:\n      - {first}\n      - {{hash: '{B}', name: ci{limits}}}\n"
        )

    assert two(", limits: {concurrent: 2}") == []
    message = "another key of this name has other limits, at t.yaml:13:9: keys of one name count together"
    assert two(", limits: {concurrent: 3}") == [f"14:109 teams.t.keys.1.limits: {message}"]
    assert two("") == [f"14:9 teams.t.keys.1: {message}"]
