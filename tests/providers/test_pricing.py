"""The cost of a response by its parts, its length and its service tier, and the parts without a known price."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.completion import Usage
from providers.emulation.merge_choices import total_usage
from providers.pricing import Price, cost, unpriced, unpriced_tokens
from tests.support.looped import looped

PRICE = Price(0.15, 0.6, 0.075)
WRITES = Price(3, 15, 0.3, 3.75, 6)
"""Anthropic's price of a Sonnet model: writing to the cache costs more than a prompt."""


@looped(
    ("price", "usage", "expected"),
    [
        (PRICE, Usage(1_000_000, 0), 0.15),
        pytest.param(PRICE, Usage(1_000_000, 0, estimated=True), 0.15, id="a guess costs what was guessed"),
        pytest.param(Price(0.02), Usage(1_000_000, 0), 0.02, id="what generates nothing needs no price for that"),
        (PRICE, Usage(0, 1_000_000), 0.6),
        (PRICE, Usage(2000, 500), 0.0006),
        (PRICE, Usage(1_000_000, 0, {"cached_tokens": 400_000}), 0.12),
        (Price(0.15, 0.6), Usage(1_000_000, 0, {"cached_tokens": 400_000}), 0.15),
        (Price(0.15, 0.6, 0), Usage(1_000_000, 0, {"cached_tokens": 1_000_000}), 0),
        (PRICE, Usage(10, 2, {"audio_tokens": 3}, {"reasoning_tokens": 1}), 2.7e-6),
        (Price(0, 0), Usage(10, 2), 0),
        (Price(3, 15), Usage(1_000_000, 0, {"cache_write_tokens": 1_000_000}), 3),
        (WRITES, Usage(1_000_000, 0, {"cached_tokens": 500_000, "cache_write_tokens": 200_000}), 0.15 + 0.75 + 0.9),
        (WRITES, Usage(100_000, 0, {"cache_write_tokens": 100_000, "ephemeral_1h_input_tokens": 40_000}), 0.465),
        (WRITES, Usage(10, 0, {"cached_tokens": 10, "cache_write_tokens": 10**9}), 3e-6),
        (WRITES, Usage(10, 0, {"cached_tokens": -(10**9), "cache_write_tokens": -(10**9)}), 3e-5),
        (
            Price(3, 15, None, 3.75),
            Usage(100_000, 0, {"cache_write_tokens": 1000, "ephemeral_1h_input_tokens": 9**9}),
            0.30075,
        ),
    ],
)
def test_tokens_cost_what_a_million_of_them_costs(price: Price, usage: Usage, expected: float) -> None:
    assert cost(price, usage) == pytest.approx(expected)


def test_what_is_not_known_is_not_zero() -> None:
    assert cost(None, Usage(10, 2)) is None
    assert cost(PRICE, None) is None
    assert cost(Price(0.02), Usage(10, 2)) is None


_TOKENS = st.integers(0, 10**9)


@given(_TOKENS, _TOKENS, _TOKENS)
def test_no_count_of_cached_tokens_makes_it_cheaper_than_a_prompt_all_cached(
    prompt: int, generated: int, cached: int
) -> None:
    told = cost(PRICE, Usage(prompt, generated, {"cached_tokens": cached}))
    cheapest = cost(PRICE, Usage(prompt, generated, {"cached_tokens": prompt}))
    dearest = cost(PRICE, Usage(prompt, generated))
    assert told is not None
    assert cheapest is not None
    assert dearest is not None
    assert cheapest <= told <= dearest


AUDIO = Price(2.5, 10, 1.25, input_audio=40, output_audio=80, cached_audio=2.5, input_image=5, output_image=30)
LONG = Price(2, 8, 0.5, long_context=((128_000, Price(4, 12, 1)), (272_000, Price(6, 18))))
TIERS = Price(2, 8, web_search=10, tiers=(("flex", Price(1, 4)), ("priority", Price(4, 16))), other_tiers="unknown")
SEARCHED = {"web_search_requests": 3}


@looped(
    ("price", "usage", "expected"),
    [
        (AUDIO, Usage(1000, 100, {"audio_tokens": 600}, {"audio_tokens": 40}), 0.001 + 0.024 + 0.0006 + 0.0032),
        (AUDIO, Usage(1000, 0, {"audio_tokens": 600, "cached_tokens": 400}), 400 * 1.25e-6 + 600 * 40e-6),
        (AUDIO, Usage(1000, 0, {"audio_tokens": 600, "cached_tokens": 500}), 400 * 1.25e-6 + 5e2 * 4e-5 + 1e2 * 2.5e-6),
        (AUDIO, Usage(1000, 100, {"image_tokens": 800}, {"image_tokens": 100}), 200 * 2.5e-6 + 0.004 + 0.003),
        (LONG, Usage(128_000, 10), 0.25608),
        (LONG, Usage(128_001, 10), 128_001 * 4e-6 + 0.00012),
        (LONG, Usage(272_001, 10), 272_001 * 6e-6 + 0.00018),
        (TIERS, Usage(1000, 100), 0.0028),
        (TIERS, Usage(1000, 100, tier="flex"), 0.0014),
        (TIERS, Usage(1000, 100, tier="priority"), 0.0056),
        pytest.param(TIERS, Usage(1000, 100, tier="scale"), 0.0028, id="an unknown tier counts as the standard one"),
        (TIERS, Usage(1000, 100, None, SEARCHED), 0.0328),
        (Price(1, 1, request=12), Usage(1000, 1000), 0.014),
    ],
)
def test_parts_lengths_and_tiers_have_prices_of_their_own(price: Price, usage: Usage, expected: float) -> None:
    assert cost(price, usage) == pytest.approx(expected, abs=1e-9)


def test_calls_that_are_added_up_are_priced_one_by_one() -> None:
    total = total_usage([Usage(100_000, 10), Usage(100_000, 10)])
    assert cost(LONG, total) == pytest.approx(2 * (0.2 + 0.00008))
    assert cost(TIERS, total_usage([Usage(1000, 100, tier="flex"), Usage(1000, 100)])) == pytest.approx(0.0042)
    assert cost(Price(1, 1, request=12), total_usage([total, Usage(0, 0)])) == pytest.approx(0.20002 + 0.036)


@looped(
    ("price", "usage", "expected", "tokens"),
    [
        (None, Usage(10, 2), ("tokens",), 12),
        (None, Usage(0, 0), (), 0),
        (None, None, (), 0),
        (Price(1), Usage(10, 2), ("tokens",), 12),
        (Price(1, 1), Usage(10, 2, tier="flex"), (), 0),
        (Price(1, 1), Usage(10, 2, None, SEARCHED), ("web_search",), 0),
        (TIERS, Usage(10, 2, None, SEARCHED), (), 0),
        (TIERS, Usage(10, 2, None, SEARCHED, tier="flex"), ("web_search",), 0),
        (TIERS, Usage(10, 2, tier="scale"), ("service_tier",), 12),
        (Price(1, 1, unknown=("audio",)), Usage(10, 2, {"audio_tokens": 3}), ("audio",), 3),
        (Price(1, 1, unknown=("audio",)), Usage(10, 2), (), 0),
    ],
)
def test_what_has_no_known_price_is_named(
    price: Price | None, usage: Usage | None, expected: tuple[str, ...], tokens: int
) -> None:
    assert unpriced(price, usage) == expected
    assert unpriced_tokens(expected, usage or Usage(0, 0)) == tokens
