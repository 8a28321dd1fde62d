"""Where programs from PyPI are installed for the bench: environments of their own under `.cache/bench`, which
`make bench-peers` makes."""

from pathlib import Path

from tests.support.gateway import ROOT

CACHE = ROOT / ".cache" / "bench"


def installed(environment: str, program: str) -> Path | None:
    """Return the path of a program of an environment, None when it is not there."""
    path = CACHE / environment / "bin" / program
    return path if path.exists() else None
