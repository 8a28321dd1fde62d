"""SSE events and bare JSON in one stream, in any chunks."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.dialects.platforms.google_events import EventsOrJSON
from providers.framing.parse_sse import MAX_EVENT, EventTooLarge, SSEParser
from tests.support.looped import looped

ERROR = json.dumps({"error": {"code": 503, "message": 'a "}" of ü\n'}}, indent=2, ensure_ascii=False).encode()


def read(data: bytes, size: int) -> list[tuple[str, bytes]]:
    parser = EventsOrJSON()
    events = [event for start in range(0, len(data), size) for event in parser.feed(data[start : start + size])]
    return [*events, *parser.finish()]


@looped("size", [1, 2, 7, 4096])
@looped("end", [b"\n", b"\r\n", b"\r"])
def test_a_bare_text_is_an_event_between_others(size: int, end: bytes) -> None:
    event = b"data: {}" + end + end
    data = event + ERROR + end + event + b"[1,\n2]" + end
    assert read(data, size) == [("", b"{}"), ("", ERROR), ("", b"{}"), ("", b"[1,\n2]")]


@looped("size", [1, 3, 4096])
def test_texts_may_follow_each_other_on_one_line(size: int) -> None:
    assert read(b'{"a":1}{"b":2}\n{"c":3}', size) == [("", b'{"a":1}'), ("", b'{"b":2}'), ("", b'{"c":3}')]


@looped("size", [1, 5, 4096])
def test_a_text_that_was_cut_is_given_as_it_is(size: int) -> None:
    assert read(b"data: 1\n\n" + ERROR[:20], size) == [("", b"1"), ("", ERROR[:20])]


def test_a_bracket_within_a_line_is_no_text() -> None:
    assert read(b'data: {"a":\ndata: [1]}\n\n: {\n', 4096) == [("", b'{"a":\n[1]}')]


pieces = st.lists(
    st.sampled_from(
        [b"data: {}", b"data:1", b": note", b"event: x", b"\n", b"\r\n", b"\r", ERROR, b"[", b"]", b"{}", b'"']
    ),
    max_size=14,
).map(b"".join)


@given(pieces, st.integers(1, 9))
def test_the_events_are_the_same_whatever_the_pieces(data: bytes, size: int) -> None:
    assert read(data, size) == read(data, max(1, len(data)))


@given(
    st.lists(st.sampled_from([b"data: {}", b"data:1", b": note", b"event: x", b"\n", b"\r\n", b"id: 4"])).map(b"".join)
)
def test_a_stream_without_bare_texts_reads_as_events_do(data: bytes) -> None:
    parser = SSEParser()
    assert read(data, 4096) == [*parser.feed(data), *parser.finish()]


@given(st.lists(st.sampled_from([b"data: {}", b"data:1", b"data: 1\ndata: 2", b"event: x", b"data: \r", ERROR])))
def test_an_event_in_a_piece_of_its_own_reads_as_it_does_among_others(events: list[bytes]) -> None:
    whole = [event + b"\r\n\r\n" for event in events]
    parser = EventsOrJSON()
    assert [*(each for piece in whole for each in parser.feed(piece)), *parser.finish()] == read(b"".join(whole), 4096)


@given(
    st.lists(
        st.sampled_from(
            [b"data: {}\r\n\r\n", b"data:1\n\n", b"event: x\n", b"data: \r", ERROR, b"[", b"\xef\xbb\xbf", b"\n{", b"}"]
        )
    )
)
def test_a_piece_that_is_one_event_is_read_alone_as_with_others(pieces: list[bytes]) -> None:
    alone, together = EventsOrJSON(), EventsOrJSON()
    found: list[tuple[str, bytes]] = []
    for piece in pieces:
        event = alone.only(piece)
        found += alone.feed(piece) if event is None else [event]
    found += alone.finish()
    assert found == [*(event for piece in pieces for event in together.feed(piece)), *together.finish()]


def test_nothing_fed_changes_nothing() -> None:
    parser = EventsOrJSON()
    assert [*parser.feed(b"data: 1 "), *parser.feed(b""), *parser.feed(b"{2}\n\n")] == [("", b"1 {2}")]


def test_an_endless_text_is_too_large() -> None:
    parser = EventsOrJSON()
    with pytest.raises(EventTooLarge):
        all(not list(parser.feed(b"[" + b" " * 2**20)) for _ in range(MAX_EVENT // 2**20 + 1))


def test_a_text_too_deep_to_read_is_given_as_it_is() -> None:
    data = b"[" * 200_000
    assert read(data, 4096) == [("", data)]


def test_a_long_text_in_small_pieces_comes_whole() -> None:
    data = b'["' + b"x" * 300_000 + b'"]'
    assert read(data, 1000) == [("", data)]
