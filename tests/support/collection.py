"""How a process of the suite collects its tests cheaply, and the order in which the tests run.

With pytest-xdist each worker collects every test. In a fresh clone most of that time is pytest's rewriting of
assertions, which pytest caches beside the sources. So each worker first imports its own share of the files, and finds
the other files rewritten by the other workers. The objects that collecting makes live as long as the process, so the
garbage collector need not look at them again. One pass of the garbage collector over 33,000 tests takes a third of a
second. That is longer than most of the tests that count leftover objects.
"""

import gc
import importlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

from tests.support.quick_tests import has_tests_in

ROOT = Path(__file__).resolve().parents[2]

LONGEST: Sequence[str] = (
    "tests/e2e/accounting/test_scopes.py",
    "tests/faults/test_faults.py",
    "tests/security/test_event_loop_share.py",
    "tests/security/test_stall.py",
    "tests/conformance/test_matrix.py",
    "tests/contracts/test_sent_bodies.py",
    "tests/e2e/agents/test_agents.py",
    "tests/e2e/agents/test_sdks.py",
    "tests/e2e/agents/test_coding_agents.py",
    "tests/e2e/test_sdk_failures.py",
    "tests/trust/test_full_disk.py",
    "tests/trust/test_load.py",
    "tests/security/test_costly_requests.py",
    "tests/proxy/http_client/test_differential.py",
    "tests/e2e/test_sdk_limits.py",
    "tests/e2e/accounting/test_away.py",
    "tests/e2e/accounting/test_together.py",
    "tests/e2e/accounting/test_kills.py",
    "tests/proxy/cli/test_serve_command.py",
    "tests/proxy/workers/test_restart_workers.py",
    "tests/faults/test_failover.py",
    "tests/trust/test_load_capacity.py",
    "tests/proxy/relay/test_relayed_runs.py",
    "tests/security/test_work_grows_linearly.py",
)
"""The files that take more than twenty seconds, then the longest quick ones. One worker runs a whole file. If it
started late, it would still run when the other workers are done."""

SHARERS: Mapping[str, Sequence[str]] = {
    "judges": (
        "tests/conformance/test_ten_vendors.py",
        "tests/contracts/test_hosted_tools.py",
        "tests/contracts/test_judged_fixtures.py",
        "tests/contracts/test_native_bodies.py",
        "tests/contracts/test_responses_come_back.py",
        "tests/contracts/test_sdk_judges.py",
        "tests/contracts/test_sent_bodies.py",
        "tests/contracts/test_task_bodies.py",
    ),
    "clients": (
        "tests/e2e/clients/test_drivers.py",
        "tests/e2e/test_engine.py",
        "tests/e2e/test_sdk_failures.py",
        "tests/e2e/test_sdk_keep_alives.py",
        "tests/e2e/test_sdk_limits.py",
        "tests/e2e/test_sdk_receipts.py",
        "tests/e2e/test_sdks_embeddings.py",
        "tests/e2e/test_sdks_emulated.py",
        "tests/e2e/test_sdks_mock.py",
    ),
}
"""The files of each fixture whose processes load the SDKs of all vendors, which takes 20 s of CPU. One worker runs all
files of a fixture, because any other worker would have to create the fixture again."""

MATRIX: Sequence[str] = ("tests/conformance/test_advisory.py", "tests/conformance/test_matrix.py")
"""The files that send the judges' cases through a gateway. They run in the worker of the judges, which then need not
send the cases again."""

_FIXTURE_OF: Mapping[str, str] = {
    **{file: fixture for fixture, files in SHARERS.items() for file in files},
    **dict.fromkeys(MATRIX, "judges"),
}


class FilesTogether(LoadFileScheduling):  # type: ignore[misc]
    """A scheduler that gives a whole file to one worker, and all files of one fixture in SHARERS to the same worker."""

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)


def unit_of(nodeid: str) -> str:
    """Return the fixture whose files stay together, or the file of a test."""
    file = nodeid.partition("::")[0]
    return _FIXTURE_OF.get(file, file)


def share(files: Iterable[Path], number: int, workers: int) -> list[Path]:
    """Return the files that worker `number` of `workers` imports first."""
    return sorted(files)[number::workers]


def files_of(config: pytest.Config) -> set[Path]:
    """Return the files that are going to be collected."""
    named = [(config.invocation_params.dir / argument.split("::")[0]).resolve() for argument in config.args]
    files = {found for path in named for found in (path.rglob("test_*.py") if path.is_dir() else [path])}
    return {path for path in files if has_tests_in(config.option.scope, path)}


def import_share(config: pytest.Config) -> None:
    """Import a worker's share of the files before it collects all of them. Do nothing if the run has no workers."""
    worker = getattr(config, "workerinput", None)
    if worker is None:
        return
    for path in share(files_of(config), int(worker["workerid"].removeprefix("gw")), worker["workercount"]):
        # Errors of a file are reported when it is collected, which imports it again.
        with suppress(Exception, pytest.skip.Exception):
            importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))


def longest_first(items: list[pytest.Item]) -> None:
    """Put the tests of the longest files before all others, which stay in their order."""
    places = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.nodeid.partition("::")[0], len(places)))


def keep_for_good() -> None:
    """Exclude all existing objects from garbage collection."""
    gc.collect()
    gc.freeze()
