"""The `price` of a model in a config file: a word, or amounts."""

from config.load_config import load_text
from config.sections.price_section import PriceSection
from tests.config.tables import BASE, complaints
from tests.support.looped import looped


def with_price(price: str) -> str:
    return BASE.replace("openai/gpt-4o: {}", f"openai/gpt-4o: {{price: {price}}}")


@looped("word", ["auto", "none"])
def test_a_word_stands_for_the_list_or_for_nothing(word: str) -> None:
    assert load_text(with_price(word), "t", {}).config.models["openai/gpt-4o"].price == word


def test_amounts_may_depend_on_length_and_tier() -> None:
    text = "{input: 2, output: 8, long_context: [{above: 200k, input: 4}], service_tiers: {flex: {input: 1}}}"
    price = load_text(with_price(text), "t", {}).config.models["openai/gpt-4o"].price
    assert isinstance(price, PriceSection)
    assert dict(price.rates()) == {"input": 2, "output": 8}
    assert (price.long_context[0].above, price.service_tiers["flex"].input) == (200_000, 1)


@looped(
    ("price", "message"),
    [
        ("atuo", "price: must be auto, none or a mapping such as {input: 0.15, output: 0.6}; did you mean auto?"),
        ("{output: 1}", "price.input: required key is missing"),
        ("{input: 1, inptu: 1}", "price.inptu: unknown key; did you mean input?"),
        ("{input: -1}", "price.input: "),
        (
            "{input: 1, long_context: [{above: 1k}, {above: 1000}]}",
            "price: two entries of long_context are for the same length",
        ),
    ],
)
def test_a_wrong_price_is_told_by_its_key(price: str, message: str) -> None:
    (only,) = complaints(with_price(price))
    assert message in only
