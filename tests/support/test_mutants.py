"""The result of a mutant's tests is reported, and nothing of a mutant remains."""

import importlib.util
from pathlib import Path

import pytest

from tests.support import mutants
from tests.support.looped import looped
from tests.support.mutants import Outcome, mutants_in, mutated, ordered_tests, run, run_tests
from tests.support.mutated_source import Mutant

SOURCE = "def least(a, b):\n    return a if a < b else b\n"
TESTS = "from room.least import least\n\ndef test_least():\n    assert least(1, 2) == 1\n    assert least(2, 1) == 1\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    files = {
        "pytest.ini": "[pytest]\n",
        "room/least.py": SOURCE,
        "tests/room/test_least.py": TESTS,
        "tests/room/test_a.py": "def test_a(): pass\n",
        "tests/room/test_least_of_many.py": "def test_many(): pass\n",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path


def test_the_mirror_comes_first_then_what_is_named_after_it(tree: Path) -> None:
    files = ["tests/room/test_least.py", "tests/room/test_least_of_many.py", "tests/room/test_a.py"]
    assert ordered_tests(tree, "room/least.py", []) == files
    assert ordered_tests(tree, "room/least.py", files[1:2]) == [files[0], files[2]]


def test_a_dialect_has_the_suites_over_all_dialects_too(tmp_path: Path) -> None:
    folder = tmp_path / "tests/providers/dialects"
    for name in ("one/test_answer.py", "two/test_answer.py", "test_all.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    assert ordered_tests(tmp_path, "providers/dialects/one/answer.py", []) == [
        "tests/providers/dialects/one/test_answer.py",
        "tests/providers/dialects/test_all.py",
    ]


def test_each_mutant_gets_a_line_and_its_file_is_restored(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tree, "room", mutants_in(tree, "room"), []) == 0
    test = "tests/room/test_least.py::test_least"
    assert capsys.readouterr().out.splitlines() == [
        f"room/least.py:2 return: return a if a < b else b -> return None  caught  {test}",
        "room/least.py:2 comparison: a < b -> (a <= b)  survived  ",
        f"room/least.py:2 comparison: a < b -> (a >= b)  caught  {test}",
        f"room/least.py:2 condition: a < b -> False  caught  {test}",
        f"room/least.py:2 condition: a < b -> True  caught  {test}",
        "room: 4 of 5 mutants caught",
    ]
    assert (tree / "room/least.py").read_text("utf-8") == SOURCE


def test_tests_that_take_too_long_are_ended(tree: Path) -> None:
    (tree / "tests/room/test_a.py").write_text("import time\n\ndef test_a(): time.sleep(60)\n", encoding="utf-8")
    assert run_tests(tree, ["tests/room/test_a.py"], longest=0.1) == Outcome("timeout")


def test_a_file_that_cannot_be_collected_is_caught(tree: Path) -> None:
    (tree / "tests/room/test_a.py").write_text("import nowhere\n", encoding="utf-8")
    assert run_tests(tree, ["tests/room/test_a.py"]) == Outcome("caught", "tests/room/test_a.py")
    assert run_tests(tree, ["tests/room/test_none.py"]) == Outcome("caught", "pytest ended with 4")


@looped("verdict", ["caught", "timeout"])
def test_no_mutant_is_tried_if_the_tests_fail_without_any(verdict: str) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(mutants, "run_tests", lambda tree, files: Outcome(verdict))  # type: ignore[arg-type]
        assert run(Path("nowhere"), "room", [], []) == 1


def broken_off(tree: Path, mutant: Mutant, compiled: Path) -> None:
    with mutated(tree, mutant):
        assert (tree / mutant.file).read_text("utf-8") == "def least(a, b):\n    return None\n"
        assert not compiled.exists()
        compiled.touch()
        raise KeyboardInterrupt


def test_a_file_is_restored_whatever_is_raised(tree: Path) -> None:
    mutant = mutants_in(tree, "room")[0]
    compiled = Path(importlib.util.cache_from_source(str(tree / mutant.file)))
    compiled.parent.mkdir()
    compiled.touch()
    with pytest.raises(KeyboardInterrupt):
        broken_off(tree, mutant, compiled)
    assert (tree / mutant.file).read_text("utf-8") == SOURCE
    assert not compiled.exists()
