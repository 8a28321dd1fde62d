"""The machine and the interpreter that produce the figures."""

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
"""An argument that only Debian's builds have. Debian builds its packages with profiles (`make profile-opt` in
debian/rules), but the arguments do not show it."""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """The Python that runs the gateway, and its libraries."""

    version: str
    arguments: str
    openssl: str
    libraries: Mapping[str, str]

    @property
    def build(self) -> str:
        """Return how it was compiled."""
        if "--enable-optimizations" in self.arguments:
            return "optimised" + (", with LTO" if "--with-lto" in self.arguments else "")
        if DEBIAN in self.arguments:
            return "optimised (Debian's package)"
        return "NOT OPTIMISED: the gateway would cost less under a Python built with --enable-optimizations"


def interpreter(python: str) -> Interpreter:
    """Ask an interpreter about itself. Raise CalledProcessError if it cannot import the gateway's libraries."""
    done = subprocess.run([python, "-c", ASK], capture_output=True, check=True)
    return Interpreter(**orjson.loads(done.stdout))


@dataclass(frozen=True, slots=True)
class Machine:
    """Where and when the run took place: the processor, the number of cores, the kernel, and the load of the machine
    when the run began."""

    processor: str
    cores: int
    kernel: str
    load_average: float
    date: str


def processor(cpuinfo: str) -> str:
    """Return the processor's name in /proc/cpuinfo (proc(5)), or the name of the architecture if it has none."""
    for line in cpuinfo.splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.machine()


def machine() -> Machine:
    """Return this machine in its current state."""
    return Machine(
        processor(Path("/proc/cpuinfo").read_text(encoding="utf-8")),
        len(os.sched_getaffinity(0)),
        platform.release(),
        os.getloadavg()[0],
        datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    )
