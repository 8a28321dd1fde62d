"""The program of the process that redacts entries of the payload log and writes them to their file, or sends them to
their collector.

A pattern of the operator may take any time on a text of a client, and Python's `re` holds the interpreter's lock
meanwhile: only the end of the process stops it. Therefore the kernel ends this process at a limit of CPU time for each
entry, and at a limit of its address space. The process has no key of the gateway except the collector's, and no access
to the gateway's environment.

The first frame is a JSON object of WriterRules. Entries come in batches, each preceded by its number of entries. The
response to a batch is an error number, 0 if it was written.
"""

import re
import resource
import signal
import socket
import struct
import sys
from contextlib import closing
from typing import BinaryIO, Final

import orjson

from proxy.payload_log.payload_entry import HEAD, PayloadEntry, entry_line, read_head, response
from proxy.payload_log.payload_sinks import EntrySink, Finished, WriterRules, sink_of
from proxy.payload_log.redact_content import Patterns

CPU_SECONDS: Final = 2.0
"""The most CPU seconds for the redaction of one entry."""

MEMORY: Final = 1 << 30
"""The most bytes of address space. The Python values of an entry of a few MiB take dozens of times as much as the
entry."""

_SIZE: Final = struct.Struct("!I")


def rules_frame(rules: WriterRules) -> bytes:
    """Return the first frame."""
    data = orjson.dumps(rules._asdict())
    return _SIZE.pack(len(data)) + data


def batch_frame(entries: int) -> bytes:
    """Return the frame that precedes a batch of `entries` entries."""
    return _SIZE.pack(entries)


def main(descriptor: int) -> None:
    """Write the entries that come through a socket until its other end is closed."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":  # on other systems the address space of a process is not limited reliably
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
    with closing(sink_of(rules)) as sink:
        _write_all(link, frames, patterns, rules.most, sink)


def _write_all(link: socket.socket, frames: BinaryIO, patterns: Patterns, most: int, sink: EntrySink) -> None:
    while len(data := frames.read(_SIZE.size)) == _SIZE.size:
        finished = []
        for _ in range(_SIZE.unpack(data)[0]):
            entry = _next_entry(frames)
            if entry is None:
                return
            signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
            finished.append(Finished(entry.facts, entry_line(entry, patterns, most)))
            signal.setitimer(signal.ITIMER_PROF, 0)
        link.sendall(response(sink.write(finished)))


def _next_entry(frames: BinaryIO) -> PayloadEntry | None:
    data = frames.read(HEAD)
    if len(data) < HEAD:
        return None
    head = read_head(data)
    facts = frames.read(head.facts)
    request, answer = (None if size is None else frames.read(size) for size in (head.request, head.answer))
    return PayloadEntry(facts, request, answer, head.streamed)
