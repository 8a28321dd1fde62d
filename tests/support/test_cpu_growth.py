"""The comparison of CPU time, tested with work whose times are made up."""

from collections.abc import Callable, Iterator
from itertools import chain, repeat

import pytest

from tests.support.cpu_growth import ROUNDS, excess, growth


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The CPU time of the thread, as a list with one element."""
    now = [0.0]
    monkeypatch.setattr("time.thread_time", lambda: now[0])
    return now


def taking(clock: list[float], times: Iterator[float]) -> Callable[[], None]:
    """Return work that takes the next of `times` in each round."""

    def work() -> None:
        clock[0] += next(times)

    return work


def test_work_in_proportion_to_its_input_is_no_growth(clock: list[float]) -> None:
    assert growth(taking(clock, repeat(0.1)), taking(clock, repeat(0.4))) == ""


def test_work_that_takes_hardly_any_time_is_no_growth(clock: list[float]) -> None:
    assert growth(taking(clock, repeat(0.0)), taking(clock, repeat(0.02))) == ""


def test_work_that_is_quadratic_is_told(clock: list[float]) -> None:
    found = growth(taking(clock, repeat(0.1)), taking(clock, repeat(1.6)))
    assert found == "100.0 ms became 1600.0 ms for 4 times the input"


def test_rounds_that_were_disturbed_do_not_count(clock: list[float]) -> None:
    disturbed = chain(repeat(0.3, ROUNDS - 1), repeat(0.04))
    assert growth(taking(clock, repeat(0.01)), taking(clock, disturbed)) == ""


def test_a_disturbed_round_of_the_smaller_input_hides_no_growth(clock: list[float]) -> None:
    small = chain([9.0, 0.1], repeat(0.1))
    assert growth(taking(clock, small), taking(clock, repeat(1.6))) != ""


def test_much_work_is_not_measured_for_longer_than_it_is_worth(clock: list[float]) -> None:
    large = iter([100.0, 100.0])
    assert growth(taking(clock, repeat(1.0)), taking(clock, large)) != ""
    assert list(large) == []


def test_work_without_a_smaller_input_is_held_against_the_yardstick() -> None:
    assert excess(lambda: None, 1) == ""
    assert "times the measure" in excess(lambda: [number for number in range(10**6) if number % 3], 0.1)
