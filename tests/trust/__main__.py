"""The command `python -m tests.trust`."""

import sys

from tests.trust.board import main

if __name__ == "__main__":
    sys.exit(main())
