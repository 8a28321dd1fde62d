"""The machine and the interpreter that figures come from."""

import os
import platform
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import orjson

ASK = """\
import json, platform, ssl, sys, sysconfig
from importlib.metadata import version
names = ("aiohttp", "orjson")
print(json.dumps({
    "version": platform.python_version(),
    "arguments": sysconfig.get_config_var("CONFIG_ARGS") or "",
    "openssl": ssl.OPENSSL_VERSION,
    "libraries": {name: version(name) for name in names},
}))
"""

DEBIAN = "--with-wheel-pkg-dir=/usr/share/python-wheels"
"""Debian's own argument. Its packages are built with profiles (`make profile-opt` in debian/rules), of which the
arguments say nothing."""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """The Python that runs the gateway, and its libraries."""

    version: str
    arguments: str
    openssl: str
    libraries: Mapping[str, str]

    @property
    def build(self) -> str:
        """How it was compiled."""
        if "--enable-optimizations" in self.arguments:
            return "optimised" + (", with LTO" if "--with-lto" in self.arguments else "")
        if DEBIAN in self.arguments:
            return "optimised (Debian's package)"
        return "NOT OPTIMISED: the gateway would cost less under a Python built with --enable-optimizations"


def interpreter(python: str) -> Interpreter:
    """Ask an interpreter. Raises CalledProcessError when it cannot run the gateway's libraries."""
    done = subprocess.run([python, "-c", ASK], capture_output=True, check=True)
    return Interpreter(**orjson.loads(done.stdout))


@dataclass(frozen=True, slots=True)
class Machine:
    """Where and when: the processor, how many cores, the kernel, and how much else ran when the run began."""

    processor: str
    cores: int
    kernel: str
    load_average: float
    date: str


def processor(cpuinfo: str) -> str:
    """The processor's name in /proc/cpuinfo (proc(5)); that of the architecture where it has none."""
    for line in cpuinfo.splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.machine()


def machine() -> Machine:
    """This machine, now."""
    return Machine(
        processor(Path("/proc/cpuinfo").read_text(encoding="utf-8")),
        len(os.sched_getaffinity(0)),
        platform.release(),
        os.getloadavg()[0],
        datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    )
