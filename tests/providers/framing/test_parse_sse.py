"""The SSE parser: the same events for any chunks, and never more than its size limit in memory."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.framing.parse_sse import DataLines, EventTooLarge, SSEParser
from tests.faults.memory import growth
from tests.support.looped import looped

Events = list[tuple[str, bytes]]

PARTS = (b"data:", b"data", b"event:", b"id: 7", b": note", b" ", b"a", b"{}", b"\n", b"\r", b"\r\n", b"\n\n", b":")
streams = st.lists(st.sampled_from(PARTS), max_size=40).map(b"".join)


def parsed(*pieces: bytes, cap: int = 1000) -> Events:
    parser = SSEParser(cap)
    events = [event for piece in pieces for event in parser.feed(piece)]
    return [*events, *parser.finish()]


def in_pieces(stream: bytes, size: int) -> list[bytes]:
    return [stream[start : start + size] for start in range(0, len(stream), size)]


@given(streams, st.lists(st.integers(0, 200), max_size=12))
def test_the_same_events_come_whatever_the_cuts(stream: bytes, places: list[int]) -> None:
    cuts = sorted({0, len(stream), *(place for place in places if place < len(stream))})
    pieces = [stream[start:end] for start, end in pairwise(cuts)]
    assert parsed(*pieces) == parsed(stream) == parsed(*in_pieces(stream, 1))


EVENTS = (
    b"data: {}",
    b"data:1",
    b"event: x\ndata: 1",
    b"id: 7\nevent:y\ndata: 1",
    b"event:  \ndata:  1",
    b"data: 1\ndata: 2",
)
ENDS = (b"\n\n", b"\r\n\r\n", b"\r\r", b"\n", b"\n\n\n", b"\r\n", b"")
whole = st.builds(bytes.__add__, st.sampled_from([*EVENTS, b"data: a\rdata: b", b"data:", b""]), st.sampled_from(ENDS))


@given(st.lists(whole | streams, max_size=12), st.booleans())
def test_a_piece_that_is_one_event_is_read_alone_as_with_others(pieces: list[bytes], marked: bool) -> None:
    pieces = [b"\xef\xbb\xbf"] * marked + pieces
    assert alone(*pieces) == parsed(*pieces)


def alone(*pieces: bytes) -> Events:
    parser, events = SSEParser(1000), Events()
    for piece in pieces:
        event = parser.only(piece)
        events += parser.feed(piece) if event is None else [event]
    return [*events, *parser.finish()]


@looped("piece", [each + end for each in EVENTS[:5] for end in ENDS[:2]])
def test_one_event_in_a_piece_of_its_own_is_read_alone(piece: bytes) -> None:
    parser = SSEParser()
    assert [parser.only(piece)] == parsed(piece)
    assert parser.only(piece) is not None


def test_an_event_past_the_cap_is_left_to_the_whole_parser() -> None:
    assert SSEParser(100).only(b"data: " + b"a" * 101 + b"\n\n") is None


@given(streams)
def test_every_line_end_means_the_same(stream: bytes) -> None:
    plain = stream.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    assert parsed(plain.replace(b"\n", b"\r\n")) == parsed(plain.replace(b"\n", b"\r")) == parsed(plain)


@given(st.binary(max_size=60))
def test_no_bytes_make_it_fail(stream: bytes) -> None:
    assert parsed(stream) == parsed(*in_pieces(stream, 1))


@looped(
    ("stream", "events"),
    [
        (b"data: a\n\n", [("", b"a")]),
        (b"data:a\n\n", [("", b"a")]),
        (b"data:  a\n\n", [("", b" a")]),
        (b"data: a\r\n\r\ndata: b\r\r", [("", b"a"), ("", b"b")]),
        (b"data: a\ndata: b\n\n", [("", b"a\nb")]),
        (b"data\n\n", [("", b"")]),
        (b"event: error\ndata: a\n\ndata: b\n\n", [("error", b"a"), ("", b"b")]),
        (b"event: lost\n\ndata: a\n\n", [("", b"a")]),
        (b": note\n\n:\n\ndata: a\n: inside\n\n", [("", b"a")]),
        (b"id: 7\nretry: 10\nother: x\ndata: a\n\n", [("", b"a")]),
        (b"\n\n\ndata: a\n\n", [("", b"a")]),
        (b"data: last", [("", b"last")]),
        (b"data: a\n\nevent: only", [("", b"a")]),
        (b"", []),
    ],
)
def test_what_vendors_send_is_read(stream: bytes, events: Events) -> None:
    assert parsed(stream) == events
    assert parsed(*in_pieces(stream, 1)) == events


@looped("size", [1, 2, 3, 100])
def test_a_byte_order_mark_counts_only_at_the_start(size: int) -> None:
    stream = b"\xef\xbb\xbfdata: a\n\ndata: \xef\xbb\xbfb\n\n"
    assert parsed(*in_pieces(stream, size)) == [("", b"a"), ("", b"\xef\xbb\xbfb")]


def test_a_byte_order_mark_after_a_whole_event_hides_none() -> None:
    assert parsed(b"data: a\n\n", b"\xef\xbb\xbfdata: b\n\n") == [("", b"a"), ("", b"b")]


@pytest.mark.parametrize("start", [b"\xef\xbb", b"\xef\xbbx\ndata: a\n\n"])
def test_half_a_byte_order_mark_is_an_unknown_line(start: bytes) -> None:
    assert parsed(*in_pieces(start, 1)) == parsed(start)


@looped(
    "stream",
    [
        b"data: " + b"a" * 100,
        b"data: " + b"a" * 100 + b"\n\n",
        b"data: a\n" * 60,
        b"data:\n" * 101,
        b": " + b"a" * 100,
        b"x" * 101,
    ],
)
@looped("size", [1, 7, 4096])
def test_an_event_past_the_cap_is_an_error(stream: bytes, size: int) -> None:
    with pytest.raises(EventTooLarge):
        parsed(*in_pieces(stream, size), b"x" * 100, cap=100)


def test_events_together_may_pass_the_cap() -> None:
    assert len(parsed(b"data: " + b"a" * 50 + b"\n\n", *[b"data: " + b"a" * 50 + b"\n\n"] * 9, cap=100)) == 10


def test_an_events_bytes_are_not_counted_for_the_next() -> None:
    assert len(parsed(*in_pieces(b"data: aaaa\n\n" * 100, 7), cap=30)) == 100


def test_a_long_line_is_never_joined_again_while_it_grows() -> None:
    parser = SSEParser()
    held = parser._rest
    for _ in range(1000):
        assert list(parser.feed(b"data: aaaaaaaa")) == []
    assert parser._rest is held
    assert len(held) == 14_000


LINES = b"data: {}\ndata:1\n: note\ndata: [DONE]\n"


@looped("ends", [b"\n", b"\r\n", b"\n\n", b"\r\n\r\n"])
@looped("size", [1, 2, 7, 4096])
def test_each_line_is_an_event_where_no_blank_one_ends_it(ends: bytes, size: int) -> None:
    parser = DataLines()
    pieces = in_pieces(LINES.replace(b"\n", ends), size)
    events = [event for piece in pieces for event in parser.feed(piece)]
    assert [*events, *parser.finish()] == [("", b"{}"), ("", b"1"), ("", b"[DONE]")]


def test_a_line_is_an_event_as_soon_as_it_ends() -> None:
    parser = DataLines()
    assert list(parser.feed(b"data: {}\ndata: 1")) == [("", b"{}")]
    assert list(parser.finish()) == [("", b"1")]


def test_a_line_past_the_cap_is_an_error() -> None:
    with pytest.raises(EventTooLarge):
        list(DataLines(100).feed(b"data: " + b"a" * 101))


def test_an_event_of_a_million_empty_lines_takes_no_more_than_its_bytes() -> None:
    parser, piece = SSEParser(), b"data:\n" * 10_000
    with growth() as grown:
        for _ in range(100):
            assert list(parser.feed(piece)) == []
        ((_, data),) = parser.feed(b"\n")
    assert data == b"\n" * 999_999
    assert grown.bytes < 16 * 2**20


def begun_event(*pieces: bytes) -> bytes | None:
    """Return the bytes that the parser has of the next event after these chunks."""
    parser = SSEParser()
    for piece in pieces:
        list(parser.feed(piece))
    return parser.begun(9)


@looped("event", [b"data: a\n\n", b"data: a\r\n\r\n", b": comment\n", b"x\n"])
def test_between_events_the_begin_of_the_next_one_s_first_line_is_known(event: bytes) -> None:
    assert begun_event(event) == b""
    assert begun_event(event, b"dat") == b"dat"


@looped("pending", [b"data: a\n", b"data\n", b"event: a\n", b"data: a\r\r", b"more than 9"])
def test_what_is_more_than_that_is_not_told(pending: bytes) -> None:
    assert begun_event(b"data: a\n\n", pending) is None


def test_before_the_stream_s_first_bytes_there_may_be_a_mark() -> None:
    assert begun_event() is None
    assert begun_event(b"\xef") is None


def test_what_somebody_else_has_read_of_an_event_is_left_out() -> None:
    parser = SSEParser()
    assert list(parser.feed(b"data: a\n\ndata: b")) == [("", b"a")]
    parser.forget()
    assert list(parser.feed(b"data: c\n\n")) == [("", b"c")]
