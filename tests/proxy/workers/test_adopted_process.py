"""Processes whose parents have ended are adopted on request, waited for and killed."""

import asyncio
import errno
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from proxy.workers import adopted_process as adopted_module
from proxy.workers.adopted_process import AdoptedProcess, adopting, can_adopt
from tests.bench.cpu import parse_stat
from tests.support.waiting import until


def orphan(script: str) -> int:
    """Return the process of a shell script whose parent has ended."""
    command = ["sh", "-c", f"({script}) > /dev/null 2>&1 & echo $!"]
    return int(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)


def adopted(script: str) -> int:
    with adopting():
        return orphan(script)


def parent(pid: int) -> int:
    return parse_stat(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")).parent


@pytest.mark.smoke
async def test_its_exit_status_is_known_even_where_it_ended_before_it_was_waited_for() -> None:
    pid = adopted("sleep 0.2; exit 3")
    await until(lambda: state(pid) == "Z")
    process = AdoptedProcess(pid)
    assert await process.wait() == 3
    assert (process.pid, process.returncode) == (pid, 3)
    with pytest.raises(FileNotFoundError):
        state(pid)


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(") ")[2][0]


@pytest.mark.smoke
async def test_it_is_killed_once_and_never_after_its_end() -> None:
    process = AdoptedProcess(adopted("sleep 60"))
    assert parent(process.pid) == os.getpid()
    assert process.returncode is None
    process.kill()
    assert await process.wait() == -signal.SIGKILL
    process.kill()
    assert process.returncode == -signal.SIGKILL


async def test_whoever_stops_waiting_takes_the_status_from_nobody() -> None:
    process = AdoptedProcess(adopted("sleep 0.2; exit 4"))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(process.wait(), 0.01)
    assert await process.wait() == 4


async def test_where_the_system_reaps_children_by_itself_the_end_is_noticed_without_a_status() -> None:
    with ignoring_ends():
        process = AdoptedProcess(adopted("sleep 0.2; exit 4"))
        assert await process.wait() == 255


@contextmanager
def ignoring_ends() -> Iterator[None]:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_nobody_is_adopted_outside_of_the_block() -> None:
    pid = orphan("sleep 60")
    try:
        assert parent(pid) != os.getpid()
    finally:
        os.kill(pid, signal.SIGKILL)


def forbidden(*_: object) -> int:
    raise OSError(errno.EPERM, "forbidden")


@pytest.mark.parametrize("place", ["os.pidfd_open", "signal.pidfd_send_signal"])
def test_a_sandbox_that_forbids_a_call_is_one_without_adoption(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert can_adopt()
    monkeypatch.setattr(place, forbidden)
    assert not can_adopt()


class OtherSystem:
    """A C library without Linux's functions."""


def test_another_system_is_one_without_adoption(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adopted_module, "_LIBC", OtherSystem())
    assert not can_adopt()


class Refusing:
    """A C library whose call fails."""

    prctl: Callable[..., int] = staticmethod(lambda *_: -1)


def test_a_kernel_that_refuses_is_one_without_adoption(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adopted_module, "_LIBC", Refusing())
    assert not can_adopt()
