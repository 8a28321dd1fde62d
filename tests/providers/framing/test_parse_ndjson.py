"""The splitter of lines: the same lines for any chunks, and never more than its limit in memory."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.framing.parse_ndjson import NDJSONParser
from providers.framing.parse_sse import EventTooLarge
from tests.support.looped import looped

PARTS = (b'{"a":1}', b'"', b"\n", b"\r\n", b" ", b"\xe2\x80\xa8", b"\xc2\x85", b"x")
streams = st.lists(st.sampled_from(PARTS), max_size=40).map(b"".join)


def lines(*pieces: bytes, cap: int = 1000) -> list[bytes]:
    parser = NDJSONParser(cap)
    found = [line for piece in pieces for _, line in parser.feed(piece)]
    return [*found, *(line for _, line in parser.finish())]


@given(streams, st.lists(st.integers(0, 200), max_size=12))
def test_the_same_lines_come_whatever_the_cuts(stream: bytes, places: list[int]) -> None:
    cuts = sorted({0, len(stream), *(place for place in places if place < len(stream))})
    pieces = [stream[start:end] for start, end in pairwise(cuts)]
    single = [stream[place : place + 1] for place in range(len(stream))]
    assert lines(*pieces) == lines(stream) == lines(*single)


@given(st.lists(streams | st.sampled_from([b'{"a":1}\n', b"{}\r\n", b"\n", b" \n", b"{}"]), max_size=12))
def test_a_piece_that_is_one_line_is_read_alone_as_with_others(pieces: list[bytes]) -> None:
    parser, found = NDJSONParser(1000), list[bytes]()
    for piece in pieces:
        event = parser.only(piece)
        found += [line for _, line in (parser.feed(piece) if event is None else [event])]
    found += [line for _, line in parser.finish()]
    assert found == lines(*pieces)


def test_a_line_of_its_own_is_read_alone_up_to_the_cap() -> None:
    assert NDJSONParser(4).only(b"1234\n") == ("", b"1234")
    assert NDJSONParser(4).only(b"12345\n") is None


@given(st.lists(st.text(alphabet=st.characters(exclude_characters="\n"), max_size=8), max_size=8))
def test_a_line_ends_at_a_line_feed_and_nowhere_else(texts: list[str]) -> None:
    stream = "\n".join(f"<{text}>" for text in texts).encode(errors="replace")
    assert lines(stream) == [f"<{text}>".encode(errors="replace") for text in texts]


@looped(
    ("stream", "expected"),
    [(b"", []), (b"\n\r\n \n", []), (b"a\nb\n", [b"a", b"b"]), (b"a\r\nb", [b"a", b"b"]), (b" a \n", [b"a"])],
)
def test_blank_lines_are_none_and_the_last_needs_no_end(stream: bytes, expected: list[bytes]) -> None:
    assert lines(stream) == expected


@looped("size", [1, 7, 4096])
def test_an_endless_line_is_an_error(size: int) -> None:
    data = b"ok\n" + b"x" * 40
    parser = NDJSONParser(cap=20)
    found: list[bytes] = []

    def read() -> None:
        for start in range(0, len(data), size):
            found.extend(line for _, line in parser.feed(data[start : start + size]))

    with pytest.raises(EventTooLarge, match="more than 20 bytes"):
        read()
    assert found == [b"ok"]


def test_nothing_is_left_after_the_end() -> None:
    parser = NDJSONParser()
    assert list(parser.feed(b"a")) == []
    assert list(parser.finish()) == [("", b"a")]
    assert list(parser.finish()) == []
