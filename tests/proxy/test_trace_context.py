"""The contents of `traceparent` and `tracestate`, from any sender."""

import re

from hypothesis import given
from hypothesis import strategies as st

from proxy.trace_context import (
    MAX_FINISH_REASONS,
    MAX_STATE_CHARS,
    SAMPLED,
    SAMPLED_DIGITS,
    SampledTrace,
    SpanNotes,
    Trace,
    TraceParent,
    parse_parent,
    parse_state,
    sampling_bound,
)
from tests.support.looped import looped

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
VALID = f"00-{TRACE}-{SPAN}-01"
PARENT = TraceParent(TRACE, int(SPAN, 16), SAMPLED)


@looped(
    ("line", "flags"),
    [
        (VALID, 1),
        (f" {VALID}\t", 1),
        (f"00-{TRACE}-{SPAN}-00", 0),
        (f"00-{TRACE}-{SPAN}-ff", 3),
        (f"00-{TRACE}-{SPAN}-02", 2),
        (f"cc-{TRACE}-{SPAN}-01", 1),
        (f"01-{TRACE}-{SPAN}-01-what-a-later-version-adds", 1),
    ],
)
def test_a_valid_parent_is_followed_and_flags_that_are_not_known_are_left_out(line: str, flags: int) -> None:
    assert parse_parent([line]) == TraceParent(TRACE, PARENT.span_id, flags)


@looped(
    "lines",
    [
        [],
        [""],
        [VALID, VALID],
        [f"ff-{TRACE}-{SPAN}-01"],
        [f"00-{TRACE}-{SPAN}-01-more"],
        [f"01-{TRACE}-{SPAN}-01more"],
        [f"00-{'0' * 32}-{SPAN}-01"],
        [f"00-{TRACE}-{'0' * 16}-01"],
        [VALID.upper()],
        [f"00-{TRACE}-{SPAN}"],
        [f"00-{TRACE}-{SPAN}-1"],
        [f"00-{TRACE}-{SPAN}-01\n"],
        [f"0x-{TRACE}-{SPAN}-01"],
        [f"00-{TRACE[:-1]}é-{SPAN}-01"],
        [f"00-{TRACE[:-1]}٣-{SPAN}-01"],
        [f"01-{TRACE}-{SPAN}-01-{'x' * 10_000}"],
        ["\udcff" * 55],
    ],
)
def test_whatever_else_comes_begins_a_new_trace(lines: list[str]) -> None:
    assert parse_parent(lines) is None


@looped(
    ("lines", "state"),
    [
        (["congo=t61rcWkgMzE"], "congo=t61rcWkgMzE"),
        (["rojo=00f067, congo=t61", "tenant@system=a b"], "rojo=00f067,congo=t61,tenant@system=a b"),
        (["1a@sys=x,,"], "1a@sys=x"),
        ([f"a={'x' * 256}"], f"a={'x' * 256}"),
    ],
)
def test_a_valid_state_is_passed_on_as_one_line(lines: list[str], state: str) -> None:
    assert parse_state(lines) == state


@looped(
    "lines",
    [
        ["a=1,a=2"],
        ["A=1"],
        ["a"],
        ["a="],
        ["a=x=y"],
        ["a=\x00"],
        ["a=x\r\ninjected: yes"],
        ["a=é"],
        ["a=\udcff"],
        ["a=" + "x" * 257],
        [",".join(f"k{number}=v" for number in range(33))],
        [f"a={'x' * 200},b={'x' * 200},c={'x' * 200}"],
        ["=" * MAX_STATE_CHARS],
    ],
)
def test_a_state_that_is_not_valid_or_too_large_is_left_out(lines: list[str]) -> None:
    assert parse_state(lines) == ""


@given(st.lists(st.text(max_size=600), max_size=3), st.lists(st.text(max_size=600), max_size=40))
def test_no_headers_of_a_client_can_split_the_head_of_a_call(parents: list[str], states: list[str]) -> None:
    parent = parse_parent(parents) or PARENT
    trace = SampledTrace(parent.hex_id, 1, parent.span_id, parent.flags, parse_state(states))
    lines = trace.lines(1)
    assert re.fullmatch(r"traceparent: 00-[0-9a-f]{32}-0{15}2-0[0-3]\r\n(tracestate: [ -~]{3,512}\r\n)?", lines)


def test_each_attempt_has_a_span_of_its_own_and_the_answer_names_that_of_the_request() -> None:
    trace = SampledTrace(TRACE, 2**63, PARENT.span_id, 3)
    assert trace.lines(0) == f"traceparent: 00-{TRACE}-8000000000000000-03\r\n"
    assert trace.lines(2) == f"traceparent: 00-{TRACE}-8000000000000002-03\r\n"
    assert trace.text == f"00-{TRACE}-8000000000000000-03"
    assert (trace.hex_id, trace.line) == (TRACE, "")


def test_all_calls_of_a_request_that_is_not_sampled_have_one_line() -> None:
    trace = Trace(TRACE, f"traceparent: 00-{TRACE}-{SPAN}-02\r\n", "POST")
    assert trace.lines(0) == trace.lines(2) == trace.line


def test_finish_reasons_are_not_noted_without_end() -> None:
    notes = SpanNotes()
    for _ in range(MAX_FINISH_REASONS + 1):
        notes.ended("stop")
    assert notes.finish_reasons == ("stop",) * MAX_FINISH_REASONS


@looped(
    ("share", "first", "last", "all_of_them"),
    [(0.0, False, False, False), (0.5, True, False, False), (1.0, True, True, True)],
)
def test_the_lower_half_of_an_id_decides(share: float, first: bool, last: bool, all_of_them: bool) -> None:
    bound = sampling_bound(share)
    assert (f"{2**127:032x}"[-SAMPLED_DIGITS:] < bound) is first
    assert (f"{2**127 - 1:032x}"[-SAMPLED_DIGITS:] < bound) is last
    assert (("f" * 32)[-SAMPLED_DIGITS:] < bound) is all_of_them
