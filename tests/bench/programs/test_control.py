"""The control responds like the upstream, and uses the given CPU."""

import os
from pathlib import Path

from tests.bench.cases import CASES, REQUEST
from tests.bench.cpu import cpu_seconds
from tests.bench.latency import Way, due_times, timed_run
from tests.bench.probe import probe
from tests.bench.programs.control import running_control

EACH = 0.004


async def test_each_answer_takes_the_cpu_it_was_told_to(tmp_path: Path) -> None:
    case = next(case for case in CASES if case.name == REQUEST)
    with running_control(tmp_path, EACH) as control:
        request = control.request(case)
        assert request is not None
        expected = await probe(control.port_of(case), request, control.wire(case), case.ask)
        before, due = cpu_seconds(control.pid), due_times(100, 0.5)
        spent = await timed_run(Way(control.port, [control.pid], [os.getpid()]), request, expected, due)
        used = cpu_seconds(control.pid) - before
    assert len(spent.times) == len(due) > 20
    assert 0.9 * EACH * len(due) < used < 2 * EACH * len(due)
