"""From readings to figures."""

import pytest

from tests.bench.report import HEADER, Reading, Row, cheapest, table


def test_a_reading_is_divided_by_what_it_bought() -> None:
    reading = Reading(cpu=0.9, wall=2.0, count=10_000)
    assert reading.microseconds == pytest.approx(90)
    assert reading.rate == pytest.approx(5000)


def test_the_cheapest_round_counts_whatever_its_size() -> None:
    dear, cheap = Reading(0.1, 1, 1000), Reading(0.5, 1, 10_000)
    assert cheapest([dear, cheap]) is cheap


def test_a_row_shows_both_and_their_ratio() -> None:
    row = Row("request", [Reading(0.9, 2, 10_000), Reading(1.8, 2, 10_000)], [Reading(0.2, 1, 10_000)])
    assert row.line().split() == ["request", "90.0", "20.0", "4.50", "5000", "10000"]


def test_a_row_without_nginx_shows_no_ratio() -> None:
    assert Row("request", [Reading(0.9, 2, 10_000)], []).line().split() == ["request", "90.0", "-", "-", "5000", "-"]


def test_the_columns_stand_under_their_heads() -> None:
    head, line = table([Row("streamed chunk", [Reading(1, 1, 1)], [Reading(1, 1, 1)])]).splitlines()
    assert head == HEADER
    assert len(line) == len(head)
