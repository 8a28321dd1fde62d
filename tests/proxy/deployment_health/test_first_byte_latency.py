"""The tries that wait for a first byte, the start of their waits, and the usual duration."""

from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.deployment_health.first_byte_latency import SETTLED, Awaited

SPAN = 5.0


def tracker_of(*times: float) -> Awaited:
    """Return a tracker whose tries, begun one a second, have taken `times` seconds to their first byte."""
    awaited = Awaited(SPAN)
    for second, taken in zip(count(), times):
        awaited.begin(second, float(second))
        awaited.answered(second, second + taken)
    return awaited


def test_nothing_is_usual_before_the_first_answer() -> None:
    awaited = Awaited(SPAN)
    awaited.begin("a", 0.0)
    assert (awaited.usual, awaited.tail, awaited.expected(1.0), len(awaited)) == (None, 0.0, 0.0, 1)


def test_the_first_time_is_taken_as_it_is() -> None:
    awaited = tracker_of(2.0)
    assert (awaited.usual, awaited.tail, len(awaited)) == (2.0, 2.0, 0)


def test_the_usual_time_follows_the_latest_ones() -> None:
    assert tracker_of(2.0, 4.0).usual == pytest.approx(2.2)
    assert tracker_of(2.0, *[4.0] * 60).usual == pytest.approx(4.0, rel=0.01)


def test_the_tail_settles_where_one_time_in_twenty_is_above() -> None:
    times = [(number * 7919 % 1000) / 1000 for number in range(4000)]
    assert tracker_of(*times).tail == pytest.approx(0.95, abs=0.05)


def test_the_tail_does_not_stick_at_nothing() -> None:
    assert tracker_of(0.0, *[1.0] * 100).tail > 0.9


def test_a_try_without_an_answer_says_nothing_of_the_usual_time() -> None:
    awaited = tracker_of(2.0)
    awaited.begin("a", 10.0)
    awaited.forget("a")
    assert (awaited.usual, awaited.tail, len(awaited), awaited.oldest()) == (2.0, 2.0, 0, None)


def test_the_oldest_is_the_one_that_waits_longest() -> None:
    awaited = Awaited(SPAN)
    for key, begun in (("a", 1.0), ("b", 2.0), ("c", 3.0)):
        awaited.begin(key, begun)
    awaited.answered("a", 4.0)
    assert awaited.oldest() == 2.0
    awaited.forget("b")
    assert awaited.oldest() == 3.0


@pytest.mark.parametrize("rate", [2, 10])
def test_as_many_are_expected_as_arrive_in_the_usual_wait(rate: int) -> None:
    awaited = tracker_of(3.0)
    for number in range(rate * 30):
        awaited.begin(f"b{number}", 100 + number / rate)
    assert awaited.expected(130.0) == pytest.approx(3.0 * rate, rel=0.1)


def test_arrivals_are_forgotten_after_two_spans() -> None:
    awaited = tracker_of(3.0)
    awaited.begin("a", 10.0)
    assert awaited.expected(10.0) > 0
    assert awaited.expected(10.0 + 2 * SPAN) == 0


@given(st.lists(st.floats(min_value=0, max_value=600), min_size=1, max_size=100))
def test_the_usual_time_lies_among_those_there_were(times: list[float]) -> None:
    usual = tracker_of(*times).usual
    assert usual is not None
    assert min(times) - 1e-6 <= usual <= max(times) + 1e-6


def test_the_tail_is_settled_after_fifty_times() -> None:
    assert not tracker_of(*[1.0] * (SETTLED - 1)).settled
    assert tracker_of(*[1.0] * SETTLED).settled


def test_a_wait_that_was_cut_off_counts_only_above_the_tail() -> None:
    awaited = tracker_of(2.0)
    awaited.begin("short", 10.0)
    awaited.cut_off("short", 11.0)
    assert (awaited.usual, awaited.tail, len(awaited)) == (2.0, 2.0, 0)
    awaited.begin("long", 20.0)
    awaited.cut_off("long", 23.0)
    assert awaited.usual == pytest.approx(2.1)
    assert len(awaited) == 0
    assert awaited.tail > 2.0
    new = Awaited(SPAN)
    new.begin("first", 0.0)
    new.cut_off("first", 9.0)
    assert (new.usual, new.tail, len(new)) == (None, 0.0, 0)


def test_the_tail_stays_where_it_is_although_the_longest_waits_are_cut_off() -> None:
    """One try in fifty would take ten times as long. It is cut off at one and a half times the tail."""
    times = [10.0 if number % 50 == 0 else (number * 7919 % 1000) / 1000 for number in range(4000)]
    awaited = Awaited(SPAN)
    for number, taken in enumerate(times):
        awaited.begin(number, float(number))
        if (cut := 1.5 * awaited.tail) < taken and awaited.settled:
            awaited.cut_off(number, number + cut)
        else:
            awaited.answered(number, number + taken)
    assert awaited.tail == pytest.approx(tracker_of(*times).tail, rel=0.05)
