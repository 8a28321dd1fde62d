"""Lookups of list prices: by address and model name, on a day, and without reading the prices of other vendors."""

from datetime import date

import pytest

from providers.list_prices.list_prices import NO_LIST_PRICES, ListPrices, PriceData
from tests.support.looped import looped

DAY = date(2026, 11, 29)
LIST = ListPrices(DAY)
TEXT = b"""\
{"source":"s","version":"1","date":"2026-11-01"}
{"vendor":"v","address":"https://v\\\\.example","others":["maker"]}
{"id":"a","match":{"equals":["a"]},"window":9,"prices":[{"input":1,"output":2},{"from":"2026-12-01","input":3}]}
{"vendor":"maker","address":"https://maker","others":[]}
{"id":"b","match":{"starts_with":["b-"]},"prices":[{"input":5,"tiers":{"flex":{"input":4}}}]}
"""


@looped(
    ("address", "vendor"),
    [
        ("https://api.openai.com/v1", "openai"),
        ("https://{resource}.openai.azure.com", "azure"),
        ("https://bedrock-runtime.{region}.amazonaws.com", "aws"),
        ("https://us-central1-aiplatform.googleapis.com/v1", "google"),
        ("https://llm.example.com", None),
    ],
)
def test_a_vendor_is_found_by_its_address(address: str, vendor: str | None) -> None:
    assert LIST.vendor([address]) == vendor


@looped(
    ("vendor", "name", "listed"),
    [
        ("openai", "gpt-4o", "gpt-4o"),
        ("azure", "gpt-5.6-sol", "gpt-5.6-sol"),
        ("anthropic", "claude-opus-5-20260101", "claude-opus-5"),
        ("openai", "nothing-known", None),
        (None, "gpt-4o", None),
    ],
)
def test_a_model_is_found_by_its_name(vendor: str | None, name: str, listed: str | None) -> None:
    found = LIST.model(vendor, (name,))
    assert (found and found.id) == listed


def test_nothing_is_read_before_something_is_looked_up() -> None:
    prices = ListPrices(DAY)
    assert [prices.is_read, prices.vendor(["https://api.openai.com"]), prices.is_read] == [False, "openai", True]
    assert NO_LIST_PRICES.vendor(["https://api.openai.com"]) is None


def test_a_price_holds_from_its_day_on() -> None:
    data = PriceData(TEXT)
    for day, price in ((date(2026, 11, 30), 1), (date(2026, 12, 1), 3)):
        found = data.model("v", ("a",), day)
        assert found is not None
        assert found.price is not None
        assert (found.price.input, found.window) == (price, 9)


def test_a_maker_s_tiers_are_not_those_of_who_hosts_its_model() -> None:
    data = PriceData(TEXT)
    own, hosted = data.model("maker", ("b-1",), DAY), data.model("v", ("b-1",), DAY)
    assert own is not None
    assert own.price is not None
    assert hosted is not None
    assert hosted.price is not None
    assert ([name for name, _ in own.price.tiers], hosted.price.tiers) == (["flex"], ())
    assert hosted.notes == ("at the price of its maker",)


def test_a_model_before_any_vendor_is_refused() -> None:
    with pytest.raises(ValueError, match="without a vendor"):
        PriceData(b'{"source":"s","version":"1","date":"d"}\n{"id":"a"}\n')
