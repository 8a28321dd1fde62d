"""The template of the programs that tests start: a process that has loaded what `serve` loads, and is forked for each.

To start the interpreter and import the gateway takes a second of CPU, a fork a hundredth. What is forked is a process
of its own with the descriptors, the environment and the folder that it was asked for, and a child of the process that
asked (`proxy.workers.adopted_process`). It differs from a program that was started in what
`proxy.workers.worker_template` names; the kernel shows the template's command line for it.

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
"""What is imported before the first fork, with all that these import."""

LARGEST_ORDER: Final = 1 << 20
MOST_DESCRIPTORS: Final = 8
NUMBER: Final = struct.Struct("=i")
"""The process's number, the answer to an order."""

_ASIDE: Final = 100
"""Descriptors from here on are none that an order names."""


def main(descriptor: int) -> None:
    """Load, and fork on request until the other end is closed. Returns in the template and, at their ends, in the
    processes that were forked."""
    for module in LOADED:
        importlib.import_module(module)
    Source(None, {}).load()
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches it too, and its owner ends it
    with socket.socket(fileno=descriptor) as requests:
        order = _fork_on_request(requests)
    if order is not None:
        _run(order)


def _fork_on_request(requests: socket.socket) -> "tuple[dict[str, object], list[int]] | None":
    """Fork until nobody is there to ask; None then. Return in each process what it was asked for."""
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
        # It has ended, so that what it forked is the asking process's child, before that learns the number.
        os.waitpid(between, 0)
        made_number = os.read(reading, NUMBER.size)
        os.close(reading)
        with suppress(ConnectionError):
            requests.sendall(made_number)


def _fork_and_end(writing: int) -> None:
    """Fork the program, write its number and end; return in the program when that has happened."""
    end, held = os.pipe()
    between, made = os.getpid(), os.fork()
    if made:
        os.write(writing, NUMBER.pack(made))
        os._exit(0)
    os.close(writing)
    os.close(held)
    os.read(end, 1)  # nothing, once nobody holds the other end
    os.close(end)
    # A process that ends closes what it holds before its children are another's.
    while os.getppid() == between:
        time.sleep(0.001)


def _run(ordered: "tuple[dict[str, object], list[int]]") -> None:
    """Be the program that was asked for: `python ARGUMENTS`, with `-m MODULE` or `-c CODE`."""
    order, descriptors = ordered
    if order["session"]:
        os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    cores, wanted = order["cores"], order["descriptors"]
    assert isinstance(cores, list)
    os.sched_setaffinity(0, cores)  # the template may have been started while its owner had fewer
    assert isinstance(wanted, list)
    _place(descriptors, wanted)
    _reopen_output()
    directory, environment, arguments = order["directory"], order["environment"], order["arguments"]
    assert isinstance(directory, str)
    assert isinstance(environment, dict)
    assert isinstance(arguments, list)
    os.chdir(directory)
    for name in set(os.environ) - {"LC_CTYPE"}:  # that one the interpreter has set for itself (PEP 538)
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
        # What it inherited is not taken apart, which would copy all of it.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def _place(descriptors: Sequence[int], wanted: Sequence[int]) -> None:
    """Give each descriptor the number that it is to have."""
    aside = [fcntl.fcntl(each, fcntl.F_DUPFD_CLOEXEC, _ASIDE) for each in descriptors]
    for each in descriptors:
        os.close(each)
    for each, number in zip(aside, wanted, strict=True):
        os.dup2(each, number)
        os.close(each)


def _reopen_output() -> None:
    """Open the standard streams anew: what there were had been opened on the template's."""
    for name, number, errors in (("stdout", 1, "strict"), ("stderr", 2, "backslashreplace")):
        raw = io.FileIO(number, "w", closefd=False)
        stream = io.TextIOWrapper(io.BufferedWriter(raw), encoding="utf-8", errors=errors, line_buffering=number == 2)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def _hook(environment: Mapping[str, str]) -> None:
    """Do what the interpreter does with PYTHONPATH: put it on the path, and run its `sitecustomize`."""
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
