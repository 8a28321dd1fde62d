"""Child processes of this program: started with a socket, and ended with it."""

import os
import signal
import sys
from asyncio.subprocess import DEVNULL

import pytest

from proxy.off_loop import child_process
from proxy.off_loop.answer_check_process import RESPONSE_HEAD, CheckVerdict, check_request, response_head
from proxy.off_loop.child_process import end_child, start_child
from tests.proxy.kit.costly_constraints import check_of

pytestmark = pytest.mark.processes


@pytest.mark.smoke
async def test_a_child_speaks_through_its_socket_until_that_is_closed() -> None:
    child = await start_child("proxy.off_loop.answer_check_process", output=DEVNULL)
    child.writer.write(check_request(check_of({"type": "integer"}), "1"))
    assert response_head(await child.reader.readexactly(RESPONSE_HEAD)) == (CheckVerdict.KEEPS, 0)
    assert os.getsid(child.process.pid) == child.process.pid
    child.writer.close()
    assert await child.process.wait() == 0


async def test_a_child_that_cannot_be_started_leaves_nothing_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(OSError, match="No such file"):
        await start_child("proxy.off_loop.answer_check_process")
    assert len(os.listdir("/proc/self/fd")) <= before + 2  # the event loop's own child watcher may come in between


@pytest.mark.smoke
async def test_a_child_that_ends_by_itself_keeps_its_status(caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(20):
        child = await start_child("proxy.off_loop.answer_check_process", output=DEVNULL)
        os.kill(child.process.pid, signal.SIGTERM)
        assert await child.reader.read() == b""
        assert await end_child(child) == -signal.SIGTERM
    assert caplog.messages == []  # asyncio would report that it does not know the process


async def test_a_child_is_killed_where_it_does_not_end_with_its_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child_process, "END_TIMEOUT", 0.01)
    busy = await start_child("proxy.off_loop.answer_check_process", output=DEVNULL)
    assert await end_child(busy) == -signal.SIGKILL
    stopped = await start_child("proxy.off_loop.answer_check_process", output=DEVNULL)
    os.kill(stopped.process.pid, signal.SIGSTOP)
    stopped.reader.feed_eof()
    assert await end_child(stopped) == -signal.SIGKILL
