"""Directories of locked distributions, for programs that must not share the gateway's environment, and processes in
them that return one line for each line."""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

ROOT = Path(__file__).resolve().parents[2]
LOCKS = ROOT / "tests" / "e2e" / "clients"
CACHE = ROOT / ".cache" / "clients"


@dataclass(frozen=True, slots=True)
class Environment:
    """Distributions that are installed together.

    `lock` pins `requirements` and their dependencies, except the distributions in `left_out`. It also pins the
    distributions in `alone`, which are installed without their dependencies. `locked_by` is the command that writes the
    lock.
    """

    name: str
    lock: Path
    requirements: tuple[str, ...]
    locked_by: str
    left_out: tuple[str, ...] = ()
    alone: tuple[str, ...] = ()

    @property
    def directory(self) -> Path:
        digest = hashlib.sha256(self.lock.read_bytes()).hexdigest()[:16]
        return CACHE / f"{self.name}-{sys.implementation.cache_tag}-{digest}"

    def install(self) -> Path:
        """Install the environment if it is absent and return its directory. Raise RuntimeError with pip's output if
        that fails.

        The directory is filled under another name and renamed when it is complete, so an interrupted installation never
        counts. A file lock prevents two test runs from installing at once.
        """
        target = self.directory
        if target.is_dir():
            return target
        CACHE.mkdir(parents=True, exist_ok=True)
        (CACHE / ".gitignore").write_text("*\n", encoding="utf-8")
        with (CACHE / f"{self.name}.flock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not target.is_dir():
                unfinished = CACHE / f"{self.name}.unfinished"
                shutil.rmtree(unfinished, ignore_errors=True)
                self._fill(unfinished)
                unfinished.rename(target)
        return target

    def _fill(self, target: Path) -> None:
        print(f"installing {self.requirements[0]} into {target.parent} (once)", file=sys.stderr, flush=True)
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"]
        # Compiling every file takes as long as the rest of the installation, and Python compiles the files that it
        # imports.
        command += ["--require-hashes", "--no-deps", "--no-compile", "--only-binary", ":all:"]
        command += ["--target", str(target), "--requirement", str(self.lock)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"could not install {self.requirements[0]}:\n{done.stderr.strip()[-2000:]}")

    def write_lock(self) -> None:
        """Resolve the requirements for every supported Python and platform, with hashes; needs uv."""
        with TemporaryDirectory() as scratch:
            left_out = Path(scratch) / "left_out.txt"
            left_out.write_text("\n".join(self.left_out), encoding="utf-8")
            pins = self._resolved(self.requirements, "--excludes", str(left_out))
        if self.alone:
            pins += self._resolved(self.alone, "--no-deps", "--no-header")
        self.lock.write_text(pins, encoding="utf-8")

    def _resolved(self, requirements: tuple[str, ...], *options: str) -> str:
        command = ["uv", "pip", "compile", "-", "--universal", "--python-version", "3.11", "--generate-hashes"]
        command += ["--quiet", "--no-emit-index-url", "--no-emit-find-links"]
        command += ["--custom-compile-command", self.locked_by, *options]
        done = subprocess.run(
            command, input="\n".join(requirements), stdout=subprocess.PIPE, text=True, cwd=ROOT, check=True
        )
        return done.stdout

    def variables(self) -> Mapping[str, str]:
        """Return the environment variables of a process in this environment. The process must be started with -S:
        without site-packages and this process's variables it sees no dependency, key or proxy of ours."""
        return {"PATH": os.environ.get("PATH", ""), "PYTHONPATH": str(self.install())}


class LineProcess:
    """A module that runs in an environment and returns one line for each line. Several threads may use it."""

    def __init__(self, environment: Environment, module: str, *arguments: str) -> None:
        self.name = environment.name
        self._turn = threading.Lock()
        command = [sys.executable, "-S", "-m", module, *arguments]
        self._process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment.variables(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def exchange(self, line: str) -> str:
        """Send a line, which must not contain a line break, and return the response line. Raise `RuntimeError` if the
        process ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._turn:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"the process of {self.name} ended with status {self._process.wait()} on {line[:2000]}")
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._process:  # closes the pipes, which ends the process, and waits for its end
            pass
