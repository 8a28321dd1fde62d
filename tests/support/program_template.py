"""The template of the programs that tests start: a process that has loaded the modules of `serve`, and is forked for
each program.

Starting the interpreter and importing the gateway takes a second of CPU, a fork a hundredth. A forked program is a
process of its own with the ordered descriptors, environment and folder, and a child of the process that ordered it
(`proxy.workers.adopted_process`). It differs from a started program in the points that `proxy.workers.worker_template`
lists. The kernel shows the template's command line for it.

Run by `tests.support.forked_program`, as `python -m tests.support.program_template DESCRIPTOR`.
"""

import fcntl
import gc
import importlib
import io
import os
import runpy
import signal
import socket
import struct
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

import orjson

from proxy.process.load_table import Source

LOADED: Final = (
    "proxy.accounting.loader_program",
    "proxy.cli.main",
    "proxy.cli.serve_command",
    "proxy.workers.assemble_supervisor",
    "proxy.workers.worker_template",
)
"""The modules that are imported before the first fork, with all of their imports."""

LARGEST_ORDER: Final = 1 << 20
MOST_DESCRIPTORS: Final = 8
NUMBER: Final = struct.Struct("=i")
"""The response to an order: the process id."""

_ASIDE: Final = 100
"""Orders name only descriptors below this number."""


def main(descriptor: int) -> None:
    """Load the modules, and fork on request until the other end is closed. Return in the template, and in each forked
    process at its own end."""
    for module in LOADED:
        importlib.import_module(module)
    Source(None, {}).load()
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches it too, but its owner ends it
    with socket.socket(fileno=descriptor) as requests:
        order = _fork_on_request(requests)
    if order is not None:
        _run(order)


def _fork_on_request(requests: socket.socket) -> "tuple[dict[str, object], list[int]] | None":
    """Fork on request until the other end is closed, then return `None`. In each forked process, return its order."""
    while True:
        try:
            text, descriptors, _, _ = socket.recv_fds(requests, LARGEST_ORDER, MOST_DESCRIPTORS)
        except ConnectionError:
            return None
        if not text:
            return None
        reading, writing = os.pipe()
        between = os.fork()
        if between == 0:
            os.close(reading)
            _fork_and_end(writing)
            return orjson.loads(text), descriptors
        os.close(writing)
        for descriptor in descriptors:
            os.close(descriptor)
        # The forked program becomes a child of the ordering process when the process in between ends. So wait for that
        # before the number is sent.
        os.waitpid(between, 0)
        made_number = os.read(reading, NUMBER.size)
        os.close(reading)
        with suppress(ConnectionError):
            requests.sendall(made_number)


def _fork_and_end(writing: int) -> None:
    """Fork the program, write its process id and end. In the program, return when its parent has ended."""
    end, held = os.pipe()
    between, made = os.getpid(), os.fork()
    if made:
        os.write(writing, NUMBER.pack(made))
        os._exit(0)
    os.close(writing)
    os.close(held)
    os.read(end, 1)  # returns when no process holds the other end
    os.close(end)
    # A process that ends closes its descriptors before its children get another parent.
    while os.getppid() == between:
        time.sleep(0.001)


def _run(ordered: "tuple[dict[str, object], list[int]]") -> None:
    """Run the ordered program: `python ARGUMENTS`, with `-m MODULE` or `-c CODE`."""
    order, descriptors = ordered
    if order["session"]:
        os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    cores, wanted = order["cores"], order["descriptors"]
    assert isinstance(cores, list)
    os.sched_setaffinity(0, cores)  # the template may have been started while its owner had fewer cores
    assert isinstance(wanted, list)
    _place(descriptors, wanted)
    _reopen_output()
    directory, environment, arguments = order["directory"], order["environment"], order["arguments"]
    assert isinstance(directory, str)
    assert isinstance(environment, dict)
    assert isinstance(arguments, list)
    os.chdir(directory)
    for name in set(os.environ) - {"LC_CTYPE"}:  # the interpreter has set LC_CTYPE itself (PEP 538)
        del os.environ[name]
    os.environ.update(environment)
    _hook(environment)
    way, program, *rest = [each for each in arguments if each != "-P"]
    if way == "-m":
        sys.argv = [program, *rest]
        runpy.run_module(program, run_name="__main__", alter_sys=True)
    else:
        sys.argv = ["-c", *rest]
        exec(program, {"__name__": "__main__"})  # noqa: S102 - as the interpreter does with -c
        # Exit without freeing the inherited objects, because that would copy all of their memory.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def _place(descriptors: Sequence[int], wanted: Sequence[int]) -> None:
    """Give each descriptor its number in the program."""
    aside = [fcntl.fcntl(each, fcntl.F_DUPFD_CLOEXEC, _ASIDE) for each in descriptors]
    for each in descriptors:
        os.close(each)
    for each, number in zip(aside, wanted, strict=True):
        os.dup2(each, number)
        os.close(each)


def _reopen_output() -> None:
    """Open the standard streams again: the existing ones belong to the template's descriptors."""
    for name, number, errors in (("stdout", 1, "strict"), ("stderr", 2, "backslashreplace")):
        raw = io.FileIO(number, "w", closefd=False)
        stream = io.TextIOWrapper(io.BufferedWriter(raw), encoding="utf-8", errors=errors, line_buffering=number == 2)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def _hook(environment: Mapping[str, str]) -> None:
    """Apply PYTHONPATH as the interpreter does: put it on the path, and run its `sitecustomize`."""
    folders = environment.get("PYTHONPATH")
    if not folders:
        return
    sys.path[1:1] = folders.split(os.pathsep)
    sys.modules.pop("sitecustomize", None)
    importlib.invalidate_caches()
    with suppress(ModuleNotFoundError):
        importlib.import_module("sitecustomize")


if __name__ == "__main__":
    main(int(sys.argv[1]))
