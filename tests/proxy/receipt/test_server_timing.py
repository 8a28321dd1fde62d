"""The receipt that clients get is a header that every browser reads, of bounded length, whatever names it has."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.completion import Usage
from proxy.errors import GatewayError
from proxy.listener.buffered_response import header_lines
from proxy.receipt.request_parts import units_of
from proxy.receipt.server_timing import (
    MOST_BYTES,
    NAMELESS,
    closing_comment,
    timing_line,
    timing_value,
    wants_last,
)
from proxy.request_outcomes import CacheUse, Receipt
from proxy.request_record import RequestRecord
from tests.proxy.receipt.kit import START, attempt, marks, record, streamed, timings, told, whole, with_fields
from tests.proxy.receipt.test_request_parts import records
from tests.support.looped import looped

END = START + 1.0
LONGEST = 1e9
"""The longest time in a header, in seconds: thirty years."""


def late_success(count: int, name: str = "vendor/model/deployment") -> RequestRecord:
    """Return a request of which the last of many deployments succeeds."""
    tried = [attempt(0.1 * number, 0.1 * number + 0.1, "rate_limited", name) for number in range(count)]
    return record(*tried, attempt(0.1 * count, 0.1 * count + 0.1))


@looped("made", [whole(), streamed()], ids=str)
@looped("connect", [0.0, 0.2, 90.0])
def test_the_short_way_to_the_header_says_the_same(made: RequestRecord, connect: float) -> None:
    made.attempts[0].connect = connect
    if made.first_content is not None:
        made.attempts[0].finished = 0.0
    end = made.first_content or END
    value = timing_line(made, end).removeprefix("Server-Timing: ").removesuffix("\r\n")
    general = [each for each in timings(timing_value(made, end)) if each.milliseconds or each.name == "vendor"]
    assert [each for each in timings(value) if each.milliseconds or each.name == "vendor"] == general


def test_a_failed_attempt_says_where_and_why() -> None:
    first, second = attempt(0, 0.25, "timeout", "openai/gpt/eu"), attempt(0.3, 0.4, "connect", "openai/gpt/us")
    first.phase = "first_event"
    made = with_fields(record(first, second, attempt(0.5, 0.9)), marks=marks(paused=0.15))
    assert timing_value(made, END) == (
        'gateway;dur=100.0, attempt1;dur=250.0;desc="openai/gpt/eu first_event", '
        'attempt2;dur=100.0;desc="openai/gpt/us connect", backoff;dur=150.0, vendor;dur=400.0'
    )


def test_what_the_cache_did_is_a_word() -> None:
    made = with_fields(record(), cache=CacheUse("hit"), marks=marks(cached=0.4))
    assert timing_value(made, END) == "gateway;dur=600.0, cache;dur=400.0;desc=hit"


def test_only_names_that_the_team_may_ask_for_are_told() -> None:
    made = record(attempt(0, 0.1, "server", "a/m/x"), attempt(0.1, 0.2, "server", "b/m/y"), attempt(0.2, 0.9))
    made.receipt = Receipt(lambda name: name in ("a/m", "b/m/z"), last=True)
    assert [each.text for each in timings(timing_value(made, END))] == ["", "a/m/x server", "server", ""]
    made.receipt = Receipt(lambda name: name == "b/m/y", last=True)
    assert [each.text for each in timings(timing_value(made, END))] == ["", "server", "b/m/y server", ""]
    made.receipt = NAMELESS
    assert [each.text for each in timings(timing_value(made, END))] == ["", "server", "server", ""]


@looped("text", ['a"b', "a\\", '"', '\\"', "ü, \u2028\r\nX: 1", "\0\x7f\t", "a;dur=1, b"], ids=ascii)
def test_no_text_ends_its_quoted_string_or_the_header(text: str) -> None:
    made = record(attempt(0, 0.1, "server", f"v/{text}/d"), attempt(0.1, 0.9))
    line = timing_line(made, END)
    assert line.isascii()
    assert line.count("\r\n") == 1
    header_lines({"server-timing": timing_value(made, END)})
    expected = "".join(char if " " <= char <= "~" else "?" for char in text)
    assert [each.text for each in timings(timing_value(made, END))][1] == f"v/{expected}/d server"


@looped("count", [0, 1, 2, 3, 5, 8, 40])
@looped("name", ["v/m/d", "vendor/accounts/of/a/model/deployment", 'vendor/"""""""""""""""""""/d'])
def test_many_attempts_are_told_together_in_the_middle(count: int, name: str) -> None:
    made = late_success(count, name)
    value = timing_value(made, START + 0.1 * count + 0.1)
    assert len(f"Server-Timing: {value}\r\n") < MOST_BYTES
    shown = [each for each in timings(value) if each.name.startswith("attempt")]
    more = [int(each.text.removesuffix(" more")) for each in shown if each.name == "attempts"]
    assert len(shown) - len(more) + sum(more) == count
    assert sum(each.milliseconds for each in shown) == pytest.approx(100 * count, abs=0.02 * count)
    if more:
        assert shown[0].name == "attempt1" or len(shown) == 1
        assert shown[-1].name in (f"attempt{count}", shown[0].name, "attempts")


def test_of_a_name_that_is_too_long_the_failure_is_told_alone() -> None:
    made = record(attempt(0, 0.1, "server", f"v/{'m' * 400}/d"), attempt(0.1, 0.9))
    assert [each.text for each in timings(timing_value(made, END))][1] == "server"


@given(records(), st.text(max_size=80), st.floats(0, LONGEST))
def test_the_header_is_short_and_adds_up_whatever_happened(
    case: tuple[RequestRecord, float], name: str, more: float
) -> None:
    made, end = case
    for each in made.attempts:
        each.name = f"v/{name}/d"
    line = timing_line(made, end + more)
    assert len(line) < MOST_BYTES
    assert line.isascii()
    value = line.removeprefix("Server-Timing: ").removesuffix("\r\n")
    total = units_of(end + more - made.started) / 100
    assert sum(told(value).values()) == pytest.approx(total, abs=0.02 * (len(made.attempts) + 9))


def test_the_comment_at_the_end_has_what_the_head_could_not_have() -> None:
    made = streamed(usage=Usage(3, 30), marks=marks(stalls=2, stalled=2.5))
    assert closing_comment(made, END) == (
        b": server-timing: gateway;dur=60.0, vendor;dur=440.0, stream;dur=500.0\n"
        b": x-dragoman-receipt: total=1000.0, first_content=500.0, tokens_per_second=60.0, stalls=2, stalled=2500.0\n\n"
    )
    assert closing_comment(record(), END).endswith(b": x-dragoman-receipt: total=1000.0\n\n")


def test_the_header_asks_by_one_word() -> None:
    assert wants_last(" Last ")
    for word in ("", "first", "last, first", "l" * 9000):
        with pytest.raises(GatewayError) as refused:
            wants_last(word)
        assert refused.value.facts.message == "'x-dragoman-receipt' must be last."


def test_a_short_time_is_written_as_any_other() -> None:
    for own in range(1100):
        made = record(attempt(0, 0))
        made.attempts[0].finished = START
        assert made.attempts[0].finished
        end = START + own / 100_000
        assert told(timing_line(made, end)[15:-2])["gateway"] == own / 100
