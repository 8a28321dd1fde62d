"""What counts as red: a bad figure, and nothing else that goes wrong."""

from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.trust import mutations
from tests.trust.board import Line
from tests.trust.figure import Figure, Sabotage, Tests
from tests.trust.mutations import last_word, mutate, name_of

SABOTAGE = Sabotage("gate.py", "shut = True", "shut = False")
FIGURE = Figure("R98", "a figure", "a target", "C", Tests(("tests",)), SABOTAGE)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tree of one file."""

    def copied(target: Path) -> None:
        (target / "gate.py").write_text("shut = True\nopen = not shut\n", "utf-8")

    monkeypatch.setattr(mutations, "copy_tree", copied)
    return tmp_path


@pytest.mark.parametrize(
    ("printed", "verdict"),
    [
        (Line(FIGURE, "BAD", "1 of 2").text(), "red"),
        (Line(FIGURE, "good", "2 of 2").text(), "GREEN"),
        (Line(FIGURE, "not run", "no test ran").text(), "BROKEN"),
        ("Traceback", "BROKEN"),
        ("", "BROKEN"),
    ],
)
def test_only_a_bad_figure_is_red(tree: Path, monkeypatch: pytest.MonkeyPatch, printed: str, verdict: str) -> None:
    asked: list[tuple[str, ...]] = []

    def board(where: Path, only: str, *arguments: str) -> "CompletedProcess[str]":
        asked.append((only, (where / "gate.py").read_text("utf-8").partition("\n")[0]))
        return CompletedProcess((), 1, printed, "")

    monkeypatch.setattr(mutations, "board", board)
    assert mutate(FIGURE, SABOTAGE, tree).verdict == verdict
    assert asked == [("R98/C", "shut = False")]


@pytest.mark.parametrize("old", ["shut", "nowhere"])
def test_a_sabotage_that_does_not_fit_once_is_broken(tree: Path, old: str) -> None:
    mutation = mutate(FIGURE, Sabotage("gate.py", old, "x"), tree)
    assert (mutation.verdict, old in mutation.told) == ("BROKEN", True)


def test_a_figure_that_was_bad_before_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutations, "sound", lambda figures: set[str]())
    (mutation,) = mutations.mutations([FIGURE])
    assert (mutation.verdict, name_of(mutation.figure)) == ("BROKEN", "R98/C")


def test_the_failure_that_is_shown_is_the_first_that_the_board_names() -> None:
    assert last_word("R98  C  BAD\n  R98 tests.a::test_b: no\n  R98 tests.a::test_c: no\n0 good") == (
        "R98 tests.a::test_b: no"
    )
    assert last_word("Traceback\n  no such file\n") == "no such file"
    assert last_word("") == "nothing was said"
