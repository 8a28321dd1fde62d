"""Bodies that are compressed although the request did not allow it."""

import gzip
import zlib

import pytest

from providers.failure import FailureKind, UpstreamError
from proxy.http_client.http_response import HttpResponse
from proxy.http_client.inflate_body import MEMBERS_LIMIT, OUTPUT_BYTES, InflatedResponse, readable
from tests.proxy.kit.wire import Line
from tests.support.looped import looped

TEXT = bytes(range(256)) * 1000


def bare(text: bytes) -> bytes:
    """Return a deflate stream without zlib's frame."""
    packing = zlib.compressobj(wbits=-15)
    return packing.compress(text) + packing.flush()


def answer(body: bytes, coding: str, size: int = 1000) -> tuple[Line, object]:
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: {coding}\r\ncontent-length: {len(body)}\r\n\r\n"
    line = Line().feed(head.encode(), *(body[at : at + size] for at in range(0, len(body), size)))
    assert line.connection.packed
    return line, readable(HttpResponse(line.connection))


async def read_body(response: object) -> bytes:
    assert isinstance(response, HttpResponse | InflatedResponse)
    body = b""
    while piece := await response.read():
        body += piece
    return body


@pytest.mark.smoke
@looped("size", [1, 1000, 10**6])
@looped(
    ("packed", "coding"),
    [
        (gzip.compress(TEXT), "gzip"),
        (gzip.compress(TEXT), "X-GZIP"),
        (zlib.compress(TEXT), "deflate"),
        (bare(TEXT), "deflate"),
        (gzip.compress(TEXT[:7]) + gzip.compress(TEXT[7:]), "gzip"),
        (TEXT, "identity"),
        (TEXT, "utf-8"),
    ],
)
async def test_a_body_is_what_the_vendor_means(packed: bytes, coding: str, size: int) -> None:
    line, response = answer(packed, coding, size)
    assert await read_body(response) == TEXT
    assert line.shelf.taken_back == [line.connection]


@pytest.mark.smoke
@looped("coding", ["br", "zstd", "compress"])
def test_a_coding_that_cannot_be_read_is_no_answer(coding: str) -> None:
    assert answer(b"x", coding)[1] is None


@looped("packed", [b"\x00\x01nonsense", gzip.compress(TEXT)[:-20], gzip.compress(TEXT) + b"\x1fmore"])
async def test_a_body_that_is_not_what_its_coding_says_broke_off(packed: bytes) -> None:
    _, response = answer(packed, "gzip")
    with pytest.raises(UpstreamError) as caught:
        await read_body(response)
    assert caught.value.failure.kind is FailureKind.TRUNCATED


async def test_a_bomb_is_inflated_in_small_pieces_that_can_be_left() -> None:
    line, response = answer(gzip.compress(b"x" * 10**8), "gzip")
    assert isinstance(response, InflatedResponse)
    for _ in range(20):
        assert len(await response.read()) <= OUTPUT_BYTES
    response.release()
    assert line.wire.aborted


async def test_members_in_a_row_are_bounded() -> None:
    _, response = answer(gzip.compress(b"") * (MEMBERS_LIMIT + 1), "gzip")
    with pytest.raises(UpstreamError):
        await read_body(response)
