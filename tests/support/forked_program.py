"""Python programs that are forked from a process that has already loaded the gateway
(`tests.support.program_template`).

Only pytest processes fork (`tests/conftest.py`): `make bench` and `make trust` measure programs that were started. A
program is also started, not forked, if its environment configures the interpreter or a C library.
"""

import asyncio
import os
import select
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import TimeoutExpired
from tempfile import TemporaryFile
from typing import IO, Final, Protocol, TypeAlias

import orjson

from proxy.off_loop.child_process import ROOT as PACKAGES
from proxy.off_loop.child_process import Child, program
from proxy.workers.adopted_process import AdoptedProcess, adopting, can_adopt
from tests.support.program_template import NUMBER

ROOT: Final = Path(__file__).resolve().parents[2]

BEFORE_MAIN: Final = ("PYTHON", "LD_", "MALLOC_", "LC_", "LANG", "TZ", "SSL_", "OPENSSL_", "AIOHTTP_")
"""Prefixes of environment variables that are read before a program's own code runs. Of Python's variables, PYTHONPATH
is also applied afterwards."""


class Process(Protocol):
    """The methods that tests use of a process that they started: a `subprocess.Popen`, or a forked process."""

    @property
    def pid(self) -> int: ...
    @property
    def returncode(self) -> int | None: ...
    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def send_signal(self, sig: int, /) -> None: ...
    def kill(self) -> None: ...
    def terminate(self) -> None: ...


@dataclass(slots=True)
class ForkedProcess:
    """A child that this process did not start itself. Several threads may wait for it."""

    pid: int
    returncode: int | None = field(default=None, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    def poll(self) -> int | None:
        with self._lock:
            if self.returncode is None:
                ended, status = os.waitpid(self.pid, os.WNOHANG)
                if ended:
                    self.returncode = os.waitstatus_to_exitcode(status)
            return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end of the process. Raise TimeoutExpired."""
        with self._lock:
            if self.returncode is not None:
                return self.returncode
            ends = os.pidfd_open(self.pid)
        try:
            looking = select.poll()
            looking.register(ends, select.POLLIN)
            if not looking.poll(None if timeout is None else timeout * 1000):
                raise TimeoutExpired(str(self.pid), timeout or 0.0)
        finally:
            os.close(ends)
        status = self.poll()
        assert status is not None
        return status

    def send_signal(self, sig: int, /) -> None:
        if self.poll() is None:
            os.kill(self.pid, sig)

    def kill(self) -> None:
        self.send_signal(9)

    def terminate(self) -> None:
        self.send_signal(15)


class ProgramTemplate:
    """The owner of the template process, which starts with the first program."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None

    def start(
        self,
        arguments: Sequence[str],
        directory: Path,
        environment: Mapping[str, str],
        descriptors: Mapping[int, int],
        session: bool = False,
    ) -> int:
        """Start `python ARGUMENTS` with `descriptors`, whose keys are their numbers in the new process. Return its
        process id."""
        order = {
            "arguments": list(arguments),
            "directory": str(directory),
            "environment": dict(environment),
            "descriptors": list(descriptors),
            "session": session,
            "cores": list(os.sched_getaffinity(0)),
        }
        with self._lock:
            ours = self._begun()
            with adopting():
                socket.send_fds(ours, [orjson.dumps(order)], list(descriptors.values()))
                number = ours.recv(NUMBER.size)
        assert len(number) == NUMBER.size, "the template of the tests' programs has ended"
        return int(NUMBER.unpack(number)[0])

    def _begun(self) -> socket.socket:
        if self._socket is None:
            self._socket, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with there:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", "tests.support.program_template", str(there.fileno())],
                    cwd=ROOT,
                    env={"PATH": os.environ.get("PATH", "")},
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    pass_fds=[there.fileno()],
                )
        return self._socket

    def begin(self) -> None:
        """Start the template now, before a test that counts open descriptors."""
        with self._lock:
            self._begun()

    def end(self) -> None:
        if self._socket is not None and self._process is not None:
            self._socket.close()
            self._process.wait()
            self._socket = self._process = None


TEMPLATE: Final = ProgramTemplate()

_in_use = False


def fork_programs() -> None:
    """Fork programs from now on, if the system supports it."""
    global _in_use
    _in_use = can_adopt()


def end() -> None:
    """End the template."""
    global _in_use
    _in_use = False
    TEMPLATE.end()


def can_fork(environment: Mapping[str, str]) -> bool:
    """Return whether a program with these variables may be forked."""
    names = set(environment) - {"PYTHONPATH"}
    return _in_use and not any(name.startswith(BEFORE_MAIN) for name in names)


Launch: TypeAlias = Callable[[Sequence[str], Mapping[str, str], IO[bytes], IO[bytes]], Process]
"""A function that starts `python ARGUMENTS` in the folder of the sources, with an environment and two outputs."""


def started(arguments: Sequence[str], environment: Mapping[str, str], out: IO[bytes], err: IO[bytes]) -> Process:
    """Start the program as the operator does."""
    return subprocess.Popen([sys.executable, *arguments], cwd=ROOT, env=environment, stdout=out, stderr=err)


def forked(arguments: Sequence[str], environment: Mapping[str, str], out: IO[bytes], err: IO[bytes]) -> Process:
    """Fork the program if the environment makes no difference to it, else start it."""
    if not can_fork(environment):
        return started(arguments, environment, out, err)
    return ForkedProcess(TEMPLATE.start(arguments, ROOT, environment, {0: 0, 1: out.fileno(), 2: err.fileno()}))


def run_program(
    arguments: Sequence[str],
    environment: Mapping[str, str] | None = None,
    directory: Path = ROOT,
    stdin: bytes = b"",
    seconds: float = 120.0,
) -> "subprocess.CompletedProcess[bytes]":
    """Run a program of this interpreter as `subprocess.run` does and return its outputs. Raise TimeoutExpired."""
    variables = environment or {}
    with TemporaryFile() as given, TemporaryFile() as out, TemporaryFile() as err:
        given.write(stdin)
        given.seek(0)
        process: Process
        if can_fork(variables):
            files = {0: given.fileno(), 1: out.fileno(), 2: err.fileno()}
            process = ForkedProcess(TEMPLATE.start(arguments, directory, variables, files))
        else:
            command = [sys.executable, *arguments]
            process = subprocess.Popen(command, cwd=directory, env=variables, stdin=given, stdout=out, stderr=err)
        try:
            status = process.wait(seconds)
        finally:
            process.kill()
            process.wait()
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(arguments, status, out.read(), err.read())


async def fork_child(
    module: str, *descriptors: int, output: int | None = None, environment: Mapping[str, str] | None = None
) -> Child:
    """Do the same as `proxy.off_loop.child_process.start_child`, but fork."""
    here, there = socket.socketpair()
    null = os.open(os.devnull, os.O_RDWR)
    out, err = (1, 2) if output is None else (null, null)
    with there:
        passed = {each: each for each in (there.fileno(), *descriptors)}
        arguments = ("-P", "-c", program(module), str(PACKAGES), *map(str, passed))
        variables = dict(os.environ if environment is None else environment)
        pid = TEMPLATE.start(arguments, Path.cwd(), variables, {0: null, 1: out, 2: err, **passed}, session=True)
    os.close(null)
    return Child(AdoptedProcess(pid), *await asyncio.open_unix_connection(sock=here))
