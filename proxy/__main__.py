"""The `dragoman` program, also as `python -P -m proxy`."""

import gc
import sys

from proxy.cli import main as command_line

COLLECT_AFTER = 1_000_000
"""The number of new objects after which the garbage collector looks for cycles. A command creates 200,000 objects of
modules and configuration at its start, which live until its end: with Python's own threshold of 700, the gateway is
ready 140 ms later, and with a threshold of 100,000 it is ready 60 ms later. Workers, and a process that serves alone,
set their own threshold."""


def main() -> int:
    """Run one command, and return its exit status. All of its output is written by then: text that plugins print while
    the interpreter ends goes to stderr."""
    gc.set_threshold(COLLECT_AFTER)
    status = command_line.main()
    sys.stdout = sys.stderr
    return status


if __name__ == "__main__":
    sys.exit(main())
