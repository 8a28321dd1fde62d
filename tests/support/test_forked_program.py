"""A forked program ends like a started one. If the two could differ, the program is started."""

import asyncio
import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.forked_program import (
    ROOT,
    TEMPLATE,
    ForkedProcess,
    can_fork,
    fork_child,
    forked,
    run_program,
    started,
)
from tests.support.looped import looped

WAITS = "import time\ntime.sleep(600)\n"


def begun(code: str) -> ForkedProcess:
    return ForkedProcess(TEMPLATE.start(("-c", code), ROOT, {}, {0: 0, 1: 1, 2: 2}))


@pytest.mark.parametrize(("code", "status"), [("pass", 0), ("raise SystemExit(3)", 3)])
def test_its_status_is_that_of_the_program(code: str, status: int) -> None:
    program = begun(code)
    assert program.wait() == status
    assert (program.poll(), program.wait(), program.returncode) == (status, status, status)
    program.kill()  # kills no process


def test_it_may_use_the_cores_of_its_owner_whatever_the_template_may_use() -> None:
    shows = ("-c", "import os; print(sorted(os.sched_getaffinity(0)))")
    cores = os.sched_getaffinity(0)
    run_program(shows)  # starts the template
    os.sched_setaffinity(0, {min(cores)})
    try:
        assert run_program(shows).stdout.split() == [b"[%d]" % min(cores)]
    finally:
        os.sched_setaffinity(0, cores)
    assert run_program(shows).stdout.decode() == f"{sorted(cores)}\n"


def test_it_can_be_waited_for_in_a_thread_and_ended_from_outside() -> None:
    async def scenario() -> int:
        program = begun(WAITS)
        waiting = asyncio.create_task(asyncio.to_thread(program.wait))
        assert program.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            program.wait(0.001)
        program.terminate()
        return await waiting

    assert asyncio.run(scenario()) == -signal.SIGTERM


@pytest.mark.parametrize("variables", [{"SSL_CERT_FILE": "x"}, {"PYTHONHASHSEED": "1"}, {"TZ": "UTC"}])
def test_what_is_read_before_a_program_s_own_code_is_read_by_one_that_is_started(
    variables: Mapping[str, str], tmp_path: Path
) -> None:
    assert can_fork({"KEY": "x", "PYTHONPATH": "y"})
    assert not can_fork(variables)
    with (tmp_path / "out").open("wb") as out:
        program = forked(("-c", "pass"), variables, out, out)
        assert isinstance(program, subprocess.Popen)
        assert program.wait() == 0


def test_both_ways_say_the_same(tmp_path: Path) -> None:
    said = []
    for number, launch in enumerate((started, forked)):
        with (tmp_path / str(number)).open("w+b") as out:
            assert launch(("-m", "proxy", "vendors"), {}, out, out).wait() == 0
            out.seek(0)
            said.append(out.read())
    assert said[0] == said[1] != b""


@looped("environment", [{}, {"TZ": "UTC"}], ids=["forked", "started"])
def test_a_program_that_is_run_reads_its_input_and_has_its_outputs(
    environment: Mapping[str, str], tmp_path: Path
) -> None:
    code = "import os, sys; print(sys.stdin.read(), os.getcwd()); print(sys.argv, file=sys.stderr); sys.exit(3)"
    done = run_program(("-c", code, "a"), environment, tmp_path, b"given")
    assert (done.returncode, done.stdout.decode(), done.stderr) == (3, f"given {tmp_path}\n", b"['-c', 'a']\n")
    with pytest.raises(subprocess.TimeoutExpired):
        run_program(("-c", WAITS), environment, seconds=0.01)


async def test_a_child_that_is_forked_is_linked_as_one_that_is_started() -> None:
    child = await fork_child("proxy.accounting.loader_program")
    child.writer.write_eof()
    assert await child.reader.read() == b""
    assert await child.process.wait() == 0
    child.writer.close()
