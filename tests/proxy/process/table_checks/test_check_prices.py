"""Budgets in USD over models without a price cause a warning, for written and for listed prices."""

from datetime import date
from typing import Any, Final

import yaml

from config.load_config import load_text
from providers.list_prices.list_prices import ListPrices
from proxy.process.table_checks.check_prices import budgets_that_refuse_everything, missing_prices
from proxy.routing.snapshot import build_snapshot
from tests.proxy.kit.tables import digest_of
from tests.support.looped import looped

TABLE = """\
version: 1
vendors:
  openai: {{api_key: k}}
  local: {{profile: vllm, base_url: "http://10.0.0.1/v1", allow_private: true}}
models:
  openai/gpt-4o: {{}}
  openai/o3: {{price: {{input: 1, output: 2}}}}
  openai/nothing-known: {{}}
  openai/*: {{}}
  local/qwen: {{}}
  local/named: {{base_model: openai/gpt-4o, price: auto}}
routes: {{fast: openai/o3}}
teams:
  t: {{keys: ["{key}"], models: [{models}], budget: {budget}}}
"""
UNKNOWN = "no price is known for "


def found(models: str, budget: str) -> list[str]:
    return told(TABLE.format(key=digest_of("t"), models=models, budget=budget))


def told(text: str) -> list[str]:
    loaded = load_text(text, "t", {})
    snapshot = build_snapshot(loaded, ListPrices(date(2026, 11, 29)))
    every = (*budgets_that_refuse_everything(loaded, snapshot), *missing_prices(loaded, snapshot))
    return [f"{each.path}: {each.message}" for each in every]


@looped(
    ("models", "budget", "expected"),
    [
        ("openai/gpt-4o", "{usd: 5, per: day}", ""),
        ("openai/gpt-4o-mini", "{usd: 5, per: day}", ""),
        ("local/named", "{usd: 5, per: day}", ""),
        ("openai/nothing-known", "{usd: 5, per: day}", f"usd: {UNKNOWN}openai/nothing-known: their cost counts as"),
        ("openai/made-up", "{usd: 5, per: day}", f"usd: {UNKNOWN}openai/made-up: their cost counts as zero"),
        ("'*'", "{usd: 5, per: day}", f"usd: {UNKNOWN}openai/nothing-known, local/qwen: their cost counts as"),
        (
            "'*'",
            "{usd: 5, per: day, unpriced: reject}",
            f"usd: {UNKNOWN}openai/nothing-known, local/qwen: requests",
        ),
        ("local/qwen", "{usd: 5, per: day, unpriced: reject}", "unpriced: refuses everything: none of the models"),
        ("local/qwen", "{tokens: 5M, per: day}", ""),
        ("openai/gpt-4o", "{usd: 5, per: day, then: {route: fast}}", ""),
        ("openai/o3", "{usd: 5, per: day, then: {route: openai/gpt-4o}}", "then.route: is not cheaper than anything"),
        ("openai/o3", "{usd: 5, per: day, then: {route: local/qwen}}", f"then.route: {UNKNOWN}local/qwen, so that"),
    ],
)
def test_a_budget_that_lacks_prices_is_told(models: str, budget: str, expected: str) -> None:
    short = [each.removeprefix("teams.t.budget.") for each in found(models, budget)]
    assert [each[: len(expected)] for each in short] == ([expected] if expected else [])


PLACES: Final = f"""\
version: 1
vendors:
  openai: {{api_key: k}}
  local: {{profile: vllm, base_url: "http://10.0.0.1/v1", allow_private: true}}
models:
  openai/o3: {{price: {{input: 1, output: 2}}}}
  openai/mixed: {{deployments: {{eu: {{price: {{input: 9}}}}, us: {{price: none}}}}}}
  local/qwen: {{}}
routes: {{fast: openai/o3, chain: fast}}
teams:
  t:
    keys:
      - {{hash: "{digest_of("t")}", models: [own]}}
      - {{hash: "{digest_of("u")}", models: [openai/o3]}}
    models: [openai/o3, openai/mixed]
    routes: {{own: openai/mixed/us}}
  chains: {{keys: ["{digest_of("v")}"], models: [fast]}}
  own: {{keys: ["{digest_of("w")}"], models: [fast], routes: {{fast: local/qwen}}}}
  inner: {{keys: ["{digest_of("x")}"], models: [chain], routes: {{fast: openai/mixed/us}}}}
"""
DAY: Final = {"usd": 5, "per": "day"}
REJECTING: Final = {**DAY, "unpriced": "reject"}
ALL: Final[tuple[str | int, ...]] = ()
TEAM: Final = ("teams", "t")
OWN_KEY: Final = ("teams", "t", "keys", 0)
O3_KEY: Final = ("teams", "t", "keys", 1)
MODEL: Final = ("models", "openai/mixed")


def warnings_at(place: tuple[str | int, ...], budget: dict[str, object]) -> list[str]:
    """Return the warnings about a budget at a place of the configuration, without the place."""
    table: Any = yaml.safe_load(PLACES)
    section = table
    for step in place:
        section = section[step]
    section["budget"] = budget
    path = ".".join(map(str, (*place, "budget.")))
    every = told(yaml.safe_dump(table, sort_keys=False))
    assert all(each.startswith(path) for each in every)
    return [each.removeprefix(path) for each in every]


@looped(
    ("place", "budget", "expected"),
    [
        (ALL, DAY, f"usd: {UNKNOWN}openai/mixed, local/qwen: their cost counts as zero"),
        (ALL, REJECTING, f"usd: {UNKNOWN}openai/mixed, local/qwen: requests for them are refused"),
        (ALL, {**DAY, "then": {"route": "openai/mixed/us"}}, f"then.route: {UNKNOWN}openai/mixed, so that"),
        (TEAM, DAY, f"usd: {UNKNOWN}openai/mixed: their cost counts as zero"),
        (OWN_KEY, DAY, f"usd: {UNKNOWN}openai/mixed: their cost counts as zero"),
        (OWN_KEY, REJECTING, "unpriced: refuses everything: none of the models that this key may request has a price"),
        (O3_KEY, DAY, ""),
        (O3_KEY, REJECTING, ""),
        (O3_KEY, {**DAY, "then": {"route": "own"}}, f"then.route: {UNKNOWN}openai/mixed, so that"),
        (O3_KEY, {**DAY, "then": {"route": "fast"}}, "then.route: is not cheaper than anything that this key may req"),
        (("teams", "chains"), DAY, ""),
        (("teams", "own"), REJECTING, "unpriced: refuses everything: none of the models that this team may request"),
        (("teams", "inner"), DAY, f"usd: {UNKNOWN}openai/mixed: their cost"),
        (("vendors", "openai"), DAY, f"usd: {UNKNOWN}openai/mixed: their cost counts as zero"),
        (("vendors", "local"), DAY, f"usd: {UNKNOWN}local/qwen: their cost counts as zero"),
        (("models", "openai/o3"), DAY, ""),
        (MODEL, DAY, f"usd: {UNKNOWN}openai/mixed: their cost counts as zero"),
        (MODEL, {"tokens": 5000, "per": "day"}, ""),
        ((*MODEL, "deployments", "eu"), DAY, ""),
        ((*MODEL, "deployments", "us"), DAY, f"usd: {UNKNOWN}openai/mixed: their cost counts as zero"),
        (("models", "local/qwen"), DAY, f"usd: {UNKNOWN}local/qwen: their cost counts as zero"),
    ],
)
def test_the_budgets_of_every_scope_are_told_what_lacks_a_price(
    place: tuple[str | int, ...], budget: dict[str, object], expected: str
) -> None:
    every = warnings_at(place, budget)
    if "then" in budget:
        every = [each for each in every if each.startswith("then.")]
    assert [each[: len(expected)] for each in every] == ([expected] if expected else [])


def test_teams_that_may_ask_for_the_same_mean_different_things_by_it() -> None:
    table: Any = yaml.safe_load(PLACES)
    table["teams"] = {name: table["teams"][name] | {"budget": DAY} for name in ("inner", "chains")}
    table["teams"]["chains"]["models"] = ["chain"]
    (only,) = told(yaml.safe_dump(table, sort_keys=False))
    assert only.startswith(f"teams.inner.budget.usd: {UNKNOWN}openai/mixed")
