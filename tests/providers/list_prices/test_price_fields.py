"""Prices in the format of the price list."""

from providers.list_prices.price_fields import price_of
from providers.pricing import Price


def test_lengths_inherit_and_tiers_are_whole() -> None:
    found = price_of(
        {
            "input": 2,
            "output": 8,
            "cached_input": 1,
            "long_context": {"272000": {"input": 6}, "128000": {"input": 4}},
            "tiers": {"flex": {"input": 1, "output": 4}, "same": {}},
            "unknown": ["audio"],
        }
    )
    assert found is not None
    assert found.long_context == ((128_000, Price(4, 8, 1)), (272_000, Price(6, 8, 1)))
    flex, same = (price for _, price in found.tiers)
    assert flex == Price(1, 4)
    assert same.long_context == found.long_context
    assert (found.other_tiers, found.unknown) == ("unknown", ("audio",))


def test_a_price_without_one_of_the_prompt_is_none() -> None:
    assert price_of({"output": 8}) is None
