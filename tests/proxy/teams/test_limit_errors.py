"""The errors that clients get beyond a limit."""

from datetime import UTC
from zoneinfo import ZoneInfo

import pytest

from proxy.errors import ErrorFacts
from proxy.limits.limit import NANO, Period, Unit
from proxy.limits.limit_views import Exceeded, LimitKind
from proxy.teams.limit_errors import (
    budget_unread,
    go_duration,
    limit_exceeded,
    limit_headers,
    limit_lines,
    no_price,
    target_limited,
)
from tests.support.looped import looped

MIDNIGHT = 1_795_046_400
"""2026-11-19 00:00 UTC."""

NOTHING = (None, None, "", "")


def rate(wait: float = 9.816) -> Exceeded:
    return Exceeded("team t", LimitKind.RATE, Unit.TOKENS, Period.MINUTE, 10_000, 8554, 3082, wait, None)


def beyond(exceeded: Exceeded, draw: float = 0.0) -> ErrorFacts:
    return limit_exceeded(exceeded, NOTHING, UTC, lambda: draw).facts


def test_a_rate_is_told_as_openai_tells_it() -> None:
    facts = beyond(rate())
    assert (facts.status, facts.type, facts.code, facts.param) == (429, "tokens", "rate_limit_exceeded", None)
    assert facts.message == (
        "Rate limit reached for team t on tokens per minute: Limit 10000, Used 8554, Requested 3082. "
        "Please try again in 9.816s."
    )
    assert facts.headers == {"retry-after": "10", "retry-after-ms": "9816"}


def test_refusals_at_the_same_time_do_not_all_come_back_at_the_same_time() -> None:
    assert [beyond(rate(8.0), draw).headers["retry-after-ms"] for draw in (0.0, 0.5, 1.0)] == ["8000", "9000", "10000"]


@looped("wait", [61.0, 90.0, 2e6])
def test_what_takes_longer_is_not_to_be_tried_again_and_not_put_off_for_long(wait: float) -> None:
    facts = beyond(rate(wait), 1.0)
    assert facts.headers["x-should-retry"] == "false"
    assert "retry-after-ms" not in facts.headers
    assert wait <= int(facts.headers["retry-after"]) <= wait + 16


def test_the_least_wait_is_one_that_sdks_take() -> None:
    assert beyond(rate(0.0)).headers == {"retry-after": "1", "retry-after-ms": "1"}


@pytest.mark.parametrize(
    ("unit", "limit", "used", "shown"),
    [(Unit.USD, 40 * NANO, 40_004_000_000, "40.00 USD of 40.00 USD"), (Unit.TOKENS, 9, 9, "9 tokens of 9 tokens")],
)
def test_a_budget_is_told_with_the_end_of_its_period_in_its_zone(unit: Unit, limit: int, used: int, shown: str) -> None:
    spent = Exceeded("team t", LimitKind.BUDGET, unit, Period.DAY, limit, used, 1, 7200.0, MIDNIGHT)
    facts = limit_exceeded(spent, NOTHING, ZoneInfo("Europe/Berlin"), lambda: 0.0).facts
    assert (facts.status, facts.type, facts.code) == (429, "insufficient_quota", "insufficient_quota")
    assert facts.message == (f"The budget of team t per day is spent: {shown}. It begins anew at 2026-11-19 01:00 CET.")
    assert facts.headers == {"retry-after": "7200", "x-should-retry": "false"}


@pytest.mark.parametrize(
    ("used", "reserved", "requested", "told"),
    [
        (105_000, 0, 61_440_000, "0.000105 USD of 0.010000 USD used, 0.00 USD reserved by running requests, and this"),
        (10_105_000, 10_000_000, 9_000, "0.000105 USD of 0.010000 USD used, 0.010000 USD reserved by running requests"),
    ],
)
def test_a_budget_that_is_not_spent_says_what_is_used_reserved_and_asked_for(
    used: int, reserved: int, requested: int, told: str
) -> None:
    left = Exceeded(
        *("team t", LimitKind.BUDGET, Unit.USD, Period.DAY, NANO // 100, used, requested, 7200.0, MIDNIGHT, reserved)
    )
    facts = beyond(left)
    assert told in facts.message
    assert f"would hold {requested / NANO:.6f} USD. " in facts.message
    assert "spent" not in facts.message


def quota(used: int, requested: int, reserved: int = 0, alone: int | None = None, unit: Unit = Unit.TOKENS) -> Exceeded:
    told = ("team t", LimitKind.QUOTA, unit, Period.DAY, 5000, used, requested, 7200.0, MIDNIGHT, reserved)
    return Exceeded(*told, alone=alone)


SMALLER = "One with a smaller `max_tokens` may pass"


@pytest.mark.parametrize(
    ("used", "reserved", "left"),
    [(9, 0, "Left: 4991 tokens. " + SMALLER), (5000, 9, f"Left: 0 tokens. {SMALLER} when running requests have")],
)
def test_a_request_too_large_for_what_is_left_is_put_off_to_the_end_and_a_smaller_one_is_not(
    used: int, reserved: int, left: str
) -> None:
    facts = beyond(quota(used, 5000, reserved))
    assert facts.headers == {"retry-after": "7200", "x-should-retry": "false"}
    assert f"Used {used}, Requested 5000. {left}" in facts.message
    assert facts.message.endswith(" It begins anew at 2026-11-19 00:00 UTC.")


def test_a_budget_that_a_request_is_too_large_for_is_told_in_the_same_way() -> None:
    told = ("team t", LimitKind.BUDGET, Unit.TOKENS, Period.DAY, 5000, 9, 5000, 7200.0, MIDNIGHT)
    assert beyond(Exceeded(*told)).headers == {"retry-after": "7200", "x-should-retry": "false"}


@pytest.mark.parametrize(
    ("used", "unit", "then"),
    [
        (5000, Unit.TOKENS, f" {SMALLER} when running requests have ended."),
        (4999, Unit.USD, f" {SMALLER}."),
    ],
)
def test_what_running_requests_hold_is_not_put_off_to_the_end(used: int, unit: Unit, then: str) -> None:
    facts = beyond(quota(used, 2, 4000, unit=unit))
    assert facts.headers == {"retry-after": "60", "retry-after-ms": "60000"}
    assert f". It may pass when running requests have ended.{then} It begins anew" in facts.message


def test_a_budget_that_running_requests_hold_is_to_be_tried_again_as_well() -> None:
    told = ("team t", LimitKind.BUDGET, Unit.USD, Period.DAY, 5000, 5000, 2, 7200.0, MIDNIGHT, 4000)
    facts = beyond(Exceeded(*told))
    assert (facts.code, facts.headers) == ("insufficient_quota", {"retry-after": "60", "retry-after-ms": "60000"})


def test_requests_that_wait_for_running_ones_do_not_all_come_back_at_the_same_time() -> None:
    assert beyond(quota(5000, 2, 4000), 1.0).headers["retry-after-ms"] == "75000"


def test_running_requests_give_back_no_request_of_a_calendar_limit() -> None:
    facts = beyond(quota(5000, 1, 2, unit=Unit.REQUESTS))
    assert facts.headers == {"retry-after": "7200", "x-should-retry": "false"}
    assert facts.message == (
        "Limit reached for team t on requests per day: Limit 5000, Used 5000, Requested 1. "
        "It begins anew at 2026-11-19 00:00 UTC."
    )


def test_what_other_processes_hold_is_told_as_theirs_and_to_be_tried_again_in_a_moment() -> None:
    told = ("team t", LimitKind.BUDGET, Unit.USD, Period.DAY, 3 * NANO, 295 * NANO // 100, NANO // 20, 1.0, MIDNIGHT)
    facts = beyond(Exceeded(*told, elsewhere=NANO // 50))
    assert facts.message == (
        "The budget of team t per day has too little left for this request: 2.95 USD of 3.00 USD used, 0.00 USD "
        "reserved by running requests, 0.020000 USD held by other processes, and this request would hold 0.050000 USD. "
        "What is left is held for a moment by other processes of the gateway, which give back what they do not use. "
        "Please try again. It begins anew at 2026-11-19 00:00 UTC."
    )
    assert facts.headers == {"retry-after": "1", "retry-after-ms": "1000"}


def test_headers_show_none_of_what_other_processes_hold() -> None:
    exceeded = Exceeded(*("team t", LimitKind.QUOTA, Unit.REQUESTS, Period.DAY, 100, 97, 1, 1.0, MIDNIGHT), elsewhere=3)
    headers = limit_exceeded(exceeded, ((3, 100, 7200.0), None, "team t", ""), UTC, lambda: 0.0).facts.headers
    assert headers["x-ratelimit-remaining-requests"] == "0"


def test_a_rate_of_a_process_that_counts_alone_says_so() -> None:
    told = Exceeded("team t", LimitKind.RATE, Unit.REQUESTS, Period.MINUTE, 20, 3, 1, 4.0, None, alone=0)
    assert beyond(told).message == (
        "Rate limit reached for team t on requests per minute: Limit 20, Used 3, Requested 1. The gateway's processes "
        "count alone until they reach each other again; this one has 0 requests left. Please try again in 4s."
    )


def test_a_process_that_counts_alone_says_so_instead_of_contradicting_itself() -> None:
    shown = ((4980, 5000, 7200.0), None, "team t", "")
    facts = limit_exceeded(quota(20, 1, alone=0, unit=Unit.REQUESTS), shown, UTC, lambda: 0.0).facts
    assert facts.message == (
        "Limit reached for team t on requests per day: Limit 5000, Used 20, Requested 1. The gateway's processes count "
        "alone until they reach each other again; this one has 0 requests left. It begins anew at 2026-11-19 00:00 UTC."
    )
    assert (facts.headers["retry-after"], facts.headers["x-ratelimit-remaining-requests"]) == ("60", "0")
    assert f"this one has 7 tokens left. {SMALLER}. It begins" in beyond(quota(20, 9, alone=7)).message
    assert "this one has 0 tokens left. It begins" in beyond(quota(20, 9, alone=0)).message
    places = Exceeded("team t", LimitKind.CONCURRENT, Unit.REQUESTS, None, 8, 2, 1, 1.0, None, alone=0)
    assert "this one has 0 requests left. Please try again later." in beyond(places).message


def test_a_limit_that_is_used_up_by_all_says_nothing_of_who_counts() -> None:
    assert "alone" not in beyond(quota(5000, 1, alone=0)).message


def test_a_rate_says_what_it_allows_in_one_go() -> None:
    told = Exceeded("team t", LimitKind.RATE, Unit.REQUESTS, Period.MINUTE, 600, 10, 1, 0.1, None, burst=10)
    assert ": Limit 600 (10 in one go), Used 10, Requested 1. Please" in beyond(told).message


@looped(("wait", "draw"), [(0.9966, 1.0), (0.9966, 0.0), (0.0001, 0.5), (31.0, 0.77)])
def test_one_refusal_tells_one_wait(wait: float, draw: float) -> None:
    facts = beyond(rate(wait), draw)
    milliseconds = int(facts.headers["retry-after-ms"])
    assert facts.message.endswith(f"Please try again in {go_duration(milliseconds / 1000)}.")
    assert int(facts.headers["retry-after"]) == -(-milliseconds // 1000)


def test_a_budget_about_to_end_its_period_is_not_to_be_tried_again_either() -> None:
    spent = Exceeded("team t", LimitKind.BUDGET, Unit.TOKENS, Period.DAY, 9, 9, 1, 1.0, MIDNIGHT)
    assert beyond(spent).headers == {"retry-after": "1", "x-should-retry": "false"}


def test_a_limit_of_a_deployment_is_told_in_the_same_way_and_as_nobodys_own() -> None:
    failure = target_limited(rate(), UTC, lambda: 0.0)
    assert (
        failure.message == f"{beyond(rate()).message} The gateway's operator has set this limit for all teams together."
    )
    assert (failure.code, failure.retry_after, failure.withheld) == ("tokens", 9.816, True)


def test_a_quota_and_places_are_rate_limits_to_clients() -> None:
    quota = Exceeded("key t/ci", LimitKind.QUOTA, Unit.REQUESTS, Period.DAY, 5, 5, 1, 30.0, MIDNIGHT)
    places = Exceeded("vendor v", LimitKind.CONCURRENT, Unit.REQUESTS, None, 4, 4, 1, 1.0, None)
    told = [beyond(quota), beyond(places)]
    assert [(each.type, each.code) for each in told] == [("requests", "rate_limit_exceeded")] * 2
    assert told[0].message == (
        "Limit reached for key t/ci on requests per day: Limit 5, Used 5, Requested 1. "
        "It begins anew at 2026-11-19 00:00 UTC."
    )
    assert told[1].message == "Too many requests of vendor v at once: Limit 4, Used 4. Please try again later."


def test_a_refusal_shows_all_limits_as_a_good_answer_does() -> None:
    facts = ((0, 60, 60.0), (999, 1000, 0.06), "team t", "key t/ci")
    headers = limit_exceeded(rate(), facts, UTC, lambda: 0.0).facts.headers
    assert {name: headers[name] for name in headers if name.startswith("x-ratelimit")} == limit_headers(facts)


def test_lines_of_a_head_say_what_headers_say() -> None:
    facts = ((4999, 5000, 0.0115), None, "all clients", "")
    written = "".join([f"{name}: {value}\r\n" for name, value in limit_headers(facts).items()])
    assert limit_lines(facts) == written
    assert limit_lines(NOTHING) == ""


def test_headers_are_whole_numbers_durations_and_the_scopes_that_they_are_of() -> None:
    assert limit_headers(((4999, 5000, 0.0115), (159_976, 160_000, 0.009), "team t", "key t/ci")) == {
        "x-ratelimit-limit-requests": "5000",
        "x-ratelimit-remaining-requests": "4999",
        "x-ratelimit-reset-requests": "12ms",
        "x-ratelimit-scope-requests": "team t",
        "x-ratelimit-limit-tokens": "160000",
        "x-ratelimit-remaining-tokens": "159976",
        "x-ratelimit-reset-tokens": "9ms",
        "x-ratelimit-scope-tokens": "key t/ci",
    }
    assert limit_headers(NOTHING) == {}


def test_a_model_without_a_price_is_named() -> None:
    facts = no_price("team t", "v/m").facts
    assert (facts.status, facts.type, facts.code, facts.param) == (429, *["insufficient_quota"] * 2, "model")
    assert facts.headers == {"x-should-retry": "false"}
    assert facts.message.startswith(
        "The budget of team t is in USD, and the price of 'v/m' is not known here: use a model "
    )


def test_spending_that_cannot_be_read_is_no_fault_of_the_client() -> None:
    facts = budget_unread().facts
    assert (facts.status, facts.code, facts.headers) == (503, "overloaded", {"retry-after": "2"})


@looped(
    ("seconds", "text"),
    [
        (0.0, "0ms"),
        (-3.0, "0ms"),
        (1e-10, "0ms"),
        (0.0114, "12ms"),
        (0.9999, "1s"),
        (1.0, "1s"),
        (1.5, "1.5s"),
        (59.9991, "1m0s"),
        (360.0, "6m0s"),
        (3600.0, "1h0m0s"),
        (3723.25, "1h2m3.25s"),
        (2_592_000.0, "720h0m0s"),
    ],
)
def test_durations_are_those_of_go_and_rounded_up(seconds: float, text: str) -> None:
    assert go_duration(seconds) == text
