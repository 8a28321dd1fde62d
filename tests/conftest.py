"""The summary lines of a run, and fixtures for every test; a fixture of only one folder does not belong here.

The lines are printed here because the process that prints them may have run no test, and so has not loaded any folder's
conftest.py: pytest-xdist collects only in its workers.
"""

# Records are frozen when they are defined, so this import precedes every import that defines one.
import tests.support.frozen_records

# isort: split
# It names modules whose assertions are rewritten, so this import precedes every import of them.
import tests.faults.conftest  # noqa: F401

# isort: split
import gc
from collections.abc import Generator
from pathlib import Path
from typing import Protocol

import pytest

from tests.conformance.conftest import summary_lines as matrix_lines
from tests.contracts.conftest import summary_lines as contract_lines
from tests.support import forked_program
from tests.support.collection import FilesTogether, import_share, keep_for_good, longest_first
from tests.support.examples import load_profile
from tests.support.looped import selection
from tests.support.nightly import run
from tests.support.quick_tests import SCOPES, SMOKE, NoSockets, has_tests_in, in_scope, is_quick, scope_of
from tests.support.summary_counts import counts, hand_over, take_over


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--nightly`, which also runs the tests that are too slow or too large for every change."""
    parser.addoption("--nightly", action="store_true", help="run the tests marked nightly too")
    parser.addoption("--scope", choices=SCOPES, help="quick if neither a path nor a name is given, otherwise all")
    parser.addoption("--row", default="", metavar="TEXT", help="run only the rows of loops with TEXT in their names")


NO_SOCKETS = NoSockets()


def pytest_configure(config: pytest.Config) -> None:
    """Set the options of the run. The workers of pytest-xdist receive them with the other options."""
    config.option.scope = scope_of(config)
    selection.text = config.option.row
    run.nightly = config.option.nightly
    load_profile()
    NO_SOCKETS.install()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Ignore files without tests in the scope, so that they are not imported."""
    is_test = collection_path.name.startswith("test_") and collection_path.suffix == ".py"
    return True if is_test and not has_tests_in(config.option.scope, collection_path) else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Apply the rule for quick tests, no sockets, to a quick test that is not marked `smoke`."""
    if item.get_closest_marker(SMOKE) or not is_quick(item):
        return (yield)
    with NO_SOCKETS.in_test(item.nodeid):
        return (yield)


def pytest_collection(session: pytest.Session) -> None:
    """Disable the garbage collector during the collection, which creates no objects that could be freed."""
    gc.disable()
    import_share(session.config)


def pytest_collection_finish() -> None:
    """Enable the garbage collector for the objects that the tests create."""
    keep_for_good()
    gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests of other scopes and of the nightly run, and sort the longest tests first."""
    chosen = [item for item in items if in_scope(config.option.scope, item)]
    if not config.option.nightly:
        chosen = [item for item in chosen if not item.get_closest_marker("nightly")]
    left = set(chosen)
    config.hook.pytest_deselected(items=[item for item in items if item not in left])
    items[:] = chosen
    longest_first(items)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> FilesTogether | None:
    """Assign files that share expensive fixtures to the same worker."""
    return FilesTogether(config, log) if config.getvalue("dist") == "loadfile" else None


class Worker(Protocol):
    """A pytest-xdist worker that has ended. A worker that crashed has no output."""

    config: pytest.Config


def pytest_sessionstart() -> None:
    """Start the helper that forks programs of this interpreter cheaply."""
    forked_program.fork_programs()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Send the worker's counts to the controller."""
    forked_program.end()
    hand_over(session.config)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Worker) -> None:
    """Add the counts of a worker."""
    take_over(node.config, getattr(node, "workeroutput", {}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the summary lines of each folder, even in a quiet run."""
    for summary_lines in (contract_lines, matrix_lines):
        for line in summary_lines(counts(config)):
            terminalreporter.write_line(line)
