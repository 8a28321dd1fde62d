"""The `dragoman` program, also as `python -P -m proxy`. Never anything but its start."""

import sys

from proxy.cli import main

if __name__ == "__main__":
    sys.exit(main())
