"""Budgets in USD over models without a price are warned of, by written and by listed prices."""

from datetime import date

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
    loaded = load_text(TABLE.format(key=digest_of("t"), models=models, budget=budget), "t", {})
    snapshot = build_snapshot(loaded, ListPrices(date(2026, 11, 29)))
    every = (*budgets_that_refuse_everything(loaded, snapshot), *missing_prices(loaded, snapshot))
    return [f"{each.path}: {each.message}" for each in every]


@looped(
    ("models", "budget", "expected"),
    [
        ("openai/gpt-4o", "{usd: 5, per: day}", ""),
        ("openai/gpt-4o-mini", "{usd: 5, per: day}", ""),
        ("local/named", "{usd: 5, per: day}", ""),
        ("openai/nothing-known", "{usd: 5, per: day}", f"usd: {UNKNOWN}openai/nothing-known: what they cost counts as"),
        ("openai/made-up", "{usd: 5, per: day}", f"usd: {UNKNOWN}openai/made-up: what they cost counts as nothing"),
        ("'*'", "{usd: 5, per: day}", f"usd: {UNKNOWN}openai/nothing-known, local/qwen: what they cost counts as"),
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
    told = [each.removeprefix("teams.t.budget.0.").removeprefix("teams.t.budget.") for each in found(models, budget)]
    assert [each[: len(expected)] for each in told] == ([expected] if expected else [])
