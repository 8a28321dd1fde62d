"""The template of the workers: a process that has loaded everything that the workers share, and from which the workers
are forked. The process that loads the ledger is forked from the template too.

The template itself is forked from the supervisor before the supervisor has an event loop, a thread or a socket. After
this fork the modules are imported, the first configuration is built, and all objects are frozen: the garbage collector
does not visit frozen objects, so their memory pages stay shared between the supervisor, the template and the workers.
From then on the template only forks, also to replace a worker that ended. The supervisor itself cannot fork, because
its threads may hold locks that would never be released in the child. A later configuration is not shared; each worker
has its own copy.

A forked worker is the supervisor's child (`proxy.workers.adopted_process`), in its own session. It differs from a
started program in four ways, which restrict everything that is imported before the fork:

- imported code must not open a descriptor, start a thread, begin an event loop or set a signal handler: all of that
comes after the fork, in `proxy.workers.worker_main` and `proxy.accounting.loader_program`. If there is a second thread
nevertheless (for example of a profiler), there is no template;

- random values drawn there are equal in all workers. Python seeds the functions of `random` anew, and OpenSSL its own
source; any other generator must seed itself (`proxy.request_record`);

- a worker ends like a program, through the stack in which it was forked, so there must be no `finally` and no `with` on
  the path from the fork to `main`;

- its address space has the same layout as its siblings'.

If the system lacks the needed functions, or the template has ended (killed by an operator, or for lack of memory),
workers are started as programs, which takes about 40 MB more for each.
"""

import asyncio
import errno
import gc
import logging
import os
import signal
import socket
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NoReturn

from proxy.accounting import loader_process, loader_program
from proxy.off_loop.child_process import Child, start_child
from proxy.process.load_table import LoadedTable
from proxy.process.set_up_process import load_shareable
from proxy.process_name import name_process
from proxy.workers.adopted_process import AdoptedProcess, adopting, can_adopt
from proxy.workers.worker_main import main

FORK_LIMIT: Final = 10.0
"""The most seconds that a fork may take. After that the template is given up."""

_RESULT: Final = struct.Struct("=i")
"""The number of a process, or the negative number of an error."""

_WORKER: Final = b"w"
_LOADER: Final = b"l"
"""The requests, each for one process. A request comes with the process's end of a socket pair and, for a worker, with
the file of its heartbeat."""

_DESCRIPTORS: Final = 2
"""The most descriptors of a request."""


class TemplateGone(Exception):
    """The error that is raised if the template has ended or does not respond."""


async def start_program(shared: int) -> Child:
    """Start a worker as a program, with the file of its heartbeat. Raises OSError."""
    return await start_child("proxy.workers.worker_main", shared)


@dataclass(slots=True, eq=False)
class WorkerTemplate:
    """The supervisor's end of the template."""

    pid: int
    _socket: socket.socket
    _one_at_a_time: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def start(self, shared: int) -> Child:
        """Start a worker, with the file of its heartbeat. Raises OSError."""
        return await self._started(_WORKER, shared) or await start_program(shared)

    async def start_loader(self) -> Child:
        """Start the process that loads the ledger. Raises OSError."""
        return await self._started(_LOADER) or await loader_process.start_program()

    async def _started(self, kind: bytes, *descriptors: int) -> Child | None:
        """Start a process; return `None` if the template is gone. Raises OSError."""
        async with self._one_at_a_time:
            if self.pid:
                try:
                    return await self._fork(kind, *descriptors)
                except TemplateGone as gone:
                    self.end()
                    text = "the template of the workers %s; they are started as programs and take more memory"
                    logging.getLogger("dragoman").warning(text, gone)
        return None

    async def _fork(self, kind: bytes, *descriptors: int) -> Child:
        here, there = socket.socketpair()
        try:
            with there, adopting():
                process = AdoptedProcess(await self._forked(kind, there.fileno(), *descriptors))
        except BaseException:
            here.close()
            raise
        return Child(process, *(await asyncio.open_unix_connection(sock=here)))

    async def _forked(self, kind: bytes, *descriptors: int) -> int:
        loop = asyncio.get_running_loop()
        try:
            socket.send_fds(self._socket, (kind,), descriptors)
            async with asyncio.timeout(FORK_LIMIT):
                result = await loop.sock_recv(self._socket, _RESULT.size)
        except TimeoutError:
            raise TemplateGone("does not respond") from None
        except OSError:
            raise TemplateGone("has ended") from None
        if len(result) < _RESULT.size:
            raise TemplateGone("has ended")
        (pid,) = _RESULT.unpack(result)
        if pid < 0:
            raise OSError(-pid, os.strerror(-pid))
        return int(pid)

    def end(self) -> None:
        """End the template; the workers continue."""
        if self.pid:
            self._socket.close()
            with suppress(ProcessLookupError, ChildProcessError):  # this happens only if the system reaps children
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
            self.pid = 0


def fork_template(table: LoadedTable) -> WorkerTemplate | None:
    """Fork the template, with the first configuration; return `None` if processes have to be started as programs. In
    each forked process this does not return, but raises SystemExit when the process has ended. Call it before there is
    a loop or a thread, and outside of every block that must not be left twice."""
    if not can_adopt() or len(os.listdir("/proc/self/task")) > 1:
        return None
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()  # otherwise each worker would write the buffered output again
    load_shareable()
    gc.collect()
    gc.freeze()
    here, there = socket.socketpair()
    try:
        pid = os.fork()
    except OSError:
        here.close()
        there.close()
        return None
    if pid:
        there.close()
        here.setblocking(False)
        return WorkerTemplate(pid, here)
    here.close()
    kind, descriptors = _fork_on_request(there)
    _run_to_end(_program(kind, descriptors, table))


def _fork_on_request(requests: socket.socket) -> tuple[bytes, list[int]]:
    """Fork processes until the supervisor is gone, which ends this process. In each fork, return its kind and its
    descriptors."""
    name_process("dragoman-fork")
    os.setsid()  # Ctrl-C reaches every process of a terminal's session
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        # systemd sends SIGTERM to every process of a service. The supervisor ends the template, so the template ignores
        # the signal.
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    while True:
        request, descriptors, _, _ = socket.recv_fds(requests, 1, _DESCRIPTORS)
        if not request:
            os._exit(0)
        pid = _fork_for_adoption()
        if pid == 0:
            requests.close()
            return request, descriptors
        for descriptor in descriptors:
            os.close(descriptor)
        with suppress(OSError):  # the supervisor is gone, as the next read shows
            requests.sendall(_RESULT.pack(pid))


def _fork_for_adoption() -> int:
    """Fork a process whose parent has already ended when this returns the number of the process. Return 0 in the forked
    process, and the negative number of an error on failure."""
    reading, writing = os.pipe()
    try:
        between = os.fork()
    except OSError as error:
        os.close(reading)
        os.close(writing)
        return -(error.errno or errno.EAGAIN)
    if between == 0:
        return _fork_and_end(reading, writing)
    os.close(writing)
    result = os.read(reading, _RESULT.size)
    os.close(reading)
    os.waitpid(between, 0)
    return int(_RESULT.unpack(result)[0]) if result else -errno.EAGAIN


def _fork_and_end(reading: int, writing: int) -> int:
    """Run the intermediate process: fork the requested process, write its process number and end. Return 0 in the
    forked process."""
    try:
        pid = os.fork()
    except OSError as error:
        pid = -(error.errno or errno.EAGAIN)
    if pid:
        os.write(writing, _RESULT.pack(pid))
        os._exit(0)
    os.close(reading)
    os.close(writing)
    return 0


def _program(kind: bytes, descriptors: list[int], table: LoadedTable) -> Callable[[], None]:
    """Return the work of the requested process."""
    if kind == _LOADER:
        (link,) = descriptors
        return partial(loader_program.main, link)
    link, shared = descriptors
    return partial(main, link, shared, table)


def _run_to_end(work: Callable[[], None]) -> NoReturn:
    """Run the requested process to its end."""
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    status = 0
    try:
        work()
    except Exception:
        sys.excepthook(*sys.exc_info())
        status = 1
    raise SystemExit(status)
