"""Request bodies over real sockets: complete, too large, compressed, late, and announced by `Expect`."""

import asyncio
import gzip
from collections.abc import AsyncIterator

import pytest

from proxy.listener import request_body
from tests.proxy.kit.echo_listener import LIMIT, Echo, listening
from tests.proxy.kit.raw_client import connected, exchange, request


@pytest.fixture
def handler() -> Echo:
    return Echo()


@pytest.fixture
async def port(handler: Echo) -> AsyncIterator[int]:
    async with listening(handler) as made:
        yield made


@pytest.mark.smoke
async def test_a_body_is_read_whole(port: int) -> None:
    answer = await exchange(port, request("POST", "/", b"x" * LIMIT))
    assert (answer.status, answer.body) == (200, b"x" * LIMIT)


@pytest.mark.smoke
async def test_no_body_is_an_empty_one(port: int) -> None:
    answer = await exchange(port, b"POST / HTTP/1.1\r\nHost: x\r\n\r\n")
    assert (answer.status, answer.body) == (200, b"")


async def test_a_body_is_refused_by_its_declared_length_before_it_comes(port: int) -> None:
    async with connected(port) as client:
        await client.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (LIMIT + 1))
        answer = await client.answer()
    assert (answer.status, answer.body) == (413, b"The request body is larger than 2048 bytes.")


CHUNKED = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"


async def test_a_chunked_body_is_refused_once_it_is_too_large(port: int) -> None:
    async with connected(port) as client:
        await client.send(CHUNKED + b"%x\r\n%s\r\n" % (LIMIT, b"x" * LIMIT) + b"1\r\nx\r\n")
        assert (await client.answer()).status == 413


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd", "gzip, gzip", "identity, gzip", "unheard-of", ""])
async def test_a_compressed_body_is_refused_unread(port: int, coding: str) -> None:
    answer = await exchange(port, request("POST", "/", gzip.compress(b"x" * 100_000), {"Content-Encoding": coding}))
    message = b"The request body must not be compressed; send it without Content-Encoding."
    assert (answer.status, answer.body) == (415, message)


@pytest.mark.parametrize("coding", ["identity", "Identity"])
async def test_a_body_that_says_it_is_not_compressed_is_taken(port: int, coding: str) -> None:
    assert (await exchange(port, request("POST", "/", b"abc", {"Content-Encoding": coding}))).body == b"abc"


async def test_broken_chunks_are_a_client_error(port: int) -> None:
    async with connected(port) as client:
        await client.send(CHUNKED + b"nonsense\r\n")
        assert (await client.answer()).status == 400


async def test_a_body_that_stalls_is_not_waited_for_for_ever(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_body, "BODY_WAIT", 0.05)
    async with connected(port) as client:
        await client.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc")
        answer = await client.answer()
    assert answer.status == 408
    assert answer.body == b"The request body did not arrive within 0.05 s and 1 s per 100 kB."


@pytest.mark.parametrize("framing", ["Content-Length: 16", "Transfer-Encoding: chunked"])
async def test_a_body_that_keeps_its_pace_is_waited_for_and_counted(
    port: int, handler: Echo, framing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_body, "BODY_WAIT", 0.2)
    monkeypatch.setattr(request_body, "BODY_PACE", 4)
    chunked = framing.endswith("chunked")
    async with connected(port) as client:
        await client.send(f"POST / HTTP/1.1\r\nHost: x\r\n{framing}\r\n\r\n".encode())
        for _ in range(4):
            await asyncio.sleep(0.1)
            await client.send(b"4\r\nabcd\r\n" if chunked else b"abcd")
        await client.send(b"0\r\n\r\n" if chunked else b"")
        assert (await client.answer()).body == b"abcd" * 4
    assert handler.sizes == [4, 8, 12, 16, 16]


async def test_a_body_that_drips_is_not_waited_for(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_body, "BODY_WAIT", 0.1)
    async with connected(port) as client:
        await client.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n")

        async def drip() -> None:
            while True:
                await client.send(b"x")
                await asyncio.sleep(0.01)

        dripping = asyncio.create_task(drip())
        assert (await client.answer()).status == 408
        dripping.cancel()


async def test_a_client_that_asks_first_is_told_to_go_on(port: int) -> None:
    async with connected(port) as client:
        await client.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n")
        assert await client.head() == (100, {})
        await client.send(b"abc")
        assert (await client.answer()).body == b"abc"


async def test_a_client_of_the_first_version_is_not_told_to_go_on(port: int) -> None:
    async with connected(port) as client:
        await client.send(b"POST / HTTP/1.0\r\nHost: x\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\nabc")
        assert (await client.answer()).body == b"abc"


async def test_a_client_that_asks_first_is_told_no_where_the_body_is_too_large(port: int) -> None:
    async with connected(port) as client:
        await client.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9999\r\nExpect: 100-continue\r\n\r\n")
        assert (await client.answer()).status == 413
