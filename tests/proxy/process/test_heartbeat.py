"""The shared memory of a heartbeat, read from the same process and from another one."""

import os
import subprocess
import sys

import pytest

from proxy.process.heartbeat import MEMORY_BYTES, REQUEST_BYTES, Heartbeat, shared_file
from proxy.request_record import RequestRecord
from tests.support.looped import looped

pytestmark = pytest.mark.smoke


def record(request_id: str = "req-1", path: str = "/v1/completions", team: str = "search") -> RequestRecord:
    return RequestRecord(request_id, 0.0, "openai", path, team=team)


def test_nothing_has_happened_at_first() -> None:
    pulse = Heartbeat.private()
    assert (pulse.beats, pulse.last_request) == (0, "none")


def test_every_tick_counts_and_the_last_request_is_the_one_that_is_named() -> None:
    pulse = Heartbeat.private()
    for number in range(1, 4):
        pulse.begin(record(f"a-longer-id-{4 - number}" * (4 - number)))
        pulse.beat()
        assert pulse.beats == number
    assert pulse.last_request == "a-longer-id-1 on /v1/completions of team search"


@looped("letter", ["x", "\u20ac", "\ud800"])
def test_a_long_text_is_cut_and_one_that_is_no_unicode_is_no_fault(letter: str) -> None:
    pulse = Heartbeat.private()
    pulse.begin(record(path="/" + letter * REQUEST_BYTES))
    assert pulse.last_request.startswith("req-1 on /")
    assert len(pulse.last_request.encode("utf-8", "replace")) <= REQUEST_BYTES + 2


def test_another_process_writes_and_this_one_reads() -> None:
    descriptor = shared_file()
    pulse = Heartbeat.shared(descriptor)
    code = "import sys; from proxy.process.heartbeat import Heartbeat; "
    code += "p = Heartbeat.shared(int(sys.argv[1])); p.beat(); p.beat()"
    subprocess.run([sys.executable, "-c", code, str(descriptor)], pass_fds=[descriptor], check=True)
    os.close(descriptor)
    assert pulse.beats == 2


def test_where_files_in_memory_are_not_allowed_one_without_a_name_does(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(name: str) -> int:
        raise PermissionError(name)

    monkeypatch.setattr(os, "memfd_create", refused, raising=False)
    descriptor = shared_file()
    assert os.fstat(descriptor).st_size == MEMORY_BYTES
    assert os.fstat(descriptor).st_nlink == 0
    os.close(descriptor)
