"""A load leaves no trace in its own process, and the configuration contains all that a load needs."""

import os
import subprocess
import sys
import threading

from tests.proxy.kit.tables import snapshot
from tests.support.vendor_script import Delay, Send
from tests.trust.load_client import End, Ended, failures, quantile
from tests.trust.load_rig import PLACES, apart, many, slow_stream, table


def test_every_thread_gets_its_cores_back() -> None:
    cores, done = os.sched_getaffinity(0), threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    try:
        with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
            with apart(other.pid):
                assert os.sched_getaffinity(0) == os.sched_getaffinity(thread.native_id or 0) == {max(cores)}
                assert os.sched_getaffinity(other.pid) == {min(cores)}
            other.communicate(b"\n")
        assert os.sched_getaffinity(0) == os.sched_getaffinity(thread.native_id or 0) == cores
    finally:
        done.set()
        thread.join()


def test_there_are_as_many_deployments_as_a_load_needs() -> None:
    assert len(many("fake", PLACES)) == 1
    assert many("fake", PLACES + 1) == ["fake/m0", "fake/m1"]
    text = table({"fake": "http://127.0.0.1:1"}, [f"{model}: {{}}" for model in many("fake", 200)])
    assert len(snapshot(text.removeprefix("version: 1\n")).models) == 4


def test_a_slow_stream_takes_as_long_as_it_is_told_to() -> None:
    script = slow_stream(3.0, 6)
    assert sum(step.seconds for step in script if isinstance(step, Delay)) == 3.0
    assert b"".join(step.data for step in script if isinstance(step, Send)).count(b'"text":"word"') == 6


def test_what_did_not_end_well_is_counted_by_how_it_ended() -> None:
    ends = [Ended(End.WHOLE, 0, 1), Ended(End.CUT, 0, 2, status=200), Ended(End.HUNG, 0, 3), Ended(End.HUNG, 0, 4)]
    assert failures(ends) == "2 hung, 1 cut 200"
    assert failures(ends[:1]) == "0"
    assert quantile([ended.seconds for ended in ends], 0.5) == 3
    assert quantile([1.0], 0.99) == 1.0
