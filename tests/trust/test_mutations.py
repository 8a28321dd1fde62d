"""A sabotage is red only if the figure is bad, not if anything else goes wrong."""

from dataclasses import replace
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.trust import mutations
from tests.trust.board import Line
from tests.trust.figure_types import Figure, Sabotage, Tests
from tests.trust.mutations import last_word, mutate, name_of

SABOTAGE = Sabotage("gate.py", "shut = True", "shut = False")
FIGURE = Figure("R98", "a figure", "a target", "C", Tests(("tests",)), SABOTAGE)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "gate.py").write_text("shut = True\nopen = not shut\n", "utf-8")
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


def test_each_sabotage_is_done_to_a_copy_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bad = replace(FIGURE, number="R97")
    told = {
        "R98/C,R98/C,R97/C": "\n".join([Line(FIGURE, "good", "").text(), Line(bad, "BAD", "").text()]),
        "R98/C": Line(FIGURE, "BAD", "").text(),
    }
    seen: list[str] = []

    def copied(target: Path) -> None:
        target.mkdir()
        (target / "gate.py").write_text("shut = True", "utf-8")

    def board(where: Path, only: str, *arguments: str) -> "CompletedProcess[str]":
        seen.append((where / "gate.py").read_text("utf-8"))
        return CompletedProcess((), 1, told[only], "")

    monkeypatch.setattr(mutations, "copy_tree", copied)
    monkeypatch.setattr(mutations, "board", board)
    found = list(mutations.mutations([FIGURE, FIGURE, bad], tmp_path))
    assert [mutation.verdict for mutation in found] == ["red", "red", "BROKEN"]
    assert seen == ["shut = True", "shut = False", "shut = False"]
    assert name_of(found[-1].figure) == "R97/C"


def test_the_failure_that_is_shown_is_the_first_that_the_board_names() -> None:
    assert last_word("R98  C  BAD\n  R98 tests.a::test_b: no\n  R98 tests.a::test_c: no\n0 good") == (
        "R98 tests.a::test_b: no"
    )
    assert last_word("Traceback\n  no such file\n") == "no such file"
    assert last_word("") == "nothing was said"
