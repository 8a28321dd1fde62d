"""Starts a process that runs a module of this program, with a socket pair to communicate with it."""

import asyncio
import os
import socket
import sys
from asyncio.subprocess import DEVNULL
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple, Protocol

ROOT: Final = Path(__file__).resolve().parents[2]
"""The folder of this program's packages. It is needed because another package named proxy may be on the path."""


END_TIMEOUT: Final = 1.0
"""Seconds for a process to end by itself after its socket has ended."""


class ProcessHandle(Protocol):
    """A child process, however it was started."""

    @property
    def pid(self) -> int: ...
    @property
    def returncode(self) -> int | None: ...
    async def wait(self) -> int: ...
    def kill(self) -> None: ...


class Child(NamedTuple):
    """The process, and this end of its socket."""

    process: ProcessHandle
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


async def start_child(
    module: str, *descriptors: int, output: int | None = None, environment: Mapping[str, str] | None = None
) -> Child:
    """Start a process that calls `main` of the module with this dotted name. The arguments of `main` are its end of a
    socket pair and the `descriptors`, which it inherits. Its standard output and error go to `output`, or to the output
    of this process if that is `None`. Raises OSError."""
    here, there = socket.socketpair()
    passed = (there.fileno(), *descriptors)
    with there:
        try:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-c", program(module), str(ROOT), *map(str, passed)),
                stdin=DEVNULL,
                stdout=output,
                stderr=output,
                # Ctrl-C reaches every process of a terminal's session; this one is ended by its parent.
                start_new_session=True,
                env=environment,
                pass_fds=passed,
            )
        except OSError:
            here.close()
            raise
    return Child(process, *await asyncio.open_unix_connection(sock=here))


async def end_child(child: Child) -> int:
    """End a process, even if it is busy, and return its status.

    A process whose socket has ended is about to end by itself, and is waited for first. The reason is that `kill`
    checks whether the process has ended, which takes the status away from asyncio; asyncio would then return a made-up
    status.
    """
    process, reader = child.process, child.reader
    ending = reader.at_eof() or reader.exception() is not None
    child.writer.close()
    if process.returncode is None and ending:
        with suppress(TimeoutError):
            async with asyncio.timeout(END_TIMEOUT):
                await process.wait()
    if process.returncode is None:
        process.kill()
    return await process.wait()


def bare_environment() -> dict[str, str]:
    """Return the part of this process's environment that the interpreter needs, without secrets."""
    return {name: value for name, value in os.environ.items() if name.startswith(("PYTHON", "LD_", "DYLD_"))}


def program(module: str) -> str:
    """Return the Python code of the process; its arguments are ROOT and the descriptors."""
    path = "import sys; sys.path.insert(0, sys.argv[1])"
    return f"{path}; from {module} import main; main(*map(int, sys.argv[2:]))"
