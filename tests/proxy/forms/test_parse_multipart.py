"""Multipart forms in chunks of any size: their parts, and bodies that are no valid form."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.forms.parse_multipart import MAX_HEAD, MAX_PARTS, MultipartParser, NotMultipart
from proxy.forms.part_heads import PartHead
from tests.support.looped import looped

FILE = b'Content-Disposition: form-data; name="file"; filename="a.wav"\r\nContent-Type: audio/wav'
MODEL = b"content-disposition: form-data; name=model"
NAMED = b'Content-Disposition: form-data; name="x"'
FORM = (
    b"--b\r\n%b\r\n\r\nRIFF\r\n--x\r\n\x00\xff--b\r\n--b \t\r\n%b\r\n\r\n\r\n--b\r\n%b\r\n\r\ny\r\n--b--\r\nafter"
    % (FILE, MODEL, NAMED)
)
Part = tuple[PartHead, bytes]
PARTS: list[Part] = [
    (PartHead("file", "a.wav", "audio/wav"), b"RIFF\r\n--x\r\n\x00\xff--b"),
    (PartHead("model"), b""),
    (PartHead("x"), b"y"),
]


def parsed(*pieces: bytes, boundary: str = "b") -> tuple[list[Part], bool]:
    parser = MultipartParser(boundary)
    parts: list[Part] = []
    for piece in pieces:
        for event in parser.feed(piece):
            if isinstance(event, PartHead):
                parts.append((event, b""))
            else:
                head, content = parts[-1]
                parts[-1] = head, content + event
    return parts, parser.complete


def test_contents_come_out_byte_for_byte() -> None:
    assert parsed(FORM) == (PARTS, True)
    assert parsed(b"a preamble\r\n" + FORM) == (PARTS, True)


@looped("size", [1, 2, 3, 7])
def test_cuts_change_nothing(size: int) -> None:
    assert parsed(*[FORM[at : at + size] for at in range(0, len(FORM), size)]) == parsed(FORM)


@given(st.lists(st.binary(max_size=60), max_size=4), st.lists(st.integers(0, 400), max_size=6))
def test_any_contents_come_out_whole_at_any_cuts(contents: list[bytes], cuts: list[int]) -> None:
    boundary = "-" * 20 + "0123456789"
    form = b"".join(b"--%b\r\n%b\r\n\r\n%b\r\n" % (boundary.encode(), NAMED, each) for each in contents)
    form += b"--%b--" % boundary.encode()
    marks = [0, *sorted(min(cut, len(form)) for cut in cuts), len(form)]
    pieces = [form[start:end] for start, end in pairwise(marks)]
    assert parsed(*pieces, boundary=boundary) == ([(PartHead("x"), each) for each in contents], True)


def test_a_form_without_its_last_boundary_is_not_complete() -> None:
    assert parsed(b"--b\r\n%b\r\n\r\ncontent\r\n--b\r\n" % NAMED) == ([(PartHead("x"), b"content")], False)
    assert parsed(b"") == ([], False)


@looped(
    ("form", "complaint"),
    [
        (b"--b\r\nX: " + b"x" * MAX_HEAD + b"\r\n\r\n", "bytes of headers"),
        (b"--b\r\nX: " + b"x" * 2 * MAX_HEAD, "bytes of headers"),
        (b"--b\r\n%b\r\n\r\n\r\n" % NAMED * (MAX_PARTS + 1), "parts"),
        (b"--b\r\n%b\r\n\r\n\r\n--b\r\n\r\nnameless\r\n--b--" % NAMED, "part 2 has no Content-Disposition"),
        (b"--b\r\n%b\r\n\r\nRIFF\r\n--bogus\r\n--b--" % NAMED, "goes on differently"),
        (b"--b\n%b\n\ncontent\n--b--\r\n" % NAMED, "bare line feed"),
        (b"--bc\r\n\r\n", "goes on differently"),
        (b"--b" + b" " * 2 * MAX_HEAD, "goes on differently"),
    ],
)
def test_heads_parts_and_padding_have_their_limits(form: bytes, complaint: str) -> None:
    with pytest.raises(NotMultipart, match=complaint):
        parsed(form)


def test_what_is_held_back_does_not_grow_with_the_content() -> None:
    parser = MultipartParser("b")
    list(parser.feed(b"--b\r\n%b\r\n\r\n" % NAMED))
    for _ in range(100):
        list(parser.feed(b"\r\n--" * 1000))
        assert len(parser._held) < 10
