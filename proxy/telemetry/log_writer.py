"""Write lines in a thread of its own, so that a slow, full or closed output never holds the gateway up."""

import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from select import PIPE_BUF
from typing import Protocol, TextIO

import orjson

MAX_LINE = 4096
MAX_QUEUED = 10_000
"""Bytes of a line, and lines that wait for a slow reader; more are dropped and counted."""

FLUSH_EVERY = 0.05
"""Seconds for which lines are collected, so that a busy gateway makes one system call for many lines."""

UNREAD = "nobody reads them"


class ByteSink(Protocol):
    """Where lines are written: a file without a buffer of its own, or bytes in memory."""

    def write(self, data: memoryview, /) -> int | None:
        """Return how many bytes were written; None when it would block. Raises OSError."""


class NullSink:
    """Discards everything."""

    def write(self, data: memoryview, /) -> int:
        """See ByteSink."""
        return len(data)


def unbuffered(stream: TextIO | None) -> ByteSink:
    """Return the file below a standard stream; `stream` is None where the program was started with it closed.

    A stream's buffer keeps what could not be written, and a write that blocks holds its lock, without which the
    interpreter cannot end.
    """
    if stream is None:
        return NullSink()
    stream.flush()
    sink: ByteSink = getattr(stream.buffer, "raw", stream.buffer)
    return sink


def collect() -> None:
    """Wait for more lines, to write them together."""
    time.sleep(FLUSH_EVERY)


def no_pause() -> None:
    """Write each line at once."""


class LineWriter:
    """Hands lines to a thread that writes them; a blocked pipe stalls the thread, not the gateway.

    `dropped` counts the lines that could not be written; `complain` is called when that begins, `recovered` when it is
    over (`complain` without it).
    The thread calls `pause` before it collects the lines of a batch.
    """

    def __init__(
        self,
        sink: ByteSink,
        complain: Callable[[str], None],
        pause: Callable[[], None] = collect,
        recovered: Callable[[str], None] | None = None,
    ) -> None:
        self._sink = sink
        self._pause = pause
        self._complain = complain
        self._recovered = recovered or complain
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._counting = threading.Lock()
        self._missing = 0
        self._torn = False
        self.dropped = 0
        self._thread = threading.Thread(target=self._run, name="log writer", daemon=True)
        self._thread.start()

    def write(self, line: bytes) -> None:
        """Queue one line, without its newline."""
        if self._lines.qsize() >= MAX_QUEUED:
            self._drop(1, UNREAD)
            return
        self._lines.put(line if len(line) <= MAX_LINE else _shorten(line))

    def close(self, timeout: float = 2.0) -> None:
        """Write what is queued and stop; give up after `timeout` seconds."""
        self._lines.put(None)
        self._thread.join(timeout)

    def _run(self) -> None:
        next_line, waiting = self._lines.get, self._lines.qsize
        batch = [next_line()]
        while True:
            if None not in batch:
                self._pause()
            batch += [next_line() for _ in range(waiting())]
            lines = [line for line in batch if line is not None]
            sound = [self._put(piece) for piece in _pieces(lines)]
            # While the queue is full, lines are still dropped.
            if sound and all(sound) and waiting() < MAX_QUEUED:
                self._written()
            if len(lines) < len(batch):
                return
            # While lines keep coming it pauses only, since to be woken by the first of each batch costs as much again.
            batch = [] if lines else [next_line()]

    def _put(self, piece: bytes) -> bool:
        """Write whole lines and return whether that succeeded."""
        text = b"\n" + piece if self._torn else piece
        left = memoryview(text)
        try:
            while left:
                taken = self._sink.write(left)
                if taken is None:  # another process has made the pipe non-blocking
                    time.sleep(FLUSH_EVERY)
                left = left[taken or 0 :]
        except (OSError, ValueError) as error:
            # The disk is full, or the reader is gone. The next line must begin on a line of its own.
            if done := len(text) - len(left):
                self._torn = text[done - 1 : done] != b"\n"
            self._drop(min(bytes(left).count(b"\n"), piece.count(b"\n")), getattr(error, "strerror", None) or UNREAD)
            return False
        self._torn = False
        return True

    def _drop(self, count: int, reason: str) -> None:
        with self._counting:
            first = not self._missing
            self._missing += count
            self.dropped += count
        if first:
            self._complain(f"lines of the access log are dropped: {reason}")

    def _written(self) -> None:
        with self._counting:
            missing, self._missing = self._missing, 0
        if missing:
            self._recovered(f"the access log is written again; {missing} lines of it were dropped")


def _pieces(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines, joined up to what a pipe takes atomically: other processes may write to it."""
    piece: list[bytes] = []
    size = 0
    for line in lines:
        size += len(line) + 1
        if size > PIPE_BUF and piece:
            yield b"\n".join((*piece, b""))
            piece, size = [], len(line) + 1
        piece.append(line)
    if piece:
        yield b"\n".join((*piece, b""))


class LineStream:
    """The stream of a logging handler, which writes through a LineWriter."""

    def __init__(self, writer: LineWriter) -> None:
        self._writer = writer

    def write(self, text: str) -> None:
        """Write a message, which ends in a newline."""
        self._writer.write(text.rstrip("\n").encode("utf-8", "backslashreplace"))


def _shorten(line: bytes) -> bytes:
    note = {"level": "warning", "message": "log line too long, cut", "start": line[:1024].decode("utf-8", "replace")}
    return orjson.dumps(note)
