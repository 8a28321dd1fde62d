"""The process writes each entry, returns the error's number, and ends if an entry takes too long."""

import errno
import os
import signal
import socket
import sys
import threading
from pathlib import Path

import orjson
import pytest

from proxy.off_loop.child_process import ROOT, program
from proxy.payload_log import payload_process
from proxy.payload_log.payload_entry import RESPONSE, PayloadEntry, read_response
from proxy.payload_log.payload_process import batch_frame, rules_frame
from proxy.payload_log.payload_sinks import WriterRules

FACTS = b'{"request_id":"r"}'
SLOW = r"(a+)+$"


def rules(file: Path, *redact: str) -> bytes:
    return rules_frame(WriterRules(str(file), 1024, list(redact), 10**6, 1))


def started(frame: bytes) -> tuple[int, socket.socket]:
    here, there = socket.socketpair()
    there.set_inheritable(True)
    command = [sys.executable, "-P", "-c", program("proxy.payload_log.payload_process"), str(ROOT), str(there.fileno())]
    pid = os.posix_spawn(sys.executable, command, dict(os.environ))
    there.close()
    here.sendall(frame)
    return pid, here


@pytest.mark.smoke
def test_entries_are_written_and_what_cannot_be_is_answered_by_its_error(tmp_path: Path) -> None:
    folder = tmp_path / "later"
    pid, link = started(rules(folder / "p.jsonl", "canary"))
    with link:
        answers = []
        for _ in range(2):
            link.sendall(batch_frame(1) + b"".join(PayloadEntry(FACTS, b'["canary"]', None).frames()))
            answers.append(read_response(link.recv(RESPONSE, socket.MSG_WAITALL)))
            folder.mkdir(exist_ok=True)
    assert answers == [errno.ENOENT, 0]
    assert orjson.loads((folder / "p.jsonl").read_bytes()) == {"request_id": "r", "request": ["[redacted]"]}
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_a_pattern_that_takes_for_ever_ends_the_process_by_its_cpu_time(tmp_path: Path) -> None:
    pid, link = started(rules(tmp_path / "p.jsonl", SLOW))
    with link:
        link.sendall(batch_frame(1) + b"".join(PayloadEntry(FACTS, b'"' + b"a" * 60 + b'!"', None).frames()))
        assert link.recv(RESPONSE) == b""
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGPROF
    assert not (tmp_path / "p.jsonl").exists()


@pytest.mark.smoke
def test_it_ends_when_nobody_is_left_to_send(tmp_path: Path) -> None:
    told = rules(tmp_path / "p")
    for frame in (b"", b"\0", told, told + b"\0\0", told + batch_frame(2)):
        here, there = socket.socketpair()
        with here, there:
            here.sendall(frame)
            here.shutdown(socket.SHUT_WR)
            descriptor = os.dup(there.fileno())
            ended = threading.Thread(target=_main_without_limits, args=(descriptor,))
            ended.start()
            ended.join(30)
            assert not ended.is_alive()


def _main_without_limits(descriptor: int) -> None:
    with socket.socket(fileno=descriptor) as link, link.makefile("rb") as frames:
        payload_process.serve(link, frames)
