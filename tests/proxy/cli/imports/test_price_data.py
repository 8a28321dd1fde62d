"""Prices of the real data, and the notes on what one price cannot show."""

import sys
from datetime import UTC, date, datetime, time
from decimal import Decimal

import genai_prices
import pytest
from genai_prices.data_snapshot import DataSnapshot
from genai_prices.types import (
    ClauseEquals,
    ConditionalPrice,
    ModelInfo,
    ModelPrice,
    Provider,
    StartDateConstraint,
    Tier,
    TieredPrices,
    TimeOfDateConstraint,
)

from proxy.cli.imports.price_data import KnownModel, ListPrice, PriceList, decimal, price_list
from proxy.cli.terminal import CommandError
from tests.support.looped import looped

NOW = datetime(2026, 11, 21, tzinfo=UTC)


def of(prices: ModelPrice | list[ConditionalPrice]) -> KnownModel:
    """Return the data on a model with these prices."""
    model = ModelInfo("m", ClauseEquals("m"), context_window=9, prices=prices)
    data = DataSnapshot([Provider("p", "P", r"https://p\.example", models=[model])], from_auto_update=False)
    found = PriceList("1", NOW, data).known("https://p.example/v1", ["m"])
    assert found is not None
    return found


def per_million(first: str, last: str, cached: str | None = None) -> ListPrice:
    return ListPrice(Decimal(first), Decimal(last), None if cached is None else Decimal(cached))


def listed(first: str, last: str) -> ModelPrice:
    return ModelPrice(input_mtok=Decimal(first), output_mtok=Decimal(last))


def test_the_data_knows_models_by_the_address_of_their_vendor() -> None:
    data = price_list(NOW)
    assert data.version == genai_prices.__version__
    assert data.vendor("https://api.openai.com/v1") == "openai"
    found = data.known("https://api.openai.com/v1", ["gpt-4o-mini"])
    assert found == KnownModel("openai gpt-4o-mini", 128000, per_million("0.15", "0.6", "0.075"), ())


def test_the_first_name_that_is_known_counts() -> None:
    found = price_list(NOW).known("https://acme.openai.azure.com", ["our-deployment", "gpt-4o", "gpt-4o-mini"])
    assert found is not None
    assert found.listed_as == "azure gpt-4o, at the price of its maker"
    assert found.price == per_million("2.5", "10", "1.25")


@looped("url", ["http://127.0.0.1:8081/v1", "https://llm.example.com/v1", "mock://builtin/v1"])
def test_an_address_that_is_nobodys_has_no_prices(url: str) -> None:
    data = price_list(NOW)
    assert data.vendor(url) is None
    assert data.known(url, ["gpt-4o-mini"]) is None


def test_a_model_that_the_vendor_has_not_is_unknown() -> None:
    assert price_list(NOW).known("https://api.openai.com/v1", ["gpt-0"]) is None


def test_everything_in_the_data_can_be_read() -> None:
    data = price_list(NOW)
    found = [data._read("x", model) for vendor in data._data.providers for model in vendor.models]
    priced = [known.price for known in found if known.price is not None]
    assert len(priced) > 1500
    assert all(0 <= number <= 1_000_000 for price in priced for number in (price.input, price.output or 0))


def test_tiers_are_told_beside_the_price_of_the_first() -> None:
    tiered = ModelPrice(
        input_mtok=TieredPrices(Decimal(1), [Tier(2000, Decimal(2)), Tier(1000, Decimal("1.5"))]),
        output_mtok=TieredPrices(Decimal(3), [Tier(2000, Decimal(4))]),
    )
    assert of(tiered) == KnownModel(
        "p m",
        9,
        per_million("1", "3"),
        (
            "With more than 1000 tokens of prompt it costs: input: 1.5.",
            "With more than 2000 tokens of prompt it costs: input: 2, output: 4.",
        ),
    )


def test_the_price_of_the_day_counts() -> None:
    prices = [
        ConditionalPrice(prices=listed("1", "2")),
        ConditionalPrice(StartDateConstraint(date(2026, 1, 1)), prices=listed("3", "4")),
        ConditionalPrice(StartDateConstraint(date(2026, 12, 1)), prices=listed("5", "6")),
    ]
    assert of(prices) == KnownModel("p m", 9, per_million("3", "4"), ())


def test_of_the_prices_of_a_days_hours_the_dearest_counts_and_the_others_are_told() -> None:
    by_day = TimeOfDateConstraint(time(8, tzinfo=UTC), time(20, tzinfo=UTC))
    prices = [ConditionalPrice(prices=listed("1", "2")), ConditionalPrice(by_day, prices=listed("2", "4"))]
    assert of(prices) == KnownModel("p m", 9, per_million("2", "4"), ("At some hours it costs: input: 1, output: 2.",))


def test_a_price_for_each_request_is_told() -> None:
    found = of(ModelPrice(input_mtok=Decimal(1), output_mtok=Decimal(2), requests_kcount=Decimal(12)))
    assert found.notes == ("Each request costs something too.",)


@looped("prices", [ModelPrice(), ModelPrice(output_mtok=Decimal(1)), listed("1e7", "1"), listed("1", "1e7")])
def test_a_model_without_a_price_of_what_it_reads_has_none(prices: ModelPrice) -> None:
    found = of(prices)
    assert found.price is None
    assert found.notes == ("It has no price for the tokens that are read.",)


def test_a_model_that_only_reads_has_the_price_of_that() -> None:
    found = of(ModelPrice(input_mtok=Decimal("0.02")))
    assert (str(found.price), found.notes) == ("input: 0.02", ())


@looped(("value", "text"), [("1E+1", "10"), ("0.0000010", "0.000001"), ("0", "0"), ("15.00", "15")])
def test_numbers_are_written_as_the_table_reads_them(value: str, text: str) -> None:
    assert decimal(Decimal(value)) == text


def test_without_the_extra_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    with pytest.raises(CommandError, match=r"^prices come from an extra: pip install '\.\[prices\]' in "):
        price_list(NOW)
