"""The amounts of a price by their paths in a config file."""

from config.sections.price_section import PriceSection
from providers.pricing import Price
from proxy.cli.prices.price_rows import amount, price_mapping, rates_of
from proxy.routing.compile_prices import written_price

PRICE = Price(2, 8, long_context=((200_000, Price(4, 12)),), tiers=(("flex", Price(1, 4)),))


def test_every_amount_has_its_place() -> None:
    assert rates_of(PRICE) == {
        "input": 2,
        "output": 8,
        "long_context.200000.input": 4,
        "long_context.200000.output": 12,
        "service_tiers.flex.input": 1,
        "service_tiers.flex.output": 4,
    }


def test_a_mapping_is_read_as_the_price_that_it_is_of() -> None:
    assert written_price(PriceSection.model_validate(price_mapping(PRICE))) == PRICE


def test_an_amount_has_no_exponent() -> None:
    assert [amount(each) for each in (0.0000001, 15.0, 1_000_000.0)] == ["0.0000001", "15", "1000000"]
