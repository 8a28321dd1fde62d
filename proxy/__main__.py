"""The `dragoman` program, also as `python -P -m proxy`."""

import sys

from proxy.cli import main as command_line


def main() -> int:
    """Run one command, and return its exit status. Its output is whole then: what plugins print while the interpreter
    ends goes to stderr."""
    status = command_line.main()
    sys.stdout = sys.stderr
    return status


if __name__ == "__main__":
    sys.exit(main())
