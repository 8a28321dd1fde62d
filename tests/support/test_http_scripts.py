"""Ready-made scripts are framed as HTTP requires, and cut at exactly the requested byte."""

from collections.abc import AsyncIterator

import aiohttp
import pytest

from tests.support import http_scripts
from tests.support.looped import looped
from tests.support.vendor import FakeVendor
from tests.support.vendor_script import Fin, Hang, Rst, Script, Send

FRAMES = [b"data: one\n\n", b"data: two\n\n", http_scripts.DONE]
WHOLE = b"".join(FRAMES)


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


async def fetch(http: aiohttp.ClientSession, script: Script) -> tuple[aiohttp.ClientResponse, bytes]:
    """Return the response of a script, read to its end. Raise `aiohttp.ClientPayloadError` if it is cut short."""
    async with FakeVendor(script) as vendor, http.post(vendor.base_url) as answer:
        return answer, await answer.read()


async def test_a_json_answer_carries_type_length_and_extra_headers(http: aiohttp.ClientSession) -> None:
    answer, body = await fetch(http, http_scripts.json_answer(429, {"a": [1]}, [("Retry-After", "1")]))
    assert (answer.status, answer.reason, body) == (429, "Too Many Requests", b'{"a":[1]}')
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["retry-after"] == "1"


@looped("stream", [FRAMES, WHOLE])
@looped("piece_size", [None, 1, 7, 4096])
async def test_a_stream_arrives_whole_in_any_pieces(
    http: aiohttp.ClientSession, stream: bytes | list[bytes], piece_size: int | None
) -> None:
    answer, body = await fetch(http, http_scripts.sse_answer(stream, piece_size))
    assert (answer.status, answer.content_type, body) == (200, "text/event-stream", WHOLE)
    _, body = await fetch(http, http_scripts.sse_close_delimited(stream, piece_size=piece_size))
    assert body == WHOLE


@pytest.mark.parametrize("ending", [Fin(), Rst()])
async def test_an_unterminated_stream_is_seen_as_cut(http: aiohttp.ClientSession, ending: Fin | Rst) -> None:
    with pytest.raises(aiohttp.ClientError):
        await fetch(http, http_scripts.sse_unterminated(FRAMES, ending))


def test_pieces_respect_frames_only_without_a_size() -> None:
    assert http_scripts.pieces(FRAMES) == FRAMES
    assert http_scripts.pieces(WHOLE) == [WHOLE]
    assert http_scripts.pieces([b"abc", b"de"], 2) == [b"ab", b"cd", b"e"]


def test_no_bytes_make_no_chunk_because_it_would_end_the_body() -> None:
    assert http_scripts.chunk(b"") == b""
    assert http_scripts.chunk(b"x" * 17) == b"11\r\n" + b"x" * 17 + b"\r\n"


def test_payloads_become_data_frames() -> None:
    assert http_scripts.data_frames({"a": 1}, "x") == [b'data: {"a":1}\n\n', b'data: "x"\n\n']


def test_a_script_can_be_cut_at_every_byte() -> None:
    script = http_scripts.sse_answer(FRAMES)
    sent = b"".join(step.data for step in script if isinstance(step, Send))
    assert http_scripts.size_of(script) == len(sent)
    for size in range(len(sent) + 1):
        *kept, last = http_scripts.cut(script, size, Hang())
        assert b"".join(step.data for step in kept if isinstance(step, Send)) == sent[:size]
        assert last == Hang()


async def test_a_json_answer_cut_inside_its_body_is_seen_as_cut(http: aiohttp.ClientSession) -> None:
    script = http_scripts.json_answer(200, {"a": 1})
    with pytest.raises(aiohttp.ClientPayloadError):
        await fetch(http, http_scripts.cut(script, http_scripts.size_of(script) - 1))
