"""The program of a process that validates responses against constraints, and the frames of its protocol.

A client's schema or pattern may take any CPU time, memory and stack in native code, which only the end of the process
stops. Therefore the kernel ends this process at limits: CPU time for each request, its address space, and a stack that
is as large as the deepest permitted validation. It never reads a file or opens a connection.

A request is the kind of the check, two lengths and two texts: the constraint to compile, and the text to validate. The
response is a verdict and its reason.
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

from providers.constraints.complexity_limits import CHECK_BYTES, CHECK_SECONDS, CHECK_SECONDS_PER_MEBIBYTE
from providers.constraints.constraint_styles import Unenforceable
from providers.emulation.check_answer import AnswerCheck, CheckKind, Verifier, compile_check

MEBIBYTE: Final = 1 << 20

STACK_BYTES: Final = 256 * MEBIBYTE
"""The bytes of address space for the stack; untouched pages cost nothing. A validator takes about 1 KiB for each nested
schema: MAX_CHAIN x MAX_ANSWER_DEPTH of them are 40 MiB (jsonschema-rs 0.60.3, measured in November 2026)."""

KEPT_BYTES: Final = 128 * MEBIBYTE
"""Bytes of resident memory beyond which the process ends after a request, in order to free the memory."""

KEPT_CHECKS: Final = 32
"""The most compiled checks that are cached."""

_KINDS: Final = tuple(CheckKind)
_REQUEST: Final = struct.Struct("!BII")
_RESPONSE: Final = struct.Struct("!BI")
_NO_TEXT: Final = 2**32 - 1


class CheckVerdict(IntEnum):
    """The result of a check: the text keeps the constraint, the text breaks it, or the constraint cannot be checked.
    Without a text, the first result means that the constraint compiles."""

    KEEPS = 0
    BREAKS = 1
    UNCHECKABLE = 2


def check_request(check: AnswerCheck, text: str | None) -> bytes:
    """Return the request to validate a text, or to compile the constraint if the text is `None`."""
    encoded = b"" if text is None else text.encode("utf-8", "replace")
    length = _NO_TEXT if text is None else len(encoded)
    return b"".join([_REQUEST.pack(_KINDS.index(check.kind), len(check.written), length), check.written, encoded])


RESPONSE_HEAD: Final = _RESPONSE.size


def response_head(head: bytes) -> tuple[CheckVerdict, int]:
    """Return the verdict, and the number of bytes of the reason that follows."""
    verdict, length = _RESPONSE.unpack(head)
    return CheckVerdict(verdict), length


FAILED: Final = 3
"""The exit status after an exception; for valid frames this can only be a MemoryError."""


def main(descriptor: int) -> None:
    """Respond to the requests that come through a socket until its other end is closed."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":  # on other systems the address space of a process is not limited reliably
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
    """Respond until there are no more requests, or until more than KEPT_BYTES of memory are used; then set `done`."""
    checks: _Checks = OrderedDict()
    with link.makefile("rb") as frames:
        while head := frames.read(_REQUEST.size):
            kind, size, length = _REQUEST.unpack(head)
            key = _KINDS[kind], frames.read(size)
            text = None if length == _NO_TEXT else frames.read(length).decode()
            verdict, reason = _checked(checks, key, text)
            encoded = reason.encode()
            link.sendall(_RESPONSE.pack(verdict, len(encoded)) + encoded)
            if _resident() > KEPT_BYTES:
                break
    done.set()


def _checked(checks: _Checks, key: tuple[CheckKind, bytes], text: str | None) -> tuple[CheckVerdict, str]:
    check = checks.get(key)
    if check is None:
        check = checks[key] = _compiled(key)
        if len(checks) > KEPT_CHECKS:
            checks.popitem(last=False)
    checks.move_to_end(key)
    if isinstance(check, Unenforceable):
        return CheckVerdict.UNCHECKABLE, check.reason
    if text is None:
        return CheckVerdict.KEEPS, ""
    with _cpu_limited(len(text)):
        broken = check(text)
    return (CheckVerdict.KEEPS, "") if broken is None else (CheckVerdict.BREAKS, broken)


def _compiled(key: tuple[CheckKind, bytes]) -> Verifier | Unenforceable:
    kind, written = key
    with _cpu_limited(len(written)):
        try:
            return compile_check(AnswerCheck("", kind, written))
        except Unenforceable as error:
            return error


@contextmanager
def _cpu_limited(size: int) -> Iterator[None]:
    """Let the kernel end this process by SIGPROF if the block takes more CPU time than `size` bytes may take. A Python
    handler would not run while native code runs."""
    signal.setitimer(signal.ITIMER_PROF, CHECK_SECONDS + CHECK_SECONDS_PER_MEBIBYTE * size / MEBIBYTE)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)


def _resident() -> int:
    """Return the resident memory in bytes; 0 if the system does not report it."""
    # getrusage cannot be used: on Linux its maximum begins with the value of the process that started this one.
    try:
        with open("/proc/self/statm", "rb") as pages:
            return int(pages.read().split()[1]) * resource.getpagesize()
    except FileNotFoundError:
        return 0
