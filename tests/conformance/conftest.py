"""What the run says at its end of the matrix that it walked. Never a fixture that one test needs."""

import pytest

WALKED = pytest.StashKey[str]()
"""The sizes of the matrix in words, once every cell was walked."""


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the size of the matrix, however quiet the run is."""
    if WALKED in config.stash:
        terminalreporter.write_line(f"matrix: {config.stash[WALKED]}")
