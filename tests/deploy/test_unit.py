"""The systemd unit, checked by systemd's own tools. They need no running systemd."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.gateway import ROOT

UNIT = ROOT / "deploy" / "systemd" / "dragoman.service"
PROGRAM = "/opt/dragoman/bin/dragoman"

EXPOSURE = "15"
"""The highest accepted exposure level of `systemd-analyze security`, in tenths. A network service that systemd calls
well protected has 12."""


def analyze(*arguments: str) -> "subprocess.CompletedProcess[str]":
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze is not installed")
    environment = {"PATH": os.environ["PATH"], "SYSTEMD_PAGER": "", "LC_ALL": "C"}
    return subprocess.run([program, *arguments], capture_output=True, text=True, env=environment, check=False)


def installed(folder: Path, more: str = "") -> Path:
    """Return the path of the unit, with an existing program in place of the gateway's."""
    text = UNIT.read_text(encoding="utf-8")
    assert PROGRAM in text
    written = folder / UNIT.name
    text = text.replace(PROGRAM, sys.executable).replace("[Install]", f"{more}\n[Install]")
    written.write_text(text, encoding="utf-8")
    return written


def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path: Path) -> None:
    done = analyze("verify", "--man=no", str(installed(tmp_path)))
    assert (done.returncode, done.stderr) == (0, "")
    assert "NoSuchSetting" in analyze("verify", "--man=no", str(installed(tmp_path, "NoSuchSetting=yes"))).stderr


def test_systemd_calls_the_unit_well_protected(tmp_path: Path) -> None:
    def judged(more: str = "") -> "subprocess.CompletedProcess[str]":
        return analyze("security", "--offline=true", f"--threshold={EXPOSURE}", str(installed(tmp_path, more)))

    done = judged()
    assert done.returncode == 0, done.stdout
    assert judged("CapabilityBoundingSet=CAP_SYS_ADMIN\nPrivateUsers=no\nProtectSystem=no").returncode != 0
