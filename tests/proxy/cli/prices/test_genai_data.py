"""The shipped list has the library's data: every model has the library's price, at every tier and length."""

from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from typing import Any

import pytest
from genai_prices.data_snapshot import get_snapshot
from genai_prices.types import ModelInfo, Provider
from genai_prices.types import Usage as LibraryUsage

from providers.completion import Usage
from providers.list_prices.list_prices import SHIPPED, ListEntry, ListPrices
from providers.pricing import cost
from proxy.cli.prices.genai_data import data_text, installed_library

LISTED = ListPrices(date.max)
NOON = datetime(9999, 12, 31, 12, tzinfo=UTC)
LENGTHS = ((1000, 500), (130_000, 2000), (250_000, 10), (300_001, 77))
PARTS: tuple[Mapping[str, int], ...] = (
    {},
    {"cache_read_tokens": 300},
    {"cache_read_tokens": 100, "cache_write_tokens": 200, "cache_write_1h_tokens": 50},
    {"input_audio_tokens": 60, "output_audio_tokens": 5, "cache_audio_read_tokens": 0},
    {"input_image_tokens": 60, "output_image_tokens": 5, "cache_image_read_tokens": 0},
    {"web_searches": 3},
)
_PROMPT = {
    "cache_read_tokens": "cached_tokens",
    "cache_write_tokens": "cache_write_tokens",
    "cache_write_1h_tokens": "ephemeral_1h_input_tokens",
    "input_audio_tokens": "audio_tokens",
    "input_image_tokens": "image_tokens",
}
_COMPLETION = {
    "output_audio_tokens": "audio_tokens",
    "output_image_tokens": "image_tokens",
    "web_searches": "web_search_requests",
}


def test_the_file_is_what_the_installed_library_gives() -> None:
    shipped = SHIPPED.read_bytes()
    data = LISTED.data
    assert data is not None
    assert data_text(installed_library(), date.fromisoformat(data.date)) == shipped


def models() -> Iterator[tuple[Provider, ModelInfo, ListEntry]]:
    """Yield every model that has one price at all hours and that the library finds by its own id, with its entry."""
    snapshot = get_snapshot()
    for provider in snapshot.providers:
        for model in provider.models:
            if provider.find_model(model.id, all_providers=snapshot.providers) is model:
                listed = LISTED.model(provider.id, (model.id,))
                if listed is not None and listed.price is not None and not listed.notes:
                    yield provider, model, listed


def usages(tier: str | None) -> Iterator[tuple[Usage, LibraryUsage]]:
    for prompt, completion in LENGTHS:
        for parts in PARTS:
            own = [{names[key]: parts[key] for key in names if key in parts} for names in (_PROMPT, _COMPLETION)]
            counts: dict[str, Any] = {"input_tokens": prompt, "output_tokens": completion, **parts}
            yield Usage(prompt, completion, own[0], own[1], tier=tier), LibraryUsage(**counts)


@pytest.mark.thorough
def test_each_model_costs_what_the_library_calculates_to_the_microcent() -> None:
    compared = 0
    for provider, model, listed in models():
        price = listed.price
        assert price is not None
        if price.output is None:
            continue
        for tier in (None, *(name for name, _ in price.tiers)):
            variants = [each.when for each in model.price_variants or () if tier in each.when.values()]
            for usage, theirs in usages(tier):
                calculated = model.calc_price(
                    theirs, provider, genai_request_timestamp=NOON, price_context=variants[0] if variants else None
                )
                assert cost(price, usage) == pytest.approx(float(calculated.total_price), abs=1e-8), (listed, usage)
                compared += 1
    assert compared > 10_000


def test_a_price_by_the_hour_is_the_dearest_and_says_so() -> None:
    listed = ListPrices(date(2026, 11, 29)).model("deepseek", ("deepseek-v4-pro",))
    assert listed is not None
    assert listed.price is not None
    assert (listed.price.input, listed.price.output) == (1.32, 3.96)
    assert listed.notes == ("the dearest of prices that depend on the hour",)
