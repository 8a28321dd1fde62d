"""From readings to figures."""

import pytest

from tests.bench.readings import Reading, cheapest


def test_a_reading_is_divided_by_what_it_bought() -> None:
    reading = Reading(cpu=0.9, wall=2.0, count=10_000)
    assert reading.microseconds == pytest.approx(90)
    assert reading.rate == pytest.approx(5000)


def test_the_cheapest_round_counts_whatever_its_size() -> None:
    dear, cheap = Reading(0.1, 1, 1000), Reading(0.5, 1, 10_000)
    assert cheapest([dear, cheap]) is cheap
