"""Workers import disjoint shares before they collect, and the longest files come first."""

import gc
import importlib
import re
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from tests.support.collection import (
    LONGEST,
    MATRIX,
    ROOT,
    SHARERS,
    files_of,
    import_share,
    keep_for_good,
    longest_first,
    share,
    unit_of,
)
from tests.support.looped import looped

FILES = [Path(f"test_{number}.py") for number in range(10)]


def asked_for(*arguments: str, **attributes: object) -> pytest.Config:
    """Return the configuration of a run from the root."""
    invocation = SimpleNamespace(dir=ROOT)
    option = SimpleNamespace(scope="all")
    config = SimpleNamespace(invocation_params=invocation, args=[*arguments], option=option, **attributes)
    return cast(pytest.Config, config)


def item(nodeid: str) -> pytest.Item:
    return cast(pytest.Item, SimpleNamespace(nodeid=nodeid))


@looped("workers", [1, 3, 12])
def test_the_shares_are_all_files_and_each_is_in_one(workers: int) -> None:
    shares = [share(reversed(FILES), number, workers) for number in range(workers)]
    assert sorted(path for each in shares for path in each) == FILES


def test_what_was_asked_for_is_what_is_imported() -> None:
    own = Path(__file__).resolve()
    assert files_of(asked_for("tests/support/test_collection.py::test_nothing")) == {own}
    assert files_of(asked_for("tests/support")) == {*own.parent.glob("test_*.py")}


def test_a_quick_run_imports_no_file_without_quick_tests() -> None:
    config = asked_for("tests/e2e")
    config.option.scope = "quick"
    assert files_of(config) == {ROOT / "tests/e2e/test_litellm_migration.py", ROOT / "tests/e2e/test_smoke.py"}


def test_a_worker_imports_its_share_alone_and_leaves_errors_to_the_collection(monkeypatch: pytest.MonkeyPatch) -> None:
    imported: list[str] = []

    def broken(name: str) -> None:
        imported.append(name)
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", broken)
    import_share(asked_for("tests/support", workerinput={"workerid": "gw1", "workercount": 2}))
    names = [f"tests.support.{path.stem}" for path in sorted(Path(__file__).resolve().parent.glob("test_*.py"))]
    assert imported == names[1::2]


def test_a_process_without_workers_imports_nothing_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib, "import_module", pytest.fail)
    import_share(asked_for("tests/support"))


@pytest.mark.parametrize("fixture", SHARERS)
def test_the_files_with_a_dear_fixture_are_one_unit_of_work(fixture: str) -> None:
    asked = "(clients|sdks)" if fixture == "clients" else fixture
    needs = re.compile(rf"^(async )?def test_\w+\([^)]*\b{asked}:|^def \w+\([^)]*\b{asked}: Call", re.MULTILINE)
    texts = {str(path.relative_to(ROOT)): path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py")}
    assert {name for name, text in texts.items() if needs.search(text)} == set(SHARERS[fixture])
    assert {unit_of(f"{name}::test_it[a]") for name in SHARERS[fixture]} == {fixture}
    assert unit_of("tests/test_other.py::test_it") == "tests/test_other.py"


def test_what_the_judges_judge_is_sent_where_they_are() -> None:
    assert {unit_of(f"{name}::test_it") for name in MATRIX} == {"judges"}
    assert [name for name in MATRIX if not (ROOT / name).is_file()] == []


def test_the_longest_files_come_first_and_the_others_stay_in_their_order() -> None:
    items = [item(f"{name}::test_it") for name in ("tests/b.py", LONGEST[1], "tests/a.py", LONGEST[0], LONGEST[1])]
    longest_first(items)
    names = [each.nodeid.partition("::")[0] for each in items]
    assert names == [LONGEST[0], LONGEST[1], LONGEST[1], "tests/b.py", "tests/a.py"]


def test_every_long_file_exists() -> None:
    assert [name for name in LONGEST if not (ROOT / name).is_file()] == []


def test_what_is_kept_for_good_is_out_of_the_collector_s_sight() -> None:
    mine: list[object] = [[]]
    assert any(each is mine for each in gc.get_objects())
    keep_for_good()
    assert not any(each is mine for each in gc.get_objects())
