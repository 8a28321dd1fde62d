"""The names of a target, one for people, one whose values a client cannot multiply; what its answers cost, and what
clients may send to it."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.completion import Usage
from providers.pricing import Price, cost
from providers.target import NO_MEDIA, NO_PERMITS, Media
from tests.providers.dialects.anthropic.kit import TARGET
from tests.support.looped import looped


def test_a_targets_name_is_what_the_answer_is_said_to_come_from() -> None:
    assert TARGET.name == "anthropic/claude-haiku-4-5/default"


def test_a_targets_label_is_its_row_of_the_table_whatever_model_was_asked_for() -> None:
    wildcard = replace(TARGET, table_key="anthropic/*")
    assert wildcard.label == replace(wildcard, model="anything").label == "anthropic/*/default"


PRICE = Price(0.15, 0.6, 0.075)
WRITES = Price(3, 15, 0.3, 3.75, 6)
"""As Anthropic's price of a Sonnet model: what is written into its cache costs more than a prompt."""


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


def test_the_nearer_word_counts_setting_by_setting() -> None:
    team, deployment = Media(frozenset({"data"})), Media(frozenset({"gs"}), allow_private=True)
    assert team.over(deployment) == Media(frozenset({"data"}), allow_private=True)
    assert NO_MEDIA.over(deployment) == deployment
    assert Media(allow_private=False).over(deployment) == Media(frozenset({"gs"}), allow_private=False)


def test_an_empty_list_is_a_word_too() -> None:
    assert Media(frozenset()).over(Media(frozenset({"gs"}))).schemes == frozenset()


def test_nothing_is_allowed_unasked() -> None:
    assert (NO_PERMITS.fields, NO_PERMITS.headers, NO_PERMITS.media) == (frozenset(), (), NO_MEDIA)
    assert NO_PERMITS.reach("10.0.0.9") == "unknown"
