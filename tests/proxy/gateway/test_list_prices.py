"""Budgets in USD over models without a configured price, over real sockets."""

from datetime import date

import pytest

from config.load_config import load_text
from providers.json_types import JsonObject, JsonValue
from providers.list_prices.list_prices import ListPrices
from proxy.ledger.ledger_row import read_line, row_line
from proxy.ledger.rollups import is_unpriced
from proxy.routing.snapshot import build_snapshot
from tests.proxy.kit.gateway_rig import CLIENT_KEY, rig
from tests.proxy.kit.limited_vendors import AT
from tests.proxy.kit.tables import digest_of
from tests.support.http_scripts import json_answer
from tests.support.openai_wire import chat

TABLE = f"""
vendors: {{openai: {{{AT}, price: auto}}}}
models: {{"openai/*": {{}}}}
teams:
  t: {{keys: ["{digest_of(CLIENT_KEY)}"], models: ["openai/*"], budget: {{usd: 5, per: day}}}}
"""
MILLION = 1_000_000
NOON = 1_795_003_200.0
"""12:00 UTC."""


def asking(model: str) -> JsonObject:
    return {"model": f"openai/{model}", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 9}


def using(prompt: int, **fields: JsonValue) -> JsonObject:
    usage: JsonObject = {"prompt_tokens": prompt, "completion_tokens": 0, "total_tokens": prompt, **fields}
    return {**chat("hello"), "usage": usage}


async def test_a_budget_over_any_model_of_openai_refuses_when_it_is_spent() -> None:
    async with rig(TABLE, wall=lambda: NOON) as served:
        served.vendor.default = json_answer(200, using(MILLION))
        statuses = [(await served.post("/v1/chat/completions", asking("gpt-4o"))).status for _ in range(3)]
        (first, second) = (await served.finished(2))[:2]
    assert statuses == [200, 200, 429]
    assert first.cost == second.cost == pytest.approx(2.5)


async def test_the_tier_and_the_searches_of_a_response_have_their_prices() -> None:
    async with rig(TABLE, wall=lambda: NOON) as served:
        served.vendor.default = json_answer(200, {**using(1000), "service_tier": "priority"})
        await served.post("/v1/chat/completions", asking("gpt-4o"))
        served.vendor.default = json_answer(200, using(1000, num_search_queries=2))
        await served.post("/v1/chat/completions", asking("gpt-4o-audio-preview"))
        served.vendor.default = json_answer(200, using(1000))
        await served.post("/v1/chat/completions", asking("nothing-known"))
        first, second, third = await served.finished(3)
        series = served.series("unpriced_tokens") | served.series("unpriced_searches")
    assert [each.unpriced for each in (first, second, third)] == [(), ("web_search",), ("tokens",)]
    assert first.cost == pytest.approx(0.00425)
    assert second.cost == pytest.approx(0.0025)
    assert third.cost is None
    assert series == {
        "unpriced_tokens_total model=openai/* team=t": 1000,
        "unpriced_searches_total model=openai/* team=t": 2,
    }
    rows = [read_line(row_line(each, number, 1), "g").row for number, each in enumerate((first, second, third))]
    assert [is_unpriced(row) for row in rows] == [False, True, True]


def test_a_snapshot_without_a_list_has_no_prices() -> None:
    text = f"version: 1\n{TABLE}".replace("PORT", "1")
    loaded = load_text(text, "t", {})
    listed, bare = build_snapshot(loaded, ListPrices(date(2026, 11, 29))), build_snapshot(loaded)
    assert [next(each.targets()).list_price is None for each in (listed, bare)] == [False, True]
