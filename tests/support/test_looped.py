"""A loop runs every row, names the rows that fail, and runs only the selected rows if some are selected."""

import asyncio

import pytest

from tests.support.looped import looped, selection

Failed = pytest.RaisesGroup


def test_every_row_is_run_and_the_failed_ones_are_named() -> None:
    seen: list[int] = []

    @looped("number", [1, 2, pytest.param(3, id="three"), 4])
    def test(number: int) -> None:
        seen.append(number)
        assert number not in (2, 3)

    with Failed(AssertionError, AssertionError, match="2 of 4 rows failed: 2, three") as caught:
        test()
    assert seen == [1, 2, 3, 4]
    assert [error.__notes__ for error in caught.value.exceptions] == [["row: 2"], ["row: three"]]


def test_a_coroutine_is_awaited_for_each_row_with_its_fixtures() -> None:
    @looped(("a", "b"), [("x", 1), ("y", 2)], ids=["first", "second"])
    async def test(fixture: list[int], a: str, b: int) -> None:
        await asyncio.sleep(0)
        fixture.append(b)
        assert a == "x"

    found: list[int] = []
    with Failed(AssertionError, match="1 of 2 rows failed: second"):
        asyncio.run(test(fixture=found))
    assert found == [1, 2]


def test_loops_within_loops_run_each_pair() -> None:
    seen = []

    @looped("a", [1, 2])
    @looped("b", "xy")
    def test(a: int, b: str) -> None:
        seen.append(f"{a}{b}")

    test()
    assert seen == ["1x", "1y", "2x", "2y"]


def test_rows_that_are_skipped_skip_the_test_once_all_rows_have_run() -> None:
    seen: list[int] = []

    @looped("a", [1, 2])
    def test(a: int) -> None:
        seen.append(a)
        if a == 1:
            pytest.skip("not here")

    with pytest.raises(pytest.skip.Exception, match="not here"):
        test()
    assert seen == [1, 2]


def test_a_failed_row_fails_a_test_with_skipped_rows() -> None:
    @looped("a", [1, 2])
    def test(a: int) -> None:
        if a == 1:
            pytest.skip("not here")
        raise AssertionError("wrong")

    with Failed(AssertionError, match="1 of 2 rows failed"):
        test()


def test_rows_are_chosen_by_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    @looped("a", ["one", "two"], ids=lambda value: f"row {value}")
    def test(a: str) -> None:
        seen.append(a)

    monkeypatch.setattr(selection, "text", "row tw")
    test()
    assert seen == ["two"]
    monkeypatch.setattr(selection, "text", "none")
    with pytest.raises(pytest.skip.Exception, match="no row has 'none' in its name"):
        test()


@pytest.mark.parametrize(
    ("names", "table", "message"),
    [
        ("a", [pytest.param(1, marks=pytest.mark.nightly)], "marks"),
        ("b", [1], "no argument b"),
        ("a", [], "no rows"),
    ],
)
def test_a_table_that_cannot_be_looped_is_refused(names: str, table: list[object], message: str) -> None:
    def test(a: int) -> None:
        """Accept a row."""

    with pytest.raises(ValueError, match=message):
        looped(names, table)(test)
