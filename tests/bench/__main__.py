"""`python -m tests.bench`. Never anything but the call."""

from tests.bench.run import main

if __name__ == "__main__":
    main()
