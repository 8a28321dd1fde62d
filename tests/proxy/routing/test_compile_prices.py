"""The price of each deployment, by the written price and the list's price. The list is read only if it may be
needed."""

from datetime import date

from config.load_config import load_text
from providers.list_prices.list_prices import ListPrices
from providers.pricing import Price
from providers.target import Target
from proxy.routing.resolve_model import reached
from proxy.routing.snapshot import ANYONE, build_snapshot
from tests.support.looped import looped

PRIVATE = 'base_url: "http://127.0.0.1:1/v1", allow_private: true'
TABLE = """\
version: 1
vendors:
  v: {{{vendor}}}
models:
  v/{model}: {{{settings}}}
"""


def compiled(vendor: str, model: str, settings: str = "") -> tuple[Target, ListPrices]:
    prices = ListPrices(date(2026, 11, 29))
    text = TABLE.format(vendor=f"api_key: k, {vendor}", model=f"'{model}'".strip("'"), settings=settings)
    snapshot = build_snapshot(load_text(text, "t", {}), prices)
    (target,) = reached(snapshot, ANYONE, f"v/{model.replace('*', 'gpt-4o')}")
    return target, prices


@looped(
    ("vendor", "model", "settings", "expected"),
    [
        ("profile: openai", "gpt-4o", "", 2.5),
        ("profile: openai", "*", "", 2.5),
        ("profile: openai", "*", "price: none", None),
        ("profile: openai", "gpt-4o", "price: {input: 1}", 1),
        ("profile: openai", "gpt-4o", "price: none", None),
        ("profile: openai, price: none", "gpt-4o", "price: auto", 2.5),
        ("profile: openai", "nothing-known", "", None),
        (f"profile: openai, {PRIVATE}", "gpt-4o", "", None),
        (f"profile: openai, {PRIVATE}", "gpt-4o", "price: auto", 2.5),
        ('profile: openai, base_url: "https://llm.example.com"', "gpt-4o", "", 2.5),
        ('profile: openai_compatible, base_url: "https://api.groq.com/openai/v1"', "llama-3.1-8b-instant", "", 0.05),
        ("profile: azure, url_params: {resource: acme}", "prod", "base_model: gpt-4o", 2.5),
        ("profile: azure, url_params: {resource: acme}", "gpt-4o", "upstream_model: prod", 2.5),
        (f"profile: vllm, {PRIVATE}", "mine", "base_model: openai/gpt-4o, price: auto", 2.5),
        (f"profile: vllm, {PRIVATE}", "mine", "base_model: openai/gpt-4o", None),
    ],
)
def test_each_deployment_has_its_price(vendor: str, model: str, settings: str, expected: float | None) -> None:
    price = compiled(vendor, model, settings)[0].price
    assert (None if price is None else price.input) == expected


@looped(
    ("vendor", "settings", "is_read"),
    [
        ("profile: openai", "", True),
        ("profile: openai", "price: {input: 1, output: 2}", False),
        ("profile: openai, price: none", "", False),
        (f"profile: openai, {PRIVATE}", "", False),
        ("profile: mock", "", False),
    ],
)
def test_the_list_is_read_only_if_a_price_may_be_in_it(vendor: str, settings: str, is_read: bool) -> None:
    assert compiled(vendor, "gpt-4o", settings)[1].is_read is is_read


def test_what_is_known_of_a_base_model_holds_under_another_name() -> None:
    target, _ = compiled("profile: azure, url_params: {resource: acme}", "prod", "base_model: openai/gpt-4o")
    assert (target.context_window, target.model_names) == (128_000, ("gpt-4o", "gpt-4o"))
    own, _ = compiled("profile: openai", "gpt-4o")
    assert (own.context_window, own.model_names) == (None, ("gpt-4o", "gpt-4o"))


def test_a_written_price_has_lengths_and_tiers() -> None:
    text = "price: {input: 2, output: 8, long_context: [{above: 1k, input: 4}], service_tiers: {flex: {input: 1}}}"
    price = compiled("profile: openai", "m", text)[0].price
    assert price == Price(2, 8, long_context=((1000, Price(4, 8)),), tiers=(("flex", Price(1, 8)),))
