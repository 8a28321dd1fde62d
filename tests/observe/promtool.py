"""Run promtool, Prometheus' own checker of metrics, rules and configurations, if it is installed."""

import shutil
import subprocess
from typing import Final

import pytest

MISSING: Final = "prometheus is not installed"


def installed(program: str) -> str:
    """Return the path of `promtool` or `prometheus`. Skip the test if it is not installed."""
    found = shutil.which(program)
    if found is None:
        pytest.skip(MISSING)
    return found


def promtool(*arguments: str, given: bytes = b"") -> "subprocess.CompletedProcess[bytes]":
    """Run promtool to its end. `stdout` of the result has both of its outputs."""
    return subprocess.run(
        [installed("promtool"), *arguments],
        input=given,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=120,
        check=False,
    )
