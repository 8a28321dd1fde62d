"""The time to wait, from every header and field and in every unit that `openai-compatible.md` names."""

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.json_types import JsonObject
from providers.vendor_text.read_retry_after import read_rate_limit_wait, read_retry_after
from tests.support.looped import looped

DATE = "Sat, 21 Nov 2026 10:00:00 GMT"
NOW = 1_795_255_200


def format_http(moment: datetime) -> str:
    """Format a date as in HTTP. With its zone, some dates lie beyond the range of the calendar."""
    return moment.strftime("%a, %d %b %Y %H:%M:%S -1200")


def header(name: str, value: str, **more: str) -> dict[str, str]:
    return {name: value, "date": DATE, **{key.replace("_", "-"): text for key, text in more.items()}}


def test_the_moment_of_the_answer_is_what_these_tests_take_it_for() -> None:
    assert read_rate_limit_wait(header("x-ratelimit-reset", str(NOW)), "", {}) == 0


@looped(
    ("value", "seconds"),
    [
        ("12ms", 0.012),
        ("1s", 1),
        ("6m0s", 360),
        ("1h2m3s", 3723),
        ("7.66s", 7.66),
        ("2m59.56s", 179.56),
        ("33011.382867", 33011.382867),
        ("30", 30),
        ("0", 0),
        (str(NOW + 60), 60),
        (str(NOW - 60), 0),
        (str((NOW + 90) * 1000), 90),
        ("2026-11-21T10:00:05Z", 5),
        ("2026-11-21T10:00:05+00:00", 5),
        ("2026-11-21T10:00:05", 5),
        ("Sat, 21 Nov 2026 10:01:00 GMT", 60),
        ("-1", None),
        ("", None),
        ("soon", None),
        ("inf", None),
        ("nan", None),
        ("400d", None),
        (str(NOW + 10**8), None),
    ],
)
def test_a_reset_is_read_in_every_form(value: str, seconds: float | None) -> None:
    told = read_rate_limit_wait(header("x-ratelimit-reset-tokens", value, x_ratelimit_remaining_tokens="0"), "", {})
    assert told == (None if seconds is None else pytest.approx(seconds))


def test_a_point_in_time_says_nothing_where_the_answer_has_no_date() -> None:
    assert read_rate_limit_wait({"x-ratelimit-reset": str(NOW + 60)}, "", {}) is None


def test_the_bucket_that_is_empty_is_the_one_to_wait_for() -> None:
    buckets = {
        "x-ratelimit-remaining-requests": "14000",
        "x-ratelimit-reset-requests": "2h",
        "x-ratelimit-remaining-tokens": "0",
        "x-ratelimit-reset-tokens": "7.66s",
    }
    assert read_rate_limit_wait(buckets, "", {}) == 7.66
    assert read_rate_limit_wait({**buckets, "x-ratelimit-remaining-requests": "0"}, "", {}) == 7200
    assert read_rate_limit_wait({**buckets, "x-ratelimit-remaining-tokens": "17"}, "", {}) is None
    # Azure's value for "unknown".
    assert read_rate_limit_wait({**buckets, "x-ratelimit-remaining-tokens": "-1"}, "", {}) is None


def test_days_and_minutes_have_their_own_buckets() -> None:
    told = {
        "x-ratelimit-remaining-requests-day": "0",
        "x-ratelimit-reset-requests-day": "33011.38",
        "x-ratelimit-remaining-tokens-minute": "500",
        "x-ratelimit-reset-tokens-minute": "11.38",
    }
    assert read_rate_limit_wait(told, "", {}) == 33011.38


def test_a_bucket_that_is_alone_need_not_say_that_it_is_empty() -> None:
    assert read_rate_limit_wait({"x-ratelimit-reset": "3"}, "", {}) == 3
    assert read_rate_limit_wait({"x-ratelimit-reset": "3", "x-ratelimit-remaining": "5"}, "", {}) is None


@looped(
    ("message", "seconds"),
    [
        ("Rate limit reached on tokens per min (TPM): Limit 6000. Please try again in 5.289s. Visit", 5.289),
        ("Please try again in 6m0s.", 360),
        ("Please try again in 1h2m3s.", 3723),
        ("Please try again in 20ms.", 0.02),
        ("Please retry after 26 seconds. To increase your default rate limit", 26),
        ("Rate limit of 10 per 60s exceeded for UserByModel. Please wait 52 seconds before retrying.", 52),
        ("Your account is over its concurrency of 1, please try again after 1 seconds", 1),
        ("Please retry in 34.07s.", 34.07),
        ("try again in 2 minutes", 120),
        ("try again in 1 hour", 3600),
        ("try again in 3 parsecs", None),
        ("try again later", None),
        ("limit is 3 seconds", None),
    ],
)
def test_a_message_may_say_how_long(message: str, seconds: float | None) -> None:
    assert read_rate_limit_wait({}, message, {}) == (None if seconds is None else pytest.approx(seconds))


def test_gemini_says_it_in_a_detail() -> None:
    error: JsonObject = {"details": [{"@type": "QuotaFailure"}, {"@type": "RetryInfo", "retryDelay": "34s"}]}
    assert read_rate_limit_wait({}, "", error) == 34
    assert read_rate_limit_wait({}, "", {"details": ["x", {"retryDelay": 5}, {"retryDelay": "soon"}]}) is None


def test_the_headers_of_the_vendor_behind_the_vendor_are_quoted_in_the_body() -> None:
    quoted: JsonObject = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str((NOW + 12) * 1000)}
    assert read_rate_limit_wait({"date": DATE}, "", {"metadata": {"headers": quoted}}) == 12
    assert read_rate_limit_wait({"date": DATE}, "", {"metadata": {"headers": "none"}}) is None


def test_the_most_telling_place_wins() -> None:
    everything = {"retry-after-ms": "1500", "retry-after": "9", "x-ratelimit-reset": "70"}
    spoken = "try again in 20s"
    error: JsonObject = {"details": [{"retryDelay": "34s"}]}
    told = [read_rate_limit_wait(everything, spoken, error)]
    for name in ("retry-after-ms", "retry-after"):
        del everything[name]
        told.append(read_rate_limit_wait(everything, spoken, error))
    told += [read_rate_limit_wait(everything, spoken, {}), read_rate_limit_wait(everything, "", {})]
    assert told == [1.5, 9, 34, 20, 70]


@given(
    st.dictionaries(
        st.sampled_from(["x-ratelimit-reset", "x-ratelimit-reset-tokens", "x-ratelimit-remaining-tokens", "date"]),
        st.text(max_size=30) | st.integers().map(str) | st.floats().map(str) | st.datetimes().map(str),
    ),
    st.text(max_size=60),
)
def test_no_spelling_raises(headers: dict[str, str], message: str) -> None:
    told = read_rate_limit_wait(headers, f"try again in {message}", {})
    assert told is None or 0 <= told < float("inf")


@given(st.text(alphabet="0123456789.smhd ", max_size=4000))
def test_a_message_is_read_in_time_whatever_it_is(message: str) -> None:
    read_rate_limit_wait({"x-ratelimit-reset": message}, f"try again {message}", {"details": [{"retryDelay": message}]})


@looped(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "7"}, 7.0),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "0x10"}, None),
        ({"retry-after": "1_0"}, None),
        ({"retry-after": "1e9"}, None),
        ({"retry-after": "٣"}, None),
        ({"retry-after": "9" * 400}, None),
        ({"retry-after": " 7 "}, 7.0),
        ({"retry-after-ms": "-5", "retry-after": "7"}, 7.0),
        ({"retry-after": "Fri, 31 Dec 9999 23:59:59 -2359", "date": "Sat, 01 Jan 0001 00:00:00 +2359"}, 252424166279.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Sat, 21 Nov 2026 10:00:30 GMT", "date": "Sat, 21 Nov 2026 10:00:00 GMT"}, 30.0),
        ({"retry-after": "Sat, 21 Nov 2026 10:00:00 GMT", "date": "Sat, 21 Nov 2026 10:00:30 GMT"}, 0.0),
        ({"retry-after": "Sat, 21 Nov 2026 10:00:30 GMT"}, None),
        ({"retry-after": "Sat, 21 Nov 2026 10:00:30 GMT", "date": "Sat, 21 Nov 2026 10:00:00 -0000"}, None),
    ],
)
def test_the_wait_a_vendor_asks_for_is_read_in_every_form(headers: dict[str, str], seconds: float | None) -> None:
    assert read_retry_after(headers) == seconds


@given(
    st.dictionaries(
        st.sampled_from(["retry-after", "retry-after-ms", "date"]),
        st.text(max_size=40)
        | st.from_regex(r"[-+]?[0-9.eE_xX]{1,20}", fullmatch=True)
        | st.datetimes().map(format_http),
    )
)
def test_no_spelling_of_a_wait_breaks_anything(headers: dict[str, str]) -> None:
    seconds = read_retry_after(headers)
    assert seconds is None or 0 <= seconds < float("inf")
