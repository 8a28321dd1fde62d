"""`python -m tests.trust`. Never anything but the call."""

import sys

from tests.trust.board import main

if __name__ == "__main__":
    sys.exit(main())
