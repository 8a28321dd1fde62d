"""The gateway starts only with a supported version of its HTTP library."""

import subprocess
import sys
from pathlib import Path

import pytest

from proxy.listener.aiohttp_version import http_fault, installed_fault
from tests.support.gateway import ROOT
from tests.support.looped import looped


@pytest.mark.smoke
def test_what_is_installed_here_may_serve() -> None:
    assert installed_fault() is None


@pytest.mark.smoke
@looped("version", ["3.14.3", "3.14.5", "3.15.0", "3.15.0rc1", "4.0.0a2.dev0"])
def test_a_version_without_known_holes_may_serve(version: str) -> None:
    assert http_fault(version, compiled=True) is None


@looped("version", ["3.14.2", "3.13.9", "3.9.0", "2.99.99"])
def test_a_version_with_known_holes_may_not(version: str) -> None:
    assert http_fault(version, compiled=True) == f"aiohttp {version} has known holes; 3.14.3 or newer is needed"


def test_a_parser_that_is_not_compiled_may_not() -> None:
    assert "compiled parser" in str(http_fault("3.14.5", compiled=False))


@pytest.mark.parametrize("command", [["serve", "--port", "0"], ["demo", "--once", "--port", "0"]])
def test_the_process_refuses_to_start_on_the_parser_in_python(command: list[str], tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "proxy", *command],
        cwd=ROOT,
        env={"AIOHTTP_NO_EXTENSIONS": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("dragoman: aiohttp runs without its compiled parser")
