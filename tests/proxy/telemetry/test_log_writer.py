"""Lines reach their reader or are counted as dropped, and never delay the gateway."""

import os
import queue
import threading
from io import BytesIO, TextIOWrapper
from select import PIPE_BUF

import orjson
import pytest
from typing_extensions import override

from proxy.telemetry import log_writer as writer_module
from proxy.telemetry.log_writer import MAX_LINE, LineStream, LineWriter, unbuffered


def fail_on_drop(message: str) -> None:
    """Fail: nothing may be dropped."""
    raise AssertionError(message)


class Blocked(BytesIO):
    """A reader that does not read until `free` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.free = threading.Event()

    @override
    def write(self, data: object) -> int:
        self.free.wait()
        return super().write(data)  # type: ignore[arg-type]  # the buffer type has no public name


class Gone(BytesIO):
    """A reader that disconnected."""

    @override
    def write(self, data: object) -> int:
        raise BrokenPipeError(32, "Broken pipe")


def test_lines_are_written_in_order_and_all_of_them_at_the_end() -> None:
    stream = BytesIO()
    writer = LineWriter(stream, fail_on_drop)
    for number in range(1000):
        writer.write(b"%d" % number)
    writer.close()
    assert stream.getvalue().split() == [b"%d" % number for number in range(1000)]


def test_a_reader_that_stalls_costs_lines_and_no_time_and_both_ends_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "MAX_QUEUED", 10)
    stream = Blocked()
    told: list[str] = []
    writer = LineWriter(stream, told.append)
    for _ in range(100):
        writer.write(b"line")
    assert writer.dropped >= 80
    assert told == ["lines of the access log are dropped: nothing reads them"]
    writer.close(timeout=0.01)
    stream.free.set()
    writer.close()
    assert stream.getvalue().count(b"line\n") == 100 - writer.dropped
    assert told[1:] == [f"the access log is written again; {writer.dropped} lines of it were dropped"]


def test_a_reader_that_left_stops_nothing() -> None:
    told: list[str] = []
    writer = LineWriter(Gone(), told.append)
    writer.write(b"one")
    writer.write(b"two")
    writer.close()
    assert writer.dropped == 2
    assert told == ["lines of the access log are dropped: Broken pipe"]


class Small(BytesIO):
    """A reader that accepts `room` bytes, then nothing until there is room again."""

    def __init__(self, room: int) -> None:
        super().__init__()
        self.room = room

    @override
    def write(self, data: object) -> int | None:  # type: ignore[override]  # as a raw file does
        if not self.room:
            raise OSError(28, "No space left on device")
        took = super().write(memoryview(data)[: min(3, self.room)])  # type: ignore[arg-type]  # the same
        self.room -= took
        return took


# At 5 only the newline is missing; the next line brings it.
@pytest.mark.parametrize("room", [0, 1, 4, 6, 7, 11])
def test_after_a_full_disk_lines_begin_anew(room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "FLUSH_EVERY", 0.0)
    stream = Small(room)
    complaints: queue.SimpleQueue[str] = queue.SimpleQueue()
    writer = LineWriter(stream, complaints.put)
    writer.write(b"first")
    if room < 6:
        assert complaints.get(timeout=30) == "lines of the access log are dropped: No space left on device"
        stream.room = 99
    writer.write(b"second")
    if 6 <= room < 12:
        complaints.get(timeout=30)
        stream.room = 99
    writer.write(b"third")
    writer.close()
    lines = stream.getvalue().splitlines()
    whole = [line for line in lines if line in (b"first", b"second", b"third")]
    assert (len(whole), lines[-1]) == (3 - writer.dropped, b"third")
    assert writer.dropped == 1


class Hesitant(BytesIO):
    """A reader that accepts nothing the first few times."""

    refusals = 3

    @override
    def write(self, data: object) -> int | None:  # type: ignore[override]  # as a raw file does
        self.refusals -= 1
        return None if self.refusals >= 0 else super().write(data)  # type: ignore[arg-type]  # the same


def test_a_pipe_that_does_not_wait_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "FLUSH_EVERY", 0.0)
    stream = Hesitant()
    writer = LineWriter(stream, fail_on_drop)
    writer.write(b"line")
    writer.close()
    assert (stream.getvalue(), writer.dropped) == (b"line\n", 0)


class RecordedWrites(BytesIO):
    """A file that stores each write separately."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[bytes] = []

    @override
    def write(self, data: object) -> int:
        self.pieces.append(bytes(data))  # type: ignore[call-overload]  # the buffer type has no public name
        return len(self.pieces[-1])


def test_lines_are_written_in_pieces_that_a_pipe_takes_whole() -> None:
    stream = RecordedWrites()
    writer = LineWriter(stream, fail_on_drop)
    for size in (100, 4000, 4095, 1, 2000, 2000, 2000):
        writer.write(b"x" * size)
    writer.close()
    assert all(len(piece) <= PIPE_BUF and piece.endswith(b"\n") for piece in stream.pieces)
    assert [len(line) for line in b"".join(stream.pieces).splitlines()] == [100, 4000, 4095, 1, 2000, 2000, 2000]
    assert len(stream.pieces) < 7


def test_a_standard_stream_is_written_below_its_buffers(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    with os.fdopen(os.dup(1), "w") as stream:
        stream.write("before ")
        unbuffered(stream).write(memoryview(b"after"))
        assert capfdbinary.readouterr().out == b"before after"
    with TextIOWrapper(BytesIO()) as memory:
        assert unbuffered(memory) is memory.buffer


def test_without_a_stream_lines_go_nowhere() -> None:
    writer = LineWriter(unbuffered(None), fail_on_drop)
    writer.write(b"line")
    writer.close()
    assert writer.dropped == 0


def test_a_line_too_long_is_cut_and_still_json() -> None:
    stream = BytesIO()
    writer = LineWriter(stream, fail_on_drop)
    writer.write(b'{"a":"' + "ü".encode() * MAX_LINE + b'"}')
    writer.close()
    line = orjson.loads(stream.getvalue())
    assert len(stream.getvalue()) <= MAX_LINE
    assert line["message"] == "log line too long, cut"
    assert line["start"].startswith('{"a":"ü')


def test_text_is_written_as_lines_whatever_its_characters() -> None:
    sink = BytesIO()
    writer = LineWriter(sink, fail_on_drop)
    stream = LineStream(writer)
    for text in ("one\n", "t\u00fc\udcff\n", "a\nb\n"):
        stream.write(text)
    writer.close()
    assert sink.getvalue() == b"one\nt\xc3\xbc\\udcff\na\nb\n"
