"""Writes lines in a separate thread, so that a slow, full or closed output never blocks the gateway."""

import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from select import PIPE_BUF
from typing import Protocol, TextIO

import orjson

MAX_LINE = 4096
MAX_QUEUED = 10_000
"""The most bytes of a line, and the most lines that wait for a slow reader. Further lines are dropped and counted."""

FLUSH_EVERY = 0.05
"""Lines are collected for this many seconds before they are written, so that a busy gateway makes one system call for
many lines."""

NO_READER = "nothing reads them"


class ByteSink(Protocol):
    """The destination of the lines: a file without its own buffer, or bytes in memory."""

    def write(self, data: memoryview, /) -> int | None:
        """Return the number of bytes that were written; `None` if the write would block. Raises OSError."""


class NullSink:
    """Discards everything."""

    def write(self, data: memoryview, /) -> int:
        """Return the length of the data, as if it had been written."""
        return len(data)


def unbuffered(stream: TextIO | None) -> ByteSink:
    """Return the file below a standard stream; `stream` is `None` if the program was started with it closed.

    The buffer of a stream retains data that could not be written. A blocked write holds the lock of the buffer, and the
    interpreter needs this lock to end.
    """
    if stream is None:
        return NullSink()
    stream.flush()
    sink: ByteSink = getattr(stream.buffer, "raw", stream.buffer)
    return sink


def collect() -> None:
    """Wait for more lines, in order to write them together."""
    time.sleep(FLUSH_EVERY)


def no_pause() -> None:
    """Do not wait, so that each line is written at once."""


class LineWriter:
    """Passes lines to a thread that writes them; a blocked pipe stalls the thread, not the gateway.

    `dropped` counts the lines that could not be written. `report_loss` is called when lines begin to be dropped, and
    `recovered` when this ends (by default `report_loss`). The thread calls `pause` before it collects the lines of a
    batch.
    """

    def __init__(
        self,
        sink: ByteSink,
        report_loss: Callable[[str], None],
        pause: Callable[[], None] = collect,
        recovered: Callable[[str], None] | None = None,
    ) -> None:
        self._sink = sink
        self._pause = pause
        self._report_loss = report_loss
        self._recovered = recovered or report_loss
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._counting = threading.Lock()
        self._missing = 0
        self._mid_line = False
        self.dropped = 0
        self._thread = threading.Thread(target=self._run, name="log writer", daemon=True)
        self._thread.start()

    def write(self, line: bytes) -> None:
        """Queue one line, without its newline."""
        if self._lines.qsize() >= MAX_QUEUED:
            self._drop(1, NO_READER)
            return
        self._lines.put(line if len(line) <= MAX_LINE else _shorten(line))

    def close(self, timeout: float = 2.0) -> None:
        """Write the queued lines and stop; give up after `timeout` seconds."""
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
            succeeded = [self._write_chunk(chunk) for chunk in _joined_lines(lines)]
            # While the queue is full, lines are still dropped.
            if succeeded and all(succeeded) and waiting() < MAX_QUEUED:
                self._written()
            if len(lines) < len(batch):
                return
            # As long as lines come, the thread pauses instead of waiting for a line, because waking it for the first
            # line of each batch would double the cost.
            batch = [] if lines else [next_line()]

    def _write_chunk(self, chunk: bytes) -> bool:
        """Write complete lines and return whether that succeeded."""
        text = b"\n" + chunk if self._mid_line else chunk
        left = memoryview(text)
        try:
            while left:
                taken = self._sink.write(left)
                if taken is None:  # another process has made the pipe non-blocking
                    time.sleep(FLUSH_EVERY)
                left = left[taken or 0 :]
        except (OSError, ValueError) as error:
            # The disk is full, or the reader is gone. The next line must begin on a new line.
            if done := len(text) - len(left):
                self._mid_line = text[done - 1 : done] != b"\n"
            self._drop(min(bytes(left).count(b"\n"), chunk.count(b"\n")), getattr(error, "strerror", None) or NO_READER)
            return False
        self._mid_line = False
        return True

    def _drop(self, count: int, reason: str) -> None:
        with self._counting:
            first = not self._missing
            self._missing += count
            self.dropped += count
        if first:
            self._report_loss(f"lines of the access log are dropped: {reason}")

    def _written(self) -> None:
        with self._counting:
            missing, self._missing = self._missing, 0
        if missing:
            self._recovered(f"the access log is written again; {missing} lines of it were dropped")


def _joined_lines(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines, joined up to the size that a pipe takes atomically, because other processes may write to it."""
    chunk: list[bytes] = []
    size = 0
    for line in lines:
        size += len(line) + 1
        if size > PIPE_BUF and chunk:
            yield b"\n".join((*chunk, b""))
            chunk, size = [], len(line) + 1
        chunk.append(line)
    if chunk:
        yield b"\n".join((*chunk, b""))


class LineStream:
    """The stream of a logging handler, which writes through a LineWriter."""

    def __init__(self, writer: LineWriter) -> None:
        self._writer = writer

    def write(self, text: str) -> None:
        """Write a message, which ends with a newline."""
        self._writer.write(text.rstrip("\n").encode("utf-8", "backslashreplace"))


def _shorten(line: bytes) -> bytes:
    note = {"level": "warning", "message": "log line too long, cut", "start": line[:1024].decode("utf-8", "replace")}
    return orjson.dumps(note)
