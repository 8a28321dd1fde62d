"""The vendor's own events and bodies beside their meaning."""

from collections.abc import Iterable

import pytest

from providers.completion import Chunk, Completion, NativeEvent, StreamEvent, Usage
from providers.dialects.shared.native_events import NativeReader, one_line, with_body, with_events
from tests.providers.dialects.kit import chat_request, sent_for, target_of

SENT = sent_for(chat_request(), target_of("anthropic"))
EVENT = NativeEvent("e", b"{}")


class Scripted:
    """A reader that finds the given name and meaning in every event, or no name at all."""

    def __init__(self, name: str | None, *meaning: StreamEvent) -> None:
        self.kind = "left over from before"
        self.complete = False
        self._name, self._meaning = name, meaning

    def read(self, name: str, payload: bytes) -> Iterable[StreamEvent]:
        """See Reader."""
        if self._name is not None:
            self.kind = self._name
        return self._meaning


def read(name: str | None, *meaning: StreamEvent) -> list[StreamEvent]:
    return [*NativeReader(Scripted(name, *meaning)).read("frame", b"{}")]


def test_an_event_goes_with_the_first_chunk_of_its_meaning() -> None:
    assert read("e", Chunk(text="a"), Chunk(text="b")) == [Chunk(text="a", native=EVENT), Chunk(text="b")]


def test_an_event_without_a_meaning_goes_in_a_chunk_of_its_own() -> None:
    assert read("e") == [Chunk(native=EVENT)]


def test_an_event_goes_before_the_counts_that_are_all_its_meaning() -> None:
    assert read("e", Usage(1, 2)) == [Chunk(native=EVENT), Usage(1, 2)]


@pytest.mark.parametrize("name", [None, "", "a b", "x\n\ndata: {}", "é", "e" * 200])
def test_what_has_no_name_that_could_stand_on_a_line_is_not_passed_on(name: str | None) -> None:
    assert read(name, Chunk(text="a")) == [Chunk(text="a")]
    assert read(name) == []


def test_the_end_is_the_inner_reader_s() -> None:
    inner = Scripted("e")
    reader = NativeReader(inner)
    assert not reader.complete
    inner.complete = True
    assert reader.complete


@pytest.mark.parametrize(
    ("data", "line"), [(b'{"a":1}', b'{"a":1}'), (b'{"a":\n1,\r\n"b":"\\n"}', b'{"a": 1,  "b":"\\n"}')]
)
def test_json_of_several_lines_is_joined_by_white_space(data: bytes, line: bytes) -> None:
    assert one_line(data) == line


def test_only_native_calls_have_the_vendor_s_own() -> None:
    reader, completion = Scripted("e"), Completion((), None)
    assert with_events(SENT, reader) is reader
    assert with_body(SENT, completion, b"{}") is completion
