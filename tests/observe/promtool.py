"""Run promtool, Prometheus' own judge of metrics, rules and configurations, where it is installed."""

import shutil
import subprocess
from typing import Final

import pytest

MISSING: Final = "prometheus is not installed"


def installed(program: str) -> str:
    """The path of `promtool` or `prometheus`; the test is skipped without it."""
    found = shutil.which(program)
    if found is None:
        pytest.skip(MISSING)
    return found


def promtool(*arguments: str, given: bytes = b"") -> "subprocess.CompletedProcess[bytes]":
    """Run promtool to its end; what it writes to both outputs is in `stdout`."""
    return subprocess.run(
        [installed("promtool"), *arguments],
        input=given,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=120,
        check=False,
    )
