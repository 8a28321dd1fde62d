"""C-level signal handlers, in processes of their own whose Python code does not get to run."""

import signal
import subprocess
import sys

import pytest

STUCK = "sum(range(10**13))"
"""Holds the interpreter's lock for hours."""


def exit_status(before: str, *numbers: int) -> int:
    """Return the exit status of a process that runs this code, blocks, and gets the signals one after the other."""
    code = f"import signal\nfrom proxy.process.c_signal_handlers import *\n{before}\nprint(flush=True)\n{STUCK}"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.read(1)
            for number in numbers:
                with pytest.raises(subprocess.TimeoutExpired):
                    process.wait(0.3)
                process.send_signal(number)
            return process.wait(30)
        finally:
            process.kill()


@pytest.mark.smoke
def test_a_process_ends_with_the_signal_s_number_as_its_status() -> None:
    assert exit_status("exit_on(signal.SIGUSR2)", signal.SIGUSR2) == signal.SIGUSR2


def test_a_handler_for_one_delivery_makes_way_for_the_default_action() -> None:
    before = "signal.signal(signal.SIGTERM, print); assert reset_after_first(signal.SIGTERM)"
    assert exit_status(before, signal.SIGTERM, signal.SIGTERM) == -signal.SIGTERM
