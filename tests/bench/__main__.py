"""The command `python -m tests.bench`."""

from tests.bench.run import main

if __name__ == "__main__":
    main()
