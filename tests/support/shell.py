"""Runs the shell lines that our documents give the reader to paste."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def run_shell(script: str, folder: Path, variables: Mapping[str, str] | None = None) -> str:
    """Run the lines in `folder` with our `dragoman` and a curl on the path, and return their output.

    Raise AssertionError with their messages if a line fails.
    """
    tools = folder / ".tools"
    tools.mkdir(exist_ok=True)
    _script(tools / "dragoman", "proxy")
    if shutil.which("curl") is None:
        _script(tools / "curl", "tests.support.curl")
    path = f"{tools}:{os.environ.get('PATH', os.defpath)}"
    environment = {"PATH": path, "PYTHONPATH": str(ROOT), "NO_COLOR": "1", **(variables or {})}
    command = ["sh", "-eu", "-c", script]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{script}\nended with {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout


def _script(path: Path, module: str) -> None:
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m {module} "$@"\n', encoding="utf-8")
    path.chmod(0o755)
