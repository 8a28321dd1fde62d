"""The process that loads the ledger, as its parent runs it: restarted if it ends, its state known, and ended last."""

import asyncio
import errno
import logging
import os
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import orjson
import pytest

from proxy.accounting import loader_process as module
from proxy.accounting.loader_process import LoaderProcess, loading, start_program
from proxy.ledger.journal import Journal
from proxy.ledger.journal_files import journal_files
from proxy.ledger.ledger_settings import LedgerSettings, LedgerState
from proxy.ledger.loading import STOP_TIMEOUT
from proxy.off_loop.child_process import Child
from tests.proxy.accounting.kit import ledger_threads, sums
from tests.proxy.kit.virtual_time import in_virtual_time
from tests.proxy.ledger.kit import record, sqlite
from tests.support.waiting import until

pytestmark = pytest.mark.processes


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FIRST_WAIT", 0.02)
    # The process runs at a low priority: on a busy machine its last steps take seconds.
    monkeypatch.setattr(module, "END_SLACK", 60.0)


class Starts:
    """Starts programs, some of which cannot be started. The started ones are in `children`."""

    def __init__(self, *failing: int) -> None:
        self.tries = 0
        self.children: list[Child] = []
        self._failing = failing

    async def __call__(self) -> Child:
        self.tries += 1
        if self.tries in self._failing:
            raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        self.children.append(await start_program())
        return self.children[-1]

    @property
    def pid(self) -> int:
        return self.children[-1].process.pid


def written(settings: LedgerSettings, count: int) -> None:
    journal = Journal(settings.journals)
    for _ in range(count):
        journal.append(record("search", 100))
    journal.close()


async def test_no_ledger_is_loaded_by_nobody() -> None:
    starts = Starts()
    async with loading(None, LedgerState(), "json", starts):
        await asyncio.sleep(0)
    assert starts.tries == 0


@pytest.mark.smoke
async def test_what_was_written_is_in_the_ledger_at_the_end_and_counted_and_nothing_is_left(tmp_path: Path) -> None:
    settings, state, starts, threads = sqlite(tmp_path), LedgerState(), Starts(), ledger_threads()
    async with loading(settings, state, "json", starts):
        written(settings, 7)
        await until(lambda: state.loaded == 7)
        assert state.loading
        assert ledger_threads() == threads
        written(settings, 5)
    assert state.loaded == 12
    assert sums(settings)[0] == 12
    assert journal_files(settings.journals) == []
    assert starts.children[0].process.returncode == 0
    with pytest.raises(ProcessLookupError):
        os.kill(starts.pid, 0)


async def test_one_that_is_killed_is_replaced_and_counts_on(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "dragoman")
    settings, state, starts = sqlite(tmp_path), LedgerState(), Starts(2)
    async with loading(settings, state, "json", starts):
        written(settings, 3)
        await until(lambda: state.loaded == 3)
        os.kill(starts.pid, signal.SIGKILL)
        await until(lambda: len(starts.children) == 2)
        assert "cannot be started: Resource temporarily unavailable" in (state.trouble or "")
        written(settings, 4)
        await until(lambda: state.loaded == 7 and state.trouble is None)
    assert sums(settings)[0] == 7
    assert state.load_errors == 2
    *troubles, again = caplog.messages
    assert ["ended on SIGKILL" in message for message in troubles] == [True, False]
    assert all(message.endswith(f"requests stay in the journals in {settings.journals}") for message in troubles)
    assert again.startswith("the ledger is loaded again, by process ")
    assert caplog.records[-1].levelname == "INFO"


async def test_a_machine_that_cannot_start_it_says_so_once_and_falls_behind(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LONGEST_WAIT", 0.05)
    settings, state, starts = sqlite(tmp_path), LedgerState(), Starts(*range(1, 1000))
    async with loading(settings, state, "json", starts):
        written(settings, 5)
        await until(lambda: starts.tries > 5)
        assert state.load_errors >= 5
        assert state.loading
        assert state.behind > 0
        assert state.journal_bytes == journal_files(settings.journals)[0].path.stat().st_size
        assert state.trouble == "the ledger's loader cannot be started: Resource temporarily unavailable"
    assert len(caplog.messages) == 2
    assert caplog.messages[1].endswith(f"the journals in {settings.journals} remain")
    async with loading(settings, state, "json"):
        pass
    assert sums(settings)[0] == 5


async def test_one_that_is_gone_at_the_end_is_started_once_more_for_what_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FIRST_WAIT", 60.0)
    settings, state, starts = sqlite(tmp_path), LedgerState(), Starts(1)
    async with loading(settings, state, "json", starts):
        written(settings, 5)
        await until(lambda: state.load_errors == 1)
    assert sums(settings)[0] == 5


async def test_one_that_is_stopped_is_killed_at_the_end_after_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "STOP_TIMEOUT", 0.05)
    monkeypatch.setattr(module, "END_SLACK", 0.05)
    settings, state, starts = sqlite(tmp_path), LedgerState(), Starts(2)
    async with loading(settings, state, "json", starts):
        await until(lambda: state.loading)
        os.kill(starts.pid, signal.SIGSTOP)
        written(settings, 5)
    assert [each.process.returncode for each in starts.children] == [-signal.SIGKILL]
    assert "remain" in caplog.messages[-1]
    assert len(journal_files(settings.journals)) == 1


@asynccontextmanager
async def running(loader: LoaderProcess) -> AsyncIterator["asyncio.Task[None]"]:
    async with asyncio.TaskGroup() as group:
        yield group.create_task(loader.run())


class Puppet:
    """A process that loads nothing. It reports when a test makes it, and ends only if it is killed or by `end`."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._ended = asyncio.Event()
        self._there: socket.socket | None = None

    async def started(self) -> Child:
        here, self._there = socket.socketpair()
        return Child(self, *await asyncio.open_unix_connection(sock=here))

    def report(self, state: LedgerState) -> None:
        assert self._there is not None
        self._there.sendall(orjson.dumps(state, option=orjson.OPT_APPEND_NEWLINE))

    def close(self) -> None:
        """Close the pipe of its reports."""
        assert self._there is not None
        self._there.close()

    def end(self) -> None:
        self.returncode = 0
        self._ended.set()

    async def wait(self) -> int:
        await self._ended.wait()
        assert self.returncode is not None
        return self.returncode

    def kill(self) -> None:
        self.close()
        self.returncode = -signal.SIGKILL
        self._ended.set()


@in_virtual_time
async def test_one_that_reports_nothing_is_killed_and_another_takes_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FIRST_WAIT", 0.0)
    monkeypatch.setattr(module, "END_SLACK", 3.0)
    puppets = [Puppet(1), Puppet(2)]
    starts = iter(puppets)
    settings, state, now = sqlite(Path("/nowhere")), LedgerState(), asyncio.get_running_loop().time
    async with running(LoaderProcess(settings, state, "json", lambda: next(starts).started())) as task:
        for loaded in range(1, 4):
            await asyncio.sleep(module.REPORT_TIMEOUT - 1)
            puppets[0].report(LedgerState(loaded=loaded))
        await asyncio.sleep(module.REPORT_TIMEOUT - 1)
        assert (state.loaded, state.trouble, puppets[0].returncode) == (3, None, None)
        await until(lambda: puppets[0].returncode is not None)
        silent = 4 * (module.REPORT_TIMEOUT - 1) + 1
        assert silent <= now() < silent + module.END_SLACK + 0.1
        assert state.trouble == "the ledger's loader (process 1) ended on SIGKILL"
        puppets[1].report(LedgerState(loaded=2))
        await until(lambda: state.loaded == 5 and state.trouble is None)
        task.cancel()
    assert [each.returncode for each in puppets] == [-signal.SIGKILL] * 2


@in_virtual_time
async def test_one_that_has_loaded_all_is_not_replaced_though_it_takes_most_of_its_time_to_end(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "END_SLACK", 3.0)
    puppet, state = Puppet(1), LedgerState()
    loader = LoaderProcess(sqlite(Path("/nowhere")), state, "json", puppet.started)
    async with running(loader):
        await until(lambda: loader.pid == 1)
        puppet.report(LedgerState(loaded=1))
        await until(lambda: state.loaded == 1)
        loader.end()
        puppet.close()
        await asyncio.sleep(STOP_TIMEOUT + module.END_SLACK - 1)
        puppet.end()
    assert (puppet.returncode, state.load_errors, caplog.messages) == (0, 0, [])


@in_virtual_time
async def test_one_that_has_loaded_all_and_does_not_end_is_killed_after_its_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "END_SLACK", 3.0)
    puppet, now = Puppet(1), asyncio.get_running_loop().time
    last = Puppet(2)
    starts = iter((puppet, last))
    loader = LoaderProcess(sqlite(Path("/nowhere")), LedgerState(), "json", lambda: next(starts).started())
    async with running(loader):
        await until(lambda: loader.pid == 1)
        loader.end()
        puppet.close()
        began = now()
        await until(lambda: loader.pid == 2)
        assert STOP_TIMEOUT + module.END_SLACK <= now() - began < STOP_TIMEOUT + module.END_SLACK + 0.1
        last.close()
        last.end()
    assert (puppet.returncode, last.returncode) == (-signal.SIGKILL, 0)


async def test_who_keeps_it_may_be_cancelled_and_leaves_no_process(tmp_path: Path) -> None:
    starts, state = Starts(), LedgerState()
    async with running(LoaderProcess(sqlite(tmp_path), state, "json", starts)) as task:
        await until(lambda: state.loading)
        task.cancel()
    assert starts.children[0].process.returncode == -signal.SIGKILL
