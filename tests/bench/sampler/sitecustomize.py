"""Samples the main thread's stacks of the process that imports it: put this folder into PYTHONPATH, and name a file in
BENCH_SAMPLES.

Python imports a module of this name when it starts. SIGRTMIN + 5 begins the sampling. Sent again, the signal ends it
and writes the stacks, one on each line: the functions from the outermost on, joined by semicolons, and the number of
samples. The timer counts the thread's CPU time, in kernel and program, so waiting is not sampled. The kernel checks the
timer at its clock tick, a few milliseconds apart. The timer comes from timer_create(2), since the gateway's watchdog
uses the timer of setitimer(2). A sample during a C call, such as a system call, counts for the function that made the
call.
"""

import ctypes
import os
import signal
import struct
import sys
from collections import Counter
from pathlib import Path
from types import FrameType

EVERY = 1_000_000
"""Nanoseconds of CPU between two samples, or the kernel's tick if that is longer."""

SWITCH, SAMPLE = signal.SIGRTMIN + 5, signal.SIGRTMIN + 6
_THREAD_CPU, _NOTIFY_BY_SIGNAL = 3, 0
_LIBC = ctypes.CDLL(None, use_errno=True)
_TIMER = ctypes.c_void_p()
_STACKS: Counter[str] = Counter()
_STATE = {"running": False, "made": False}


TOPS = ("site-packages", f"python{sys.version_info.major}.{sys.version_info.minor}")
PACKAGES = ("config", "providers", "proxy")


def shortened(path: str) -> str:
    """Return a file's path from its package on."""
    parts = Path(path).parts
    for top in TOPS:
        if top in parts:
            return "/".join(parts[parts.index(top) + 1 :])
    for package in PACKAGES:
        if package in parts:
            return "/".join(parts[parts.index(package) :])
    return "/".join(parts[-2:])


def named(frame: FrameType) -> str:
    """Return a function with its file. If the function was generated from a text, as for dataclasses, return it with
    its object's class."""
    code = frame.f_code
    function = getattr(code, "co_qualname", code.co_name)
    if code.co_filename == "<string>" and code.co_argcount:
        return f"<string>:{type(frame.f_locals[code.co_varnames[0]]).__qualname__}.{code.co_name}"
    return f"{shortened(code.co_filename)}:{function}"


def sample(number: int, frame: FrameType | None) -> None:
    """Count the current stack."""
    names: list[str] = []
    while frame is not None:
        names.append(named(frame))
        frame = frame.f_back
    _STACKS[";".join(reversed(names))] += 1


def switch(number: int, frame: FrameType | None) -> None:
    """Begin, or end and write."""
    _STATE["running"] = not _STATE["running"]
    if not _STATE["made"]:
        event = struct.pack("qii48x", 0, SAMPLE, _NOTIFY_BY_SIGNAL)
        _checked(_LIBC.timer_create(_THREAD_CPU, event, ctypes.byref(_TIMER)))
        _STATE["made"] = True
    every = EVERY if _STATE["running"] else 0
    _checked(_LIBC.timer_settime(_TIMER, 0, struct.pack("qqqq", 0, every, 0, every), None))
    if not _STATE["running"]:
        path = Path(os.environ["BENCH_SAMPLES"])
        unfinished = path.with_suffix(".unfinished")
        unfinished.write_text("".join(f"{stack} {count}\n" for stack, count in _STACKS.items()), encoding="utf-8")
        unfinished.rename(path)


def _checked(result: int) -> None:
    if result:
        raise OSError(ctypes.get_errno(), "the sampling timer")


if "BENCH_SAMPLES" in os.environ:
    signal.signal(SAMPLE, sample)
    signal.signal(SWITCH, switch)
