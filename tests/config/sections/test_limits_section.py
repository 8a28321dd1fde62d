"""Limits and budgets as written in a config file: amounts, percentages, and short words in place of a mapping."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.reading.yaml_scalars import Unquoted
from config.sections.limits_section import (
    LIMIT_PERIODS,
    LIMIT_UNITS,
    BudgetRoute,
    LimitsSection,
    OnLimitQueue,
    to_amount,
    to_share,
)
from tests.config.tables import complaints, load
from tests.support.looped import looped

HEAD = "version: 1\nvendors: {v: {}}\nmodels: {v/m: {price: {input: 1}}}\nroutes: {r: v/m, s: v/m}\n"
KEY = "sha256:" + "a" * 64


def team(text: str) -> str:
    return f"{HEAD}teams: {{t: {{keys: ['{KEY}'], models: [r, s], {text}}}}}\n"


@looped(
    ("written", "amount"),
    [("200k", 200_000), ("5M", 5_000_000), ("1.5m", 1_500_000), ("2K", 2000), (600, 600), (True, True), (None, None)],
)
def test_an_amount_may_have_a_letter_for_thousands(written: object, amount: object) -> None:
    assert to_amount(written) == amount


@given(st.integers(0, 999_999_999), st.integers(0, 999), st.sampled_from("kKmM"))
def test_no_amount_loses_a_unit_to_rounding(whole: int, thousandths: int, letter: str) -> None:
    scale = {"k": 1, "m": 1000}[letter.lower()]
    assert to_amount(f"{whole}.{thousandths:03}{letter}") == (whole * 1000 + thousandths) * scale


@given(st.text(max_size=40).filter(lambda text: text[-1:].lower() not in ("k", "m")))
def test_other_text_is_no_amount(text: str) -> None:
    with pytest.raises(ValueError, match="must be a number, such as 600"):
        to_amount(text)


def test_numbers_of_requests_at_once_have_such_letters_too() -> None:
    team_and_server = f"{team('limits: {concurrent: 1k}')}server: {{limits: {{requests: 2k, streams: 1.5k}}}}\n"
    config = load(f"{team_and_server}defaults: {{concurrent: 3k}}\n").config
    assert config.teams["t"].limits.concurrent == 1000
    assert (config.server.limits.requests, config.server.limits.streams, config.defaults.concurrent) == (
        2000,
        1500,
        3000,
    )
    assert complaints(team("limits: {concurrent: many}"))[0].endswith(
        "must be a number, such as 600, 200k or 5M (k is 1,000, M is 1,000,000)"
    )


@looped(("written", "share"), [("80%", 0.8), ("100%", 1.0), ("0.5 %", 0.005), ("99.9%", 0.999), (0.8, 0.8), (1, 1)])
def test_a_share_is_a_percentage_or_a_number_up_to_one(written: object, share: float) -> None:
    assert to_share(written) == share


@looped("written", ["80", "eighty", "80 %%", "-5%", "1e2%", "", "%", "9" * 5000, 80, 1.01, 10**400])
def test_other_shares_are_refused_with_the_same_words(written: object) -> None:
    with pytest.raises(ValueError, match=r"^must be a share such as 80% or 0.8(, at most 100%)?$"):
        to_share(written)


@looped(
    ("text", "told"),
    [
        ("limits: {requests_per_minute: 0}", "limits.requests_per_minute: must be at least 1"),
        ("limits: {tokens_per_day: -5}", "limits.tokens_per_day: must be at least 1"),
        ("limits: {tokens_per_day: 0.000k}", "limits.tokens_per_day: must be at least 1"),
        ("limits: {tokens_per_day: 9999999999999}", "limits.tokens_per_day: must be at most 1000000000000"),
        ("limits: {concurrent: 0}", "limits.concurrent: must be at least 1"),
        ("limits: {burst: 0, requests_per_minute: 5}", "limits.burst: must be at least 1"),
        ("limits: {requests_per_minute: 1.5}", "limits.requests_per_minute: expected a whole number; 1.5 is not one"),
        (
            "limits: {requests_per_minute: true}",
            "limits.requests_per_minute: expected a whole number, found true or false",
        ),
        (
            "limits: {requests_per_minute: 6 hundred}",
            "limits.requests_per_minute: must be a number, such as 600, 200k or 5M (k is 1,000, M is 1,000,000)",
        ),
        (
            "limits: {request_per_minute: 6}",
            "limits.request_per_minute: unknown key; did you mean requests_per_minute or requests_per_month or "
            "requests_per_week?",
        ),
        ("limits: {models: {'a b': {concurrent: 1}}}", "limits.models.a b: a name that a team requests may hold"),
        ("limits: 600", "limits: expected a mapping, found a number"),
        ("budget: {per: month}", "budget: must have one of usd and tokens"),
        ("budget: {usd: 1, tokens: 1000, per: day}", "budget: must have one of usd and tokens"),
        ("budget: {usd: 5}", "budget.per: required key is missing"),
        ("budget: {usd: 0, per: day}", "budget.usd: must be at least 0.01"),
        ("budget: {usd: -1, per: day}", "budget.usd: must be at least 0.01"),
        ("budget: {usd: 1.0e+10, per: day}", "budget.usd: must be at most 1000000000"),
        ("budget: {usd: 5, per: year}", "budget.per: must be hour, day, week or month"),
        ("budget: {usd: 5, per: moth}", "budget.per: must be hour, day, week or month; did you mean month?"),
        ("budget: {usd: 5, per: day, at: 80}", "budget.at: must be a share such as 80% or 0.8, at most 100%"),
        ("budget: {usd: 5, per: day, at: 0%}", "budget.at: must be more than 0"),
        ("budget: {usd: 5, per: day, at: 101%}", "budget.at: must be at most 100%"),
        (
            "budget: {usd: 5, per: day, then: wran}",
            "budget.then: must be warn, reject or {route: NAME}; did you mean warn?",
        ),
        ("budget: {usd: 5, per: day, then: [warn]}", "budget.then: expected warn, reject or a mapping, found a list"),
        ("budget: {usd: 5, per: day, then: {rote: r}}", "budget.then.rote: unknown key; did you mean route?"),
        ("budget: {usd: 5, per: day, unpriced: maybe}", "budget.unpriced: must be reject or ignore"),
        ("budget: 5", "budget: expected a list, found a number"),
        ("on_limit: wait", "on_limit: must be reject or {queue: 5s}"),
        ("on_limit: {queue: 0s}", "on_limit.queue: must be more than 0s"),
        ("on_limit: {queue: 61s}", "on_limit.queue: must be at most 60s"),
        ("on_limit: {queue: soon}", "on_limit.queue: must be a duration with its unit"),
    ],
)
def test_a_mistake_is_told_at_its_path(text: str, told: str) -> None:
    found = [each for each in complaints(team(text)) if "missing" not in each or "missing" in told]
    assert [each.partition(" ")[2].removeprefix("teams.t.")[: len(told)] for each in found[:1]] == [told]


def test_a_mistake_in_a_lone_budget_is_told_at_its_value() -> None:
    (told,) = complaints(f"{HEAD}teams:\n  t:\n    keys: ['{KEY}']\n    budget:\n      usd: 5\n      per: year\n")
    assert told.startswith("10:12 teams.t.budget.per: ")


def test_a_lone_budget_is_a_list_of_one() -> None:
    config = load(team("budget: {usd: 5, per: day, at: 80%, then: warn}")).config
    assert config == load(team("budget: [{usd: 5, per: day, at: 0.8, then: warn}]")).config
    (budget,) = config.teams["t"].budget
    assert (budget.usd, budget.tokens, budget.per, budget.at, budget.then) == (5.0, None, "day", 0.8, "warn")
    assert (budget.unpriced, budget.route) == ("ignore", None)


def test_a_word_may_stand_for_a_mapping_and_come_from_a_reference() -> None:
    text = team("budget: {tokens: 2k, per: day, then: '${THEN}'}, on_limit: {queue: 1500ms}, limits: {concurrent: 1}")
    found = load(text, {"THEN": "warn"}).config.teams["t"]
    assert found.budget[0].then == "warn"
    assert isinstance(found.on_limit, OnLimitQueue)
    assert found.on_limit.queue == 1.5
    routed = load(team("budget: {tokens: 2k, per: day, then: {route: r}}")).config.teams["t"].budget[0]
    assert routed.route == "r"
    assert isinstance(routed.then, BudgetRoute)


def keys() -> Iterator[str]:
    return (f"{unit}_per_{period}" for unit in LIMIT_UNITS for period in LIMIT_PERIODS)


def test_every_limit_is_told_with_its_unit_and_its_period() -> None:
    section = LimitsSection.model_validate({key: number for number, key in enumerate(keys(), 1)})
    assert [(each.key, each.amount) for each in section.amounts()] == [(key, at) for at, key in enumerate(keys(), 1)]
    assert all(each.key == f"{each.unit}_per_{each.period}" for each in section.amounts())


def test_a_section_without_limits_is_told_apart() -> None:
    assert not LimitsSection().any
    assert not LimitsSection(burst=5).any
    assert LimitsSection(concurrent=5).any
    assert LimitsSection(tokens_per_week=5).any


def test_an_amount_may_be_a_reference() -> None:
    assert load(team("limits: {requests_per_minute: '${X}'}"), {"X": "20k"}).config.teams["t"].limits is not None
    text = f"{HEAD}teams:\n  t:\n    keys: ['{KEY}']\n    limits:\n      tokens_per_minute: ${{X}}\n"
    for value, amount in (("20k", 20_000), ("7000", 7000), (Unquoted("7k"), 7000)):
        assert load(text, {"X": value}).config.teams["t"].limits.tokens_per_minute == amount
