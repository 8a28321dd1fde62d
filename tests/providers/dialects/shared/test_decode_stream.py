"""From a framing's events to a reader's events: the end of a stream, and the errors that break one."""

from collections.abc import Iterable

import orjson
import pytest

from providers.completion import Choice, Chunk, Completion, NativeEvent, StreamEvent, Usage
from providers.dialects.shared import decode_stream
from providers.dialects.shared.decode_stream import (
    NOTHING,
    NativeReader,
    NativeStream,
    SingleResponseStream,
    cut,
    event_object,
)
from providers.failure import Failure, FailureKind, UpstreamError
from providers.framing.parse_ndjson import NDJSONParser
from providers.framing.parse_sse import SSEParser
from tests.providers.kit import failure_of
from tests.support.looped import looped


class Words:
    """A reader of events with a text each; `end` ends the stream and `bad` breaks it."""

    def __init__(self) -> None:
        self.complete = False

    def read(self, name: str, payload: bytes) -> Iterable[StreamEvent]:
        if payload == b"bad":
            raise UpstreamError(Failure(FailureKind.SERVER, "bad"))
        self.complete = payload == b"end"
        return NOTHING if self.complete else (Chunk(text=str(event_object(payload)["t"])),)


def lines(cap: int = 100) -> NativeStream:
    return NativeStream(NDJSONParser(cap), Words())


def kind_of(stream: NativeStream, data: bytes) -> FailureKind:
    return failure_of(lambda: [*stream.feed(data), *stream.finish()]).kind


def test_any_framing_will_do() -> None:
    for stream, data in (
        (lines(), b'{"t":"a"}\nend\n'),
        (NativeStream(SSEParser(), Words()), b'data: {"t":"a"}\n\ndata: end\n\n'),
    ):
        assert list(stream.feed(data)) == [Chunk(text="a")]
        assert stream.complete
        assert list(stream.finish()) == []


def test_nothing_is_read_after_the_end() -> None:
    assert list(lines().feed(b"end\nbad\n")) == []


def test_a_framing_is_asked_for_nothing_after_the_end() -> None:
    stream = lines(cap=5)
    assert list(stream.feed(b"end\n" + b"x" * 10 + b"\n")) == []
    assert list(stream.feed(b"x" * 10 + b"\n")) == []


def test_the_end_may_lack_its_line_end() -> None:
    stream = lines()
    assert list(stream.feed(b"end")) == []
    assert not stream.complete
    assert list(stream.finish()) == []
    assert stream.complete


def test_a_stream_without_its_end_is_truncated() -> None:
    assert kind_of(lines(), b"") is FailureKind.TRUNCATED
    assert kind_of(lines(), b'{"t":"a"}\n') is FailureKind.TRUNCATED
    assert kind_of(lines(), b'{"t":"a"}\n{"t":') is FailureKind.TRUNCATED
    assert cut().failure.kind is FailureKind.TRUNCATED


def test_a_reader_s_error_is_the_streams() -> None:
    assert kind_of(lines(), b"bad\n") is FailureKind.SERVER
    assert kind_of(lines(), b"bad") is FailureKind.SERVER


def test_an_endless_event_is_malformed() -> None:
    assert kind_of(lines(cap=20), b"x" * 40) is FailureKind.MALFORMED


@looped("payload", [b"", b"{", b"3", b"[]", b"null", b"\xff"])
def test_what_is_no_object_is_malformed(payload: bytes) -> None:
    assert failure_of(event_object, payload).kind is FailureKind.MALFORMED


def decode(body: bytes) -> Completion:
    return Completion((Choice(0, orjson.loads(body), "stop"),), Usage(1, 2))


@looped("size", [1, 7, 4096])
def test_the_answer_comes_in_one_piece_at_the_end(size: int) -> None:
    stream, data = SingleResponseStream(decode), b'"a whole answer"'
    for start in range(0, len(data), size):
        assert list(stream.feed(data[start : start + size])) == []
    assert not stream.complete
    assert list(stream.finish()) == [Chunk(text="a whole answer", finish_reason="stop"), Usage(1, 2)]
    assert stream.complete


@looped("data", [b"", b'"a who', b"<html>"])
def test_a_body_that_is_cut_is_no_success(data: bytes) -> None:
    stream = SingleResponseStream(decode)
    assert list(stream.feed(data)) == []
    assert failure_of(list, stream.finish()).kind is FailureKind.TRUNCATED
    assert not stream.complete


def test_a_body_without_end_is_not_gathered_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode_stream, "MAX_BODY", 4)
    assert failure_of(SingleResponseStream(decode).feed, b"12345").kind is FailureKind.MALFORMED


# In the client's own API ---------------------------------------------------------------------------------------------

EVENT = NativeEvent("e", b"{}")


class Scripted:
    """A reader that finds the given name and meaning in every event, or no name at all."""

    def __init__(self, name: str | None, *meaning: StreamEvent) -> None:
        self.kind = "left over from before"
        self.complete = False
        self.name, self._meaning = name, meaning

    def read(self, name: str, payload: bytes) -> Iterable[StreamEvent]:
        if self.name is not None:
            self.kind = self.name
        return self._meaning


def read(name: str | None, *meaning: StreamEvent) -> list[StreamEvent]:
    return [*NativeReader(Scripted(name, *meaning)).read("frame", b"{}")]


def test_an_event_goes_with_the_first_chunk_of_its_meaning() -> None:
    assert read("e", Chunk(text="a"), Chunk(text="b")) == [Chunk(text="a", native=EVENT), Chunk(text="b")]


def test_an_event_without_a_meaning_goes_in_a_chunk_of_its_own() -> None:
    assert read("e") == [Chunk(native=EVENT)]


def test_an_event_goes_before_the_counts_that_are_all_its_meaning() -> None:
    assert read("e", Usage(1, 2)) == [Chunk(native=EVENT), Usage(1, 2)]


@looped("name", [None, "", "a b", "x\n\ndata: {}", "é", "e" * 200])
def test_what_has_no_name_that_could_stand_on_a_line_is_not_passed_on(name: str | None) -> None:
    assert read(name, Chunk(text="a")) == [Chunk(text="a")]
    assert read(name) == []


def test_the_end_is_the_inner_reader_s() -> None:
    inner = Scripted("e")
    reader = NativeReader(inner)
    assert not reader.complete
    inner.complete = True
    assert [*reader.read("frame", b"{}")] == [Chunk(native=EVENT)]
    assert reader.complete


def test_the_names_that_a_stream_makes_up_cost_no_memory() -> None:
    inner = Scripted("e")
    reader = NativeReader(inner)
    for number in range(1000):
        inner.name = f"e{number}"
        assert len([*reader.read("frame", b"{}")]) == 1
    assert len(reader._names) <= 128
