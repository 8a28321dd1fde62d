"""The program of the process that redacts entries of the payload log and writes them to their file.

A pattern of the operator's may take any time on a text of a client's, and Python's `re` holds the interpreter's lock
meanwhile: only the end of a process stops it. So the kernel ends this one by a limit of CPU time for each entry, and of
its address space. It has no key of the gateway's, and nothing of its environment.

The first frame is a JSON object of WriterRules; each entry is answered by an error number, 0 where it was written.
"""

import re
import resource
import signal
import socket
import struct
import sys
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

import orjson

from proxy.payload_log.payload_entry import HEAD, PayloadEntry, entry_line, read_head, response
from proxy.payload_log.payload_file import PayloadFile

CPU_SECONDS: Final = 2.0
"""For the redaction of one entry."""

MEMORY: Final = 1 << 30
"""Bytes of address space: an entry of a few MiB takes some dozens of times as much as Python's values."""

_SIZE: Final = struct.Struct("!I")


class WriterRules(NamedTuple):
    """What the process is told first."""

    file: str
    most: int
    redact: list[str]
    rotate: int
    keep: int


def rules_frame(rules: WriterRules) -> bytes:
    """Return the first frame."""
    data = orjson.dumps(rules._asdict())
    return _SIZE.pack(len(data)) + data


def main(descriptor: int) -> None:
    """Write the entries that come through a socket until its other end is closed."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":  # elsewhere the address space of a process is not limited reliably
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    with socket.socket(fileno=descriptor) as link, link.makefile("rb") as frames:
        serve(link, frames)


def serve(link: socket.socket, frames: BinaryIO) -> None:
    """Write the entries of these frames until they end."""
    size = frames.read(_SIZE.size)
    if len(size) < _SIZE.size:
        return
    rules = WriterRules(**orjson.loads(frames.read(_SIZE.unpack(size)[0])))
    patterns = [re.compile(pattern) for pattern in rules.redact]
    file = PayloadFile(Path(rules.file), rules.rotate, rules.keep)
    while entry := _next_entry(frames):
        signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
        line = entry_line(entry, patterns, rules.most)
        signal.setitimer(signal.ITIMER_PROF, 0)
        try:
            file.append(line)
        except OSError as error:
            link.sendall(response(error.errno or -1))
        else:
            link.sendall(response(0))


def _next_entry(frames: BinaryIO) -> PayloadEntry | None:
    data = frames.read(HEAD)
    if len(data) < HEAD:
        return None
    head = read_head(data)
    facts = frames.read(head.facts)
    request, answer = (None if size is None else frames.read(size) for size in (head.request, head.answer))
    return PayloadEntry(facts, request, answer, head.streamed)
