"""The `dragoman` program, also as `python -P -m proxy`."""

import sys

from proxy.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
