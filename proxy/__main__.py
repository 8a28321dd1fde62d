"""The `dragoman` program, also as `python -P -m proxy`."""

import gc
import sys

from proxy.cli import main as command_line

COLLECT_AFTER = 1_000_000
"""Objects beyond which the garbage collector looks for cycles. What a command makes at first are 200,000 objects of
modules and a table, which stay: with Python's own 700, serving is ready 140 ms later, with 100,000 60 ms. Workers and a
process that serves alone set their own."""


def main() -> int:
    """Run one command, and return its exit status. Its output is whole then: what plugins print while the interpreter
    ends goes to stderr."""
    gc.set_threshold(COLLECT_AFTER)
    status = command_line.main()
    sys.stdout = sys.stderr
    return status


if __name__ == "__main__":
    sys.exit(main())
