"""A response is the handle of one exchange: after its end it no longer affects its connection."""

import asyncio

import pytest

from providers.failure import FailureKind, UpstreamError
from proxy.eager_task import EagerTask
from proxy.http_client.http_response import BROKEN_OFF, LOST, HttpResponse, headers_of
from tests.proxy.kit.wire import CHUNKED, END, OK, Line
from tests.support.looped import looped

pytestmark = pytest.mark.smoke


async def failure(response: HttpResponse) -> str:
    with pytest.raises(UpstreamError) as caught:
        await response.read()
    assert caught.value.failure.kind is FailureKind.TRUNCATED
    return caught.value.failure.message


async def test_what_has_come_is_read_at_once_and_the_end_gives_the_connection_back() -> None:
    line = Line().feed(CHUNKED, b"3\r\none\r\n", b"3\r\ntwo\r\n")
    response = HttpResponse(line.connection)
    assert await response.read() == b"onetwo"
    line.feed(END)
    assert await response.read() == b""
    assert line.shelf.taken_back == [line.connection]
    assert await response.read() == b""


@looped(("more", "body"), [(b"", None), (b"3\r\none\r\n", None), (b"3\r\none\r\n" + END, b"one")])
async def test_a_body_that_has_come_is_taken_with_its_connection_given_back(more: bytes, body: bytes | None) -> None:
    line = Line().feed(CHUNKED + more)
    response = HttpResponse(line.connection)
    assert response.take_all() == body
    assert line.shelf.taken_back == ([] if body is None else [line.connection])
    if body is not None:
        assert response.take_all() is None
        assert await response.read() == b""


async def test_of_a_body_that_broke_off_nothing_is_taken() -> None:
    response = HttpResponse(Line().feed(CHUNKED + b"3\r\none\r\n", b"zz").connection)
    assert response.take_all() is None
    assert await response.read() == b"one"


@pytest.mark.parametrize("leave", [HttpResponse.close, HttpResponse.release])
async def test_after_its_end_an_answer_does_not_touch_the_next_user_s_connection(leave: object) -> None:
    line = Line().feed(OK)
    response = HttpResponse(line.connection)
    line.read()
    response.release()
    line.ask()
    assert callable(leave)
    leave(response)
    assert not line.wire.aborted
    line.feed(OK)
    assert await response.read() == b""
    assert line.connection.pieces == [b"{}"]


async def test_what_came_before_a_break_is_read_first() -> None:
    line = Line().feed(CHUNKED + b"3\r\none\r\n", b"zz")
    response = HttpResponse(line.connection)
    assert await response.read() == b"one"
    assert await failure(response) == BROKEN_OFF


async def _handed(response: HttpResponse, got: list[bytes], most: int = 99) -> None:
    def take(piece: bytes) -> bool:
        got.append(piece)
        if piece == b"bad":
            raise ValueError("bad")
        return bool(piece) and len(got) < most

    await response.each(take)


def _eagerly(line: Line, got: list[bytes], ends: list[object], most: int = 99) -> None:
    work = _handed(HttpResponse(line.connection), got, most)
    asyncio.get_running_loop().call_soon(EagerTask(work, asyncio.get_running_loop(), ends.append).begin)


async def test_pieces_are_handed_over_within_the_callback_that_brought_them() -> None:
    line, got, ends = Line().feed(CHUNKED, b"3\r\none\r\n"), list[bytes](), list[object]()
    _eagerly(line, got, ends)
    await asyncio.sleep(0)

    def came() -> None:
        line.feed(b"3\r\n")
        line.feed(b"two\r\n")
        assert got == [b"one", b"two"]
        line.feed(b"5\r\nthree\r\n" + END)
        assert got == [b"one", b"two", b"three", b""]

    asyncio.get_running_loop().call_soon(came)
    await asyncio.sleep(0)
    assert (ends, line.shelf.taken_back) == ([None], [line.connection])


async def test_what_nobody_wants_yet_is_kept_and_can_be_read() -> None:
    line, got, ends = Line().feed(CHUNKED), list[bytes](), list[object]()
    _eagerly(line, got, ends, most=1)
    await asyncio.sleep(0)
    asyncio.get_running_loop().call_soon(line.feed, b"3\r\none\r\n", b"3\r\ntwo\r\n")
    await asyncio.sleep(0)
    assert (got, ends) == ([b"one"], [None])
    assert await HttpResponse(line.connection).read() == b"two"


@pytest.mark.parametrize("eager", [True, False])
async def test_who_takes_pieces_fails_where_the_coroutine_waits(eager: bool) -> None:
    line, got, ends = Line().feed(CHUNKED), list[bytes](), list[object]()
    if eager:
        _eagerly(line, got, ends)
    else:
        task = asyncio.create_task(_handed(HttpResponse(line.connection), got))
        task.add_done_callback(lambda ended: ends.append(ended.exception()))
    await asyncio.sleep(0)
    asyncio.get_running_loop().call_soon(line.feed, b"3\r\nbad\r\n")
    for _ in range(5):
        await asyncio.sleep(0)
    assert [type(error) for error in ends] == [ValueError]
    assert line.connection.state == "body"


async def test_pieces_end_with_the_failure_of_a_body_that_broke_off() -> None:
    line, got, ends = Line().feed(CHUNKED), list[bytes](), list[object]()
    _eagerly(line, got, ends)
    await asyncio.sleep(0)
    asyncio.get_running_loop().call_soon(line.feed, b"3\r\none\r\nzz")
    await asyncio.sleep(0)
    assert (got, [type(error) for error in ends]) == ([b"one"], [UpstreamError])


async def test_an_answer_that_was_given_up_cannot_be_read() -> None:
    for leave in (HttpResponse.close, HttpResponse.release):
        line = Line().feed(CHUNKED + b"3\r\none\r\n")
        response = HttpResponse(line.connection)
        leave(response)
        assert line.wire.aborted
        assert await failure(response) == LOST


async def test_a_reader_goes_on_within_the_callback_that_brings_the_bytes() -> None:
    line = Line().feed(CHUNKED)
    response = HttpResponse(line.connection)
    got: list[bytes] = []

    async def read() -> None:
        while piece := await response.read():
            got.append(piece)
        got.append(b"end")

    def callbacks() -> None:
        EagerTask(read(), asyncio.get_running_loop(), lambda error: None).begin()
        line.feed(b"3\r\none\r\n")
        got.append(b"back")
        line.feed(END)

    asyncio.get_running_loop().call_soon(callbacks)
    await asyncio.sleep(0)
    assert got == [b"one", b"back", b"end"]
    assert line.shelf.taken_back == [line.connection]


async def test_closing_wakes_who_waits_once_the_connection_is_gone() -> None:
    line = Line().feed(CHUNKED)
    response = HttpResponse(line.connection)
    reading = asyncio.create_task(response.read())
    await asyncio.sleep(0)
    response.close()
    line.connection.connection_lost(None)
    with pytest.raises(UpstreamError):
        await reading


def test_headers_are_read_as_they_stand() -> None:
    head = b"HTTP/1.1 200 OK\r\nX-A: 1\r\nx-a:\t2 \r\nEmpty:\r\nX-B: a: b\xff\r\n\r\n"
    assert headers_of(head) == {"x-a": "2", "empty": "", "x-b": "a: b\udcff"}
