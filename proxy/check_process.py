"""The program of a process that holds answers against constraints, and the frames that it is spoken to in.

What a client writes as a schema or a pattern may cost any CPU time, memory and stack in native code, which nothing but
the end of a process stops. So this one ends itself, by limits that the kernel keeps: CPU time for each question, its
address space, and a stack that is as large as the deepest permitted validation. Never reads a file or opens a
connection.

A question is the kind of the check, two lengths and two texts: what is compiled, and the text to hold against it. The
answer is a verdict and its reason.
"""

import resource
import signal
import socket
import struct
import sys
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import Final

from providers.constraint_budget import CHECK_BYTES, CHECK_SECONDS, CHECK_SECONDS_PER_MEBIBYTE
from providers.guided import Unenforceable
from providers.verify import AnswerCheck, CheckKind, Verifier, verifier

MEBIBYTE: Final = 1 << 20

STACK_BYTES: Final = 256 * MEBIBYTE
"""Of address space; pages that are not touched cost nothing. A validator takes about 1 KiB for each schema that it is
in: MAX_CHAIN x MAX_ANSWER_DEPTH of them are 40 MiB (jsonschema-rs 0.60.3, measured in November 2026)."""

KEPT_BYTES: Final = 128 * MEBIBYTE
"""Resident memory beyond which the process does not take another question, so that none of it is kept."""

KEPT_CHECKS: Final = 32
"""Compiled checks that wait for their next answer."""

_KINDS: Final = tuple(CheckKind)
_QUESTION: Final = struct.Struct("!BII")
_ANSWER: Final = struct.Struct("!BI")
_NO_TEXT: Final = 2**32 - 1


class Verdict(IntEnum):
    """What became of a question: the text keeps the constraint, or none was given and the constraint compiles; the text
    breaks it; or there is no check to be had."""

    KEEPS = 0
    BREAKS = 1
    UNCHECKABLE = 2


def question(check: AnswerCheck, text: str | None) -> bytes:
    """The frame that asks about a text, or with None whether the constraint compiles."""
    asked = b"" if text is None else text.encode("utf-8", "replace")
    length = _NO_TEXT if text is None else len(asked)
    return b"".join([_QUESTION.pack(_KINDS.index(check.kind), len(check.written), length), check.written, asked])


ANSWER_HEAD: Final = _ANSWER.size


def answer_head(head: bytes) -> tuple[Verdict, int]:
    """The verdict, and how many bytes of reason follow."""
    verdict, length = _ANSWER.unpack(head)
    return Verdict(verdict), length


FAILED: Final = 3
"""Exit status after an exception, which is a MemoryError where the frames are sound."""


def main(descriptor: int) -> None:
    """Answer the questions that come through a socket until its other end is closed."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":  # elsewhere the address space of a process is not limited reliably
        resource.setrlimit(resource.RLIMIT_AS, (CHECK_BYTES, CHECK_BYTES))
    threading.stack_size(STACK_BYTES)
    with socket.socket(fileno=descriptor) as link:
        done = threading.Event()
        thread = threading.Thread(target=_serve, args=(link, done))
        thread.start()
        thread.join()
    sys.exit(0 if done.is_set() else FAILED)


_Checks = OrderedDict[tuple[CheckKind, bytes], Verifier | Unenforceable]


def _serve(link: socket.socket, done: threading.Event) -> None:
    """Answer until there are no more questions, or memory has been taken that is not worth keeping; then set `done`."""
    checks: _Checks = OrderedDict()
    with link.makefile("rb") as frames:
        while head := frames.read(_QUESTION.size):
            kind, size, length = _QUESTION.unpack(head)
            key = _KINDS[kind], frames.read(size)
            text = None if length == _NO_TEXT else frames.read(length).decode()
            verdict, reason = _answer(checks, key, text)
            said = reason.encode()
            link.sendall(_ANSWER.pack(verdict, len(said)) + said)
            if _resident() > KEPT_BYTES:
                break
    done.set()


def _answer(checks: _Checks, key: tuple[CheckKind, bytes], text: str | None) -> tuple[Verdict, str]:
    check = checks.get(key)
    if check is None:
        check = checks[key] = _compiled(key)
        if len(checks) > KEPT_CHECKS:
            checks.popitem(last=False)
    checks.move_to_end(key)
    if isinstance(check, Unenforceable):
        return Verdict.UNCHECKABLE, check.reason
    if text is None:
        return Verdict.KEEPS, ""
    with _cpu_limited(len(text)):
        broken = check(text)
    return (Verdict.KEEPS, "") if broken is None else (Verdict.BREAKS, broken)


def _compiled(key: tuple[CheckKind, bytes]) -> Verifier | Unenforceable:
    kind, written = key
    with _cpu_limited(len(written)):
        try:
            return verifier(AnswerCheck("", kind, written))
        except Unenforceable as error:
            return error


@contextmanager
def _cpu_limited(size: int) -> Iterator[None]:
    """Within the block the kernel ends this process by SIGPROF after the CPU time that so many bytes are worth. A
    handler in Python would not run while native code does."""
    signal.setitimer(signal.ITIMER_PROF, CHECK_SECONDS + CHECK_SECONDS_PER_MEBIBYTE * size / MEBIBYTE)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)


def _resident() -> int:
    """Bytes of memory that are resident; 0 where the system does not say."""
    # Not getrusage: on Linux its maximum begins with that of the process which started this one.
    try:
        with open("/proc/self/statm", "rb") as pages:
            return int(pages.read().split()[1]) * resource.getpagesize()
    except FileNotFoundError:
        return 0
