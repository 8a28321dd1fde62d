"""The fake vendor records every request exactly, follows its script exactly, and leaves nothing behind."""

import asyncio
from collections.abc import AsyncIterator

import aiohttp
import pytest

from tests.support.http_scripts import body_answer, json_answer
from tests.support.looped import looped
from tests.support.vendor import FakeVendor
from tests.support.vendor_connection import BadRequest, parse_head
from tests.support.vendor_script import Delay, Fin, Hang, Loop, Received, Rst, Script, Send, Until

OK = json_answer(200, {"ok": True})


@pytest.fixture
async def vendor() -> AsyncIterator[FakeVendor]:
    async with FakeVendor(OK) as running:
        yield running


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    """A client like the gateway's own: pooled, and independent of the environment."""
    async with aiohttp.ClientSession(trust_env=False) as session:
        yield session


async def talk(vendor: FakeVendor, data: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", vendor.port)
    writer.write(data)
    await writer.drain()
    return reader, writer


async def close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    await writer.wait_closed()


async def exchange(vendor: FakeVendor, data: bytes) -> bytes:
    reader, writer = await talk(vendor, data)
    try:
        return await reader.read()
    finally:
        await close(writer)


async def test_a_request_is_recorded_as_it_was_sent(vendor: FakeVendor, http: aiohttp.ClientSession) -> None:
    async with http.post(f"{vendor.base_url}/v1/x?a=1", json={"model": "m", "n": 1}, headers={"X-One": "1"}) as answer:
        assert await answer.json() == {"ok": True}
    (request,) = vendor.requests
    assert (request.method, request.target, request.path) == ("POST", "/v1/x?a=1", "/v1/x")
    assert request.json() == {"model": "m", "n": 1}
    assert request.model == "m"
    assert request.header("x-one") == "1"
    assert request.header("absent") is None


async def test_repeated_headers_are_kept_in_order(vendor: FakeVendor) -> None:
    head = b"GET / HTTP/1.1\r\nHost: x\r\nA: 1\r\na: 2\r\nConnection: close\r\n\r\n"
    await exchange(vendor, head)
    assert vendor.requests[0].headers == [("Host", "x"), ("A", "1"), ("a", "2"), ("Connection", "close")]


async def test_a_chunked_body_is_joined(vendor: FakeVendor, http: aiohttp.ClientSession) -> None:
    async def upload() -> AsyncIterator[bytes]:
        for piece in (b"one ", b"two ", b"three"):
            yield piece

    async with http.post(vendor.base_url, data=upload()):
        pass
    assert vendor.requests[0].body == b"one two three"


async def test_a_body_is_joined_however_it_arrives(vendor: FakeVendor) -> None:
    reader, writer = await talk(vendor, b"")
    for byte in b"POST /b HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello":
        writer.write(bytes([byte]))
        await writer.drain()
        await asyncio.sleep(0)
    assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"
    assert vendor.requests[0].body == b"hello"
    await close(writer)


async def test_a_connection_serves_one_request_after_the_other(vendor: FakeVendor, http: aiohttp.ClientSession) -> None:
    for _ in range(3):
        async with http.get(vendor.base_url) as answer:
            await answer.read()
    assert [request.connection for request in vendor.requests] == [0, 0, 0]
    assert vendor.connections == 1


async def test_a_connection_that_is_to_be_closed_is_closed(vendor: FakeVendor) -> None:
    answer = await exchange(vendor, b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert answer.endswith(b'{"ok":true}')


async def status_of(http: aiohttp.ClientSession, url: str, model: str = "") -> int:
    async with http.post(url, json={"model": model}) as answer:
        await answer.read()
        return answer.status


async def test_the_queue_beats_the_model_and_that_the_path(vendor: FakeVendor, http: aiohttp.ClientSession) -> None:
    vendor.answer(json_answer(201, None))
    vendor.answer_model("m", json_answer(202, None))
    vendor.answer_path("/p", json_answer(203, None))
    url = vendor.base_url
    assert [await status_of(http, f"{url}/p", "m") for _ in range(2)] == [201, 202]
    assert await status_of(http, f"{url}/p", "other") == 203
    assert await status_of(http, f"{url}/else", "other") == 200


async def test_a_function_sees_the_request_it_answers(vendor: FakeVendor, http: aiohttp.ClientSession) -> None:
    def echo(request: Received) -> Script:
        return body_answer(200, request.body)

    vendor.default = echo
    async with http.post(vendor.base_url, data=b"abc") as answer:
        assert await answer.read() == b"abc"


async def test_without_a_script_the_answer_names_the_request(http: aiohttp.ClientSession) -> None:
    async with FakeVendor() as vendor, http.post(f"{vendor.base_url}/v1/y", json={"model": "m"}) as answer:
        assert (answer.status, await answer.text()) == (501, "no script for POST /v1/y (model 'm')")


GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


async def test_bytes_are_sent_in_order_and_end_with_a_fin(vendor: FakeVendor) -> None:
    vendor.answer((Send(b"one"), Delay(0.001), Send(b"two"), Fin(), Send(b"never")))
    assert await exchange(vendor, GET) == b"onetwo"


async def test_a_reset_comes_after_what_was_sent(vendor: FakeVendor) -> None:
    vendor.answer((Send(b"one"), Rst()))
    reader, writer = await talk(vendor, GET)
    assert await reader.readexactly(3) == b"one"
    with pytest.raises(ConnectionResetError):
        await reader.read()
    writer.transport.abort()


async def test_more_than_the_kernel_holds_arrives_whole(vendor: FakeVendor) -> None:
    body = bytes(8_000_000)
    vendor.answer((Send(body), Fin()))
    assert len(await exchange(vendor, GET)) == len(body)


async def test_a_test_can_hold_the_vendor_back(vendor: FakeVendor) -> None:
    gate = asyncio.Event()
    vendor.answer((Send(b"one"), Until(gate), Send(b"two"), Fin()))
    reader, writer = await talk(vendor, GET)
    assert await reader.readexactly(3) == b"one"
    gate.set()
    assert await reader.read() == b"two"
    await close(writer)


@pytest.mark.parametrize("step", [Hang(), Delay(3600), Until(asyncio.Event()), Loop((Delay(3600),))])
@pytest.mark.parametrize("leave", ["fin", "rst"])
async def test_the_peer_leaving_ends_every_wait_and_is_recorded(vendor: FakeVendor, step: Hang, leave: str) -> None:
    vendor.answer((Send(b"one"), step, Send(b"never")))
    reader, writer = await talk(vendor, GET)
    assert await reader.readexactly(3) == b"one"
    (request,) = await vendor.received(1)
    assert not request.gone.is_set()
    if leave == "rst":
        writer.transport.abort()
    else:
        await close(writer)
    await request.gone.wait()
    await vendor.connected(0)


async def test_a_loop_goes_on_until_the_peer_leaves(vendor: FakeVendor) -> None:
    vendor.answer((Send(b"head;"), Loop((Send(b"ping;"),))))
    reader, writer = await talk(vendor, GET)
    assert await reader.readexactly(5 + 5 * 1000) == b"head;" + b"ping;" * 1000
    await close(writer)
    await vendor.requests[0].gone.wait()


async def test_a_script_at_accept_runs_before_the_request_is_read(vendor: FakeVendor) -> None:
    vendor.at_accept((Send(b"hello"), Fin()))
    assert await exchange(vendor, b"") == b"hello"
    assert vendor.requests == []
    assert (await exchange(vendor, GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))).startswith(
        b"HTTP/1.1 200"
    )


async def test_a_request_whose_sender_left_at_once_is_still_recorded(vendor: FakeVendor) -> None:
    _, writer = await talk(vendor, GET)
    await close(writer)
    (request,) = await vendor.received(1)
    await request.gone.wait()


async def test_half_a_request_is_no_request(vendor: FakeVendor) -> None:
    _, writer = await talk(vendor, b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhell")
    await vendor.connected(1)
    await close(writer)
    await vendor.connected(0)
    assert vendor.requests == []


async def test_leaving_ends_connections_in_every_state() -> None:
    async with FakeVendor((Send(b"one"), Hang())) as vendor:
        hanging, idle = await talk(vendor, GET), await talk(vendor, b"")
        assert await hanging[0].readexactly(3) == b"one"
        await vendor.connected(2)
    assert vendor.open_connections == 0
    assert asyncio.all_tasks() == {asyncio.current_task()}
    for _, writer in (hanging, idle):
        writer.transport.abort()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", vendor.port)


async def test_what_a_script_function_raises_reaches_the_test() -> None:
    def broken(request: Received) -> Script:
        raise LookupError(request.path)

    with pytest.raises(ExceptionGroup, match="fake vendor") as caught:
        async with FakeVendor(broken) as vendor:
            assert await exchange(vendor, GET) == b""
    assert caught.group_contains(LookupError)


async def test_the_blocks_own_error_is_not_hidden_by_the_vendors() -> None:
    async def fail() -> None:
        async with FakeVendor() as vendor:
            await exchange(vendor, b"nonsense\r\n\r\n")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as caught:
        await fail()
    assert "nonsense" in caught.value.__notes__[0]


@looped(
    ("request_bytes", "reason"),
    [
        (b"nonsense\r\n\r\n", "request line"),
        (b"GET / HTTP/1.0\r\nHost: x\r\n\r\n", "request line"),
        (b"GET / HTTP/1.1\r\n\r\n", "host"),
        (b"GET / HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n", "host"),
        (b"GET / HTTP/1.1\r\nHost : x\r\n\r\n", "header line"),
        (b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", "content-length"),
        (b"GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n", "transfer-encoding"),
        (b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", "both"),
    ],
)
async def test_a_peer_that_does_not_speak_http_fails_the_test(request_bytes: bytes, reason: str) -> None:
    with pytest.raises(ExceptionGroup) as caught:
        async with FakeVendor(OK) as vendor:
            assert await exchange(vendor, request_bytes) == b""
    assert caught.group_contains(BadRequest, match=reason)


def test_a_head_is_taken_apart() -> None:
    head = b"POST /a%2Fb?c HTTP/1.1\r\nHost: h:1\r\nX: \xe9 : y"
    assert parse_head(head) == ("POST", "/a%2Fb?c", [("Host", "h:1"), ("X", "é : y")])
