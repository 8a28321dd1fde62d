"""The endless load counts every byte, and an unexpected response ends it."""

import asyncio
from dataclasses import replace

import pytest

from tests.bench.load import OK, WrongAnswer
from tests.bench.probe import expected_stream, expected_whole
from tests.bench.steady import check_stream, running_load, unframed
from tests.bench.traffic import Ask, chat_request
from tests.bench.vendors import OPENAI, WIRES, Wire
from tests.support.looped import looped
from tests.support.vendor import FakeVendor
from tests.support.vendor_script import Fin, Script, Send

WHOLE, STREAM = OPENAI.answer(Ask()), OPENAI.answer(Ask(chunks=5))
STREAMED = expected_stream(STREAM, OPENAI, Ask(chunks=5))


def reframed(answer: bytes, size: int) -> bytes:
    """Return the response with its body in chunks of another size, as a proxy may send it."""
    head, _, _ = answer.partition(b"\r\n\r\n")
    body = unframed(answer)[:-2]
    parts = [body[start : start + size] for start in range(0, len(body), size)]
    return head + b"\r\n\r\n" + b"".join(b"%X\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


@looped("wire", WIRES.values(), ids=list(WIRES))
@looped("size", [1, 7, 4096])
def test_a_stream_may_be_divided_anew(wire: Wire, size: int) -> None:
    ask = Ask(chunks=30)
    answer = wire.answer(ask)
    check_stream(reframed(answer, size), expected_stream(answer, wire, ask))


@looped(
    "answer",
    [
        STREAM.replace(OK, b"HTTP/1.1 502 "),
        STREAM.replace(b"[DONE]", b"[GONE]"),
        OPENAI.answer(Ask(chunks=4)),
        STREAM[: len(STREAM) // 2],
        b"",
    ],
)
def test_a_stream_that_lacks_anything_is_wrong(answer: bytes) -> None:
    with pytest.raises(WrongAnswer):
        check_stream(answer, STREAMED)


async def count(script: Script, answer: bytes, stream: bool) -> int:
    """Return the number of responses on two connections until five came."""
    expected = STREAMED if stream else expected_whole(answer)
    async with FakeVendor(script) as vendor:
        async with running_load(vendor.port, [chat_request(Ask())] * 2, expected, 0.001) as load:
            while load.tally.answers < 5:
                load.check()
                await asyncio.sleep(0.001)
            seen = load.tally
        assert seen.bytes >= 5 * len(answer)
        assert vendor.connections == 2
        return seen.answers


@pytest.mark.parametrize("stream", [False, True])
async def test_answers_in_pieces_are_counted_with_all_of_their_bytes(stream: bool) -> None:
    answer = STREAM if stream else WHOLE
    parts = [Send(answer[start : start + 100]) for start in range(0, len(answer), 100)]
    assert await count(tuple(parts), answer, stream) >= 5


@looped("stream", [False, True])
@looped(
    "script",
    [
        (Send(b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 2\r\n\r\n{}"),),
        (Send(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}0\r\n\r\n"),),
        (Send(b"HTTP/1.1 200 OK\r\n"), Fin()),
        (Send(WHOLE + b"more"),),
    ],
)
async def test_a_wrong_answer_ends_the_load(script: Script, stream: bool) -> None:
    with pytest.raises(WrongAnswer):
        await count(script, STREAM if stream else WHOLE, stream)


def test_an_answer_may_differ_in_length_by_a_counter() -> None:
    expected = expected_whole(WHOLE)
    assert expected.slack < 20
    assert replace(expected, sent=0).length == 1200
