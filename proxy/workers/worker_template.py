"""The template of the workers: a process in which all that they share is loaded, and from which they are forked, and
with them the process that loads the ledger.

It is forked from the supervisor before that has a loop, a thread or a socket, with the modules imported, the first
table built and all of it frozen: the garbage collector does not go through frozen objects, so their memory pages stay
shared between the supervisor, the template and the workers. From then on it does nothing but fork, also for a worker
that follows one which ended: the supervisor itself cannot fork, for its threads may hold locks that nobody would ever
release in the child. A table that comes later is each worker's own.

A forked worker is the supervisor's child (`proxy.workers.adopted_process`), in a session of its own. It differs from a
program that was started in four things, which hold for whatever is imported before the fork:

- nothing there may open a descriptor, start a thread, begin an event loop or set a signal handler: all of it comes
  after the fork, in `proxy.workers.worker_main` and `proxy.accounting.loader_program`. Where there is a second thread
  all the same (of a profiler, for one), there is no template;
- what is drawn at random there is equal in all workers. The functions of `random` are seeded anew by Python, OpenSSL's
  source by itself; a generator of one's own must do so (`proxy.request_record`);
- it ends as a program does, through the stack that it was forked within, so there may be no `finally` and no `with` on
  the way from there to `main`;
- its address space is laid out as in its siblings.

Where the system lacks what this needs, or the template is gone (by the hand of an operator, or for lack of memory),
workers are started as programs, which takes some 40 MB more for each.
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
"""Seconds that a fork may take; the template is then given up."""

_RESULT: Final = struct.Struct("=i")
"""The number of a process, or the negative number of an error."""

_WORKER: Final = b"w"
_LOADER: Final = b"l"
"""The requests for one process. With it come its end of a socket pair and, for a worker, the file of its heartbeat."""

_DESCRIPTORS: Final = 2
"""At most."""


class TemplateGone(Exception):
    """The template has ended, or does not respond."""


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
        """Start a process; None once the template is gone. Raises OSError."""
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
        """End the template; the workers go on."""
        if self.pid:
            self._socket.close()
            with suppress(ProcessLookupError, ChildProcessError):  # only where the system reaps children
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
            self.pid = 0


def fork_template(table: LoadedTable) -> WorkerTemplate | None:
    """Fork the template, with the first table; None where processes have to be started as programs. In each of them
    this does not return, but raises SystemExit when the process has ended. To be called before there is a loop or a
    thread, and outside of every block that must not be left twice."""
    if not can_adopt() or len(os.listdir("/proc/self/task")) > 1:
        return None
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()  # or each worker would write what is left again
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
    """Fork processes until the supervisor is gone, which ends this one. Return in each, with what it is to be and its
    descriptors."""
    name_process("dragoman-fork")
    os.setsid()  # Ctrl-C reaches every process of a terminal's session
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        # systemd sends SIGTERM to every process of a service. The supervisor ends this one.
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    while True:
        request, descriptors, _, _ = socket.recv_fds(requests, 1, _DESCRIPTORS)
        if not request:
            os._exit(0)
        made = _fork_for_adoption()
        if made == 0:
            requests.close()
            return request, descriptors
        for descriptor in descriptors:
            os.close(descriptor)
        with suppress(OSError):  # the supervisor is gone, which the next look says
            requests.sendall(_RESULT.pack(made))


def _fork_for_adoption() -> int:
    """Fork a process whose parent has ended when this returns its number; return 0 in that process, or the negative
    number of an error."""
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
    """Be the process in between: write the number of the one forked here and end. Return 0 in that one."""
    try:
        made = os.fork()
    except OSError as error:
        made = -(error.errno or errno.EAGAIN)
    if made:
        os.write(writing, _RESULT.pack(made))
        os._exit(0)
    os.close(reading)
    os.close(writing)
    return 0


def _program(kind: bytes, descriptors: list[int], table: LoadedTable) -> Callable[[], None]:
    """Return what the process that was asked for does."""
    if kind == _LOADER:
        (link,) = descriptors
        return partial(loader_program.main, link)
    link, shared = descriptors
    return partial(main, link, shared, table)


def _run_to_end(work: Callable[[], None]) -> NoReturn:
    """Be the process that was asked for, to its end."""
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
