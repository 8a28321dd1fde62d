"""Processes of this program beside this one: started with a socket, and ended with it."""

import os
import sys
from asyncio.subprocess import DEVNULL

import pytest

from proxy.off_loop.answer_check_process import RESPONSE_HEAD, CheckVerdict, check_request, response_head
from proxy.off_loop.child_process import start_child
from tests.proxy.kit.costly_constraints import check_of


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
    assert len(os.listdir("/proc/self/fd")) <= before + 2  # the loop's own watcher may come in between
