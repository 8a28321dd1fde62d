"""Months and their partitions."""

from proxy.ledger.postgres_schema import create_partition, month_after, month_of, partition
from tests.proxy.ledger.kit import NOON


def test_months_are_those_of_utc() -> None:
    assert month_of(NOON) == (2026, 11)
    assert month_of(NOON - 12 * 3_600_000) == (2026, 11)
    assert month_of(NOON - 12 * 3_600_000 - 1) == (2026, 10)
    assert (month_after((2026, 11)), month_after((2026, 12))) == ((2026, 12), (2027, 1))


def test_names_of_partitions_are_in_the_order_of_their_months() -> None:
    months = [(1970, 1), (2026, 9), (2026, 10), (2027, 1)]
    assert sorted(map(partition, months)) == [partition(month) for month in months]


def test_a_partition_holds_its_month() -> None:
    statement = create_partition((2026, 12))
    assert "dragoman.request_2026_12 " in statement
    assert "FROM ('2026-12-01 00:00:00+00') TO ('2027-01-01 00:00:00+00')" in statement
