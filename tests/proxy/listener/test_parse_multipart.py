"""Forms, whatever the cuts: what their parts are, and what is no form."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.listener.parse_multipart import MAX_HEAD, MAX_PARTS, MultipartParser, NotMultipart, PartHead, boundary_of
from tests.support.looped import looped

FILE = b'Content-Disposition: form-data; name="file"; filename="a.wav"\r\nContent-Type: audio/wav'
MODEL = b"content-disposition: form-data; name=model"
FORM = (
    b"--b\r\n%b\r\n\r\nRIFF\r\n--bogus\r\n\x00\xff--b\r\n--b \t\r\n%b\r\n\r\n\r\n--b\r\n\r\nnameless\r\n--b--\r\nafter"
    % (FILE, MODEL)
)
PARTS = [(FILE, "file", b"RIFF\r\n--bogus\r\n\x00\xff--b"), (MODEL, "model", b""), (b"", None, b"nameless")]


def parsed(*pieces: bytes, boundary: str = "b") -> tuple[list[tuple[bytes, str | None, bytes]], bool]:
    parser = MultipartParser(boundary)
    parts: list[tuple[bytes, str | None, bytes]] = []
    for piece in pieces:
        for event in parser.feed(piece):
            if isinstance(event, PartHead):
                parts.append((event.lines, event.name, b""))
            else:
                lines, name, content = parts[-1]
                parts[-1] = lines, name, content + event
    return parts, parser.complete


def test_parts_come_out_byte_for_byte() -> None:
    with pytest.raises(NotMultipart, match="goes on differently"):
        parsed(FORM)
    assert parsed(FORM.replace(b"--bogus", b"--x")) == (
        [(FILE, "file", b"RIFF\r\n--x\r\n\x00\xff--b"), *PARTS[1:]],
        True,
    )


@looped("size", [1, 2, 3, 7])
def test_cuts_change_nothing(size: int) -> None:
    form = FORM.replace(b"--bogus", b"--x")
    assert parsed(*[form[at : at + size] for at in range(0, len(form), size)]) == parsed(form)


@given(st.lists(st.binary(max_size=60), max_size=4), st.lists(st.integers(0, 400), max_size=6))
def test_any_contents_come_out_whole_at_any_cuts(contents: list[bytes], cuts: list[int]) -> None:
    boundary = "-" * 20 + "0123456789"
    lines = b'Content-Disposition: form-data; name="x"'
    form = b"".join(b"--%b\r\n%b\r\n\r\n%b\r\n" % (boundary.encode(), lines, each) for each in contents)
    form += b"--%b--" % boundary.encode()
    marks = [0, *sorted(min(cut, len(form)) for cut in cuts), len(form)]
    pieces = [form[start:end] for start, end in pairwise(marks)]
    assert parsed(*pieces, boundary=boundary) == ([(lines, "x", each) for each in contents], True)


def test_a_form_without_its_last_boundary_is_not_complete() -> None:
    assert parsed(b"--b\r\n\r\ncontent\r\n--b\r\n") == ([(b"", None, b"content")], False)
    assert parsed(b"") == ([], False)


@looped(
    ("form", "complaint"),
    [
        (b"--b\r\nX: " + b"x" * MAX_HEAD + b"\r\n\r\n", "bytes of headers"),
        (b"--b\r\nX: " + b"x" * 2 * MAX_HEAD, "bytes of headers"),
        (b"--b\r\n\r\n\r\n\r\n" * (MAX_PARTS + 1), "parts"),
        (b"--bc\r\n\r\n", "goes on differently"),
        (b"--b" + b" " * 2 * MAX_HEAD, "goes on differently"),
    ],
)
def test_heads_parts_and_padding_have_their_limits(form: bytes, complaint: str) -> None:
    with pytest.raises(NotMultipart, match=complaint):
        parsed(form)


def test_what_is_held_back_does_not_grow_with_the_content() -> None:
    parser = MultipartParser("b")
    list(parser.feed(b"--b\r\n\r\n\r\n"))
    for _ in range(100):
        list(parser.feed(b"\r\n--" * 1000))
        assert len(parser._held) < 10


@looped(
    ("content_type", "boundary"),
    [
        ("multipart/form-data; boundary=abc", "abc"),
        ('Multipart/Form-Data; charset=x; boundary="a b;c"', "a b;c"),
        ("multipart/form-data; boundary=----WebKit7; x=y", "----WebKit7"),
        ("multipart/form-data", None),
        ("multipart/mixed; boundary=abc", None),
        ("application/json", None),
        ("multipart/form-data; boundary=" + "x" * 71, None),
        ("multipart/form-data; boundary=a\x01", None),
    ],
)
def test_only_a_form_has_a_boundary(content_type: str, boundary: str | None) -> None:
    assert boundary_of(content_type) == boundary
