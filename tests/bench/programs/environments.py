"""The environments of programs from PyPI for the bench. Each is a directory under `.cache/bench`, made by `make
bench-peers`."""

from pathlib import Path

from tests.support.gateway import ROOT

CACHE = ROOT / ".cache" / "bench"


def installed(environment: str, program: str) -> Path | None:
    """Return the path of a program of an environment. Return `None` if it does not exist."""
    path = CACHE / environment / "bin" / program
    return path if path.exists() else None
