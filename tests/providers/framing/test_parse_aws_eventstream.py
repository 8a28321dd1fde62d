"""Amazon's frames: the same for any chunks, no data without a valid checksum, and bounded in size."""

import struct
from itertools import pairwise
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.framing.parse_aws_eventstream import (
    MAX_HEADERS,
    MAX_PAYLOAD,
    Frame,
    FrameParser,
    FramingError,
    HeaderValue,
    encode,
)
from tests.support.looped import looped

GOLDEN = bytes.fromhex(
    "0000009e00000057fe1b824f0b3a6576656e742d74797065070011636f6e74656e74426c6f636b44656c74610d3a636f6e74656e742d74797065"
    "0700106170706c69636174696f6e2f6a736f6e0d3a6d6573736167652d747970650700056576656e747b22636f6e74656e74426c6f636b496e64"
    "6578223a302c2264656c7461223a7b2274657874223a2248656c227d2c2270223a226162227debfc2358"
)
"""The frame as botocore 1.44.5 reads it."""

names = st.text(max_size=20).filter(lambda name: len(name.encode()) <= 255)
frames = st.tuples(st.dictionaries(names, st.text(max_size=40), max_size=4), st.binary(max_size=60))


def parsed(*pieces: bytes) -> list[Frame]:
    parser = FrameParser()
    found = [frame for piece in pieces for frame in parser.feed(piece)]
    assert not parser.unfinished
    return found


def written(*made: Frame) -> bytes:
    return b"".join(
        [encode({name: str(value) for name, value in headers.items()}, payload) for headers, payload in made]
    )


def framed(headers: bytes, payload: bytes = b"") -> bytes:
    """Return a frame around raw headers, with correct checksums."""
    lengths = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
    message = lengths + struct.pack(">I", crc32(lengths)) + headers + payload
    return message + struct.pack(">I", crc32(message))


def prelude(total: int, headers: int) -> bytes:
    lengths = struct.pack(">II", total, headers)
    return lengths + struct.pack(">I", crc32(lengths))


def test_the_golden_frame_is_read_and_written_byte_for_byte() -> None:
    headers = {":event-type": "contentBlockDelta", ":content-type": "application/json", ":message-type": "event"}
    payload = b'{"contentBlockIndex":0,"delta":{"text":"Hel"},"p":"ab"}'
    assert encode(headers, payload) == GOLDEN
    assert parsed(GOLDEN) == [(headers, payload)]


@given(st.lists(frames, max_size=5), st.lists(st.integers(0, 1000), max_size=12))
def test_what_is_written_is_read_whatever_the_cuts(made: list[Frame], places: list[int]) -> None:
    stream = written(*made)
    cuts = sorted({0, len(stream), *(place for place in places if place < len(stream))})
    assert parsed(*[stream[start:end] for start, end in pairwise(cuts)]) == made
    assert parsed(*[stream[at : at + 1] for at in range(len(stream))]) == made


@given(st.binary(max_size=80))
def test_no_bytes_raise_anything_else(stream: bytes) -> None:
    parser = FrameParser()
    try:
        list(parser.feed(stream))
    except FramingError:
        return
    assert parser.unfinished == bool(stream)


@given(st.integers(0, len(GOLDEN) - 1), st.integers(1, 255))
def test_no_changed_byte_goes_unnoticed(place: int, change: int) -> None:
    changed = bytearray(GOLDEN)
    changed[place] ^= change
    with pytest.raises(FramingError):
        list(FrameParser().feed(bytes(changed)))


def test_a_frame_cut_at_any_byte_is_unfinished() -> None:
    for cut in range(1, len(GOLDEN)):
        parser = FrameParser()
        assert list(parser.feed(GOLDEN[:cut])) == []
        assert parser.unfinished
        assert len(list(parser.feed(GOLDEN[cut:]))) == 1
        assert not parser.unfinished


def test_frames_before_the_fault_are_given() -> None:
    found: list[Frame] = []
    with pytest.raises(FramingError):
        found.extend(FrameParser().feed(GOLDEN + GOLDEN[:-1] + b"\0"))
    assert found == parsed(GOLDEN)


@looped(
    ("kind", "value", "expected"),
    [
        (0, b"", True),
        (1, b"", False),
        (2, b"\xff", -1),
        (3, b"\x7f\xff", 32767),
        (4, b"\x80\x00\x00\x00", -(2**31)),
        (5, b"\x00" * 7 + b"\x07", 7),
        (6, b"\x00\x02\xff\x00", b"\xff\x00"),
        (7, b"\x00\x03\xe2\x82\xac", "€"),
        (8, struct.pack(">q", 1_795_000_000_123), 1_795_000_000_123),
        (9, bytes(range(16)), bytes(range(16))),
    ],
)
def test_every_type_of_header_is_read(kind: int, value: bytes, expected: HeaderValue) -> None:
    (frame,) = parsed(framed(b"\x01a" + bytes((kind,)) + value + b"\x01b\x00", b"x"))
    assert frame == ({"a": expected, "b": True}, b"x")
    assert type(frame[0]["a"]) is type(expected)


@looped(
    ("headers", "what"),
    [
        (b"\x01a\x0a", "unknown type"),
        (b"\x01", "cut short"),
        (b"\x05ab", "cut short"),
        (b"\x01a", "cut short"),
        (b"\x01a\x07\x00", "cut short"),
        (b"\x01a\x07\x00\x09x", "cut short"),
        (b"\x01a\x05\x00", "cut short"),
        (b"\x01a\x09\x00", "cut short"),
        (b"\x01a\x07\x00\x01\xff", "not UTF-8"),
        (b"\x01\xff\x00", "not UTF-8"),
        (b"\x01a\x00\x01a\x00", "twice"),
    ],
)
def test_headers_that_make_no_sense_are_an_error(headers: bytes, what: str) -> None:
    with pytest.raises(FramingError, match=what):
        list(FrameParser().feed(framed(headers)))


@looped(
    ("total", "headers"),
    [(15, 0), (16, 1), (16 + MAX_HEADERS + 1, MAX_HEADERS + 1), (16 + MAX_PAYLOAD + 1, 0), (2**32 - 1, 0)],
)
def test_lengths_that_cannot_be_are_an_error_before_anything_is_kept(total: int, headers: int) -> None:
    parser = FrameParser()
    with pytest.raises(FramingError):
        list(parser.feed(prelude(total, headers)))
    assert not parser.unfinished


def test_the_largest_headers_are_taken() -> None:
    longest = {"a": "x" * 0xFFFF, "b": "y" * (MAX_HEADERS - 0xFFFF - 10)}
    assert parsed(encode(longest, b"")) == [(longest, b"")]
    with pytest.raises(FramingError):
        list(FrameParser().feed(encode({**longest, "c": ""}, b"")))


def test_a_large_frame_is_never_copied_while_it_grows() -> None:
    stream = encode({}, b"x" * 100_000)
    parser = FrameParser()
    held = parser._rest
    for start in range(0, len(stream) - 7, 7):
        assert list(parser.feed(stream[start : start + 7])) == []
    assert parser._rest is held
    assert len(held) > 99_000


def test_headers_are_shared_and_cannot_be_changed() -> None:
    first, second = parsed(GOLDEN, GOLDEN)
    assert first[0] is second[0]
    with pytest.raises(TypeError):
        first[0]["a"] = "b"  # type: ignore[index]


@pytest.mark.parametrize("headers", [{"n" * 256: "v"}, {"n": "v" * 65536}])
def test_what_a_header_cannot_hold_is_not_written(headers: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="too long"):
        encode(headers, b"")


@given(st.lists(frames, max_size=4), st.lists(st.integers(0, 300), max_size=4), st.binary(max_size=20))
def test_a_piece_that_is_one_frame_is_read_alone_as_with_others(
    made: list[Frame], places: list[int], after: bytes
) -> None:
    stream = written(*made) + after
    cuts = sorted({0, len(stream), *(place for place in places if place < len(stream))})
    pieces = [stream[start:end] for start, end in pairwise(cuts)] + [written(one) for one in made]
    assert read_alone(FrameParser(), pieces) == read_together(FrameParser(), pieces)


def read_alone(parser: FrameParser, pieces: list[bytes]) -> tuple[list[Frame], bool]:
    """Return the frames, and whether all bytes form an event stream."""
    found: list[Frame] = []
    try:
        for piece in pieces:
            frame = parser.only(piece)
            found += parser.feed(piece) if frame is None else [frame]
    except FramingError:
        return found, False
    return found, True


def read_together(parser: FrameParser, pieces: list[bytes]) -> tuple[list[Frame], bool]:
    found: list[Frame] = []
    try:
        for piece in pieces:
            found.extend(parser.feed(piece))
    except FramingError:
        return found, False
    return found, True


def test_a_frame_beside_another_or_with_one_before_it_is_not_read_alone() -> None:
    parser = FrameParser()
    assert parser.only(GOLDEN + GOLDEN) is None
    assert parser.only(GOLDEN[:-1]) is None
    assert list(parser.feed(GOLDEN[:5])) == []
    assert parser.only(GOLDEN) is None


def test_a_frame_that_lies_about_its_headers_is_told_by_the_whole_parser() -> None:
    lying = struct.pack(">II", 20, 9)
    piece = lying + struct.pack(">I", crc32(lying)) + b"12345678"
    assert FrameParser().only(piece) is None
    with pytest.raises(FramingError, match="shorter than its headers"):
        list(FrameParser().feed(piece))
