"""The tables of the bench."""

from tests.bench.tables import table


def test_the_columns_stand_under_their_heads() -> None:
    lines = table(["name", "value"], [["a", "1"], ["longer", "1,000"]])
    assert lines == ["| name   | value |", "| :----- | ----: |", "| a      |     1 |", "| longer | 1,000 |"]
