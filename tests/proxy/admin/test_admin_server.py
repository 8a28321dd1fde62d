"""Many connections to the admin listener, beside operators and clients."""

import asyncio
from collections.abc import Iterable

import pytest

from proxy.admin.admin_server import MOST_PROBES, MOST_WITHOUT_TOKEN
from tests.proxy.admin.operators import BEARER, Operator
from tests.proxy.kit.raw_client import exchange, request
from tests.proxy.kit.whole_gateway import port_of

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]

WRONG = request("GET", "/status", headers={"Authorization": "Bearer wrong"})
RIGHT = request("GET", "/metrics", headers=BEARER)
PROBE = request("GET", "/health/live")

LIGHT = request("POST", "/v1/completions", {"model": "mock/echo", "prompt": "hi"}, {"Authorization": "Bearer k"})


async def opened(guarded: Operator, count: int) -> list[Streams]:
    return [await asyncio.open_connection("127.0.0.1", port_of(guarded.app.admin_url)) for _ in range(count)]


async def answer(streams: Streams) -> bytes:
    """Return all bytes until the end of the connection; no bytes if it was aborted."""
    try:
        return await streams[0].read()
    except ConnectionError:
        return b""


def end(crowd: Iterable[Streams]) -> None:
    for _, writer in crowd:
        writer.close()


@pytest.mark.smoke
async def test_a_wrong_token_ends_its_connection_and_asks_for_the_right_one(guarded: Operator) -> None:
    (streams,) = await opened(guarded, 1)
    streams[1].write(WRONG + RIGHT)
    got = await answer(streams)
    assert got.startswith(b"HTTP/1.1 401 ")
    assert (got.count(b"HTTP/1.1 "), got.lower().count(b"www-authenticate: ")) == (1, 2)
    end([streams])


async def test_of_a_crowd_so_many_are_answered_at_once_and_whoever_has_shown_the_token_stays(
    guarded: Operator,
) -> None:
    (known,) = await opened(guarded, 1)
    known[1].write(RIGHT)
    assert (await known[0].readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
    crowd = await opened(guarded, MOST_WITHOUT_TOKEN * 3)
    for _, writer in crowd:
        writer.write(WRONG)
    light = await exchange(port_of(guarded.app.url), LIGHT)
    assert light.status == 200
    answers = await asyncio.gather(*map(answer, crowd))
    refused = [each for each in answers if each.startswith(b"HTTP/1.1 401 ")]
    assert len(refused) <= MOST_WITHOUT_TOKEN
    assert answers[-1] in refused
    known[1].write(RIGHT)
    rest = b""
    while b"HTTP/1.1 200 " not in rest:
        rest += await known[0].read(65536)
    end([known, *crowd])


@pytest.mark.smoke
async def test_without_the_crowd_there_is_room_again(guarded: Operator) -> None:
    for _ in range(3):
        crowd = await opened(guarded, MOST_WITHOUT_TOKEN)
        end(crowd)
        await asyncio.gather(*map(answer, crowd))
    (streams,) = await opened(guarded, 1)
    streams[1].write(WRONG)
    assert (await answer(streams)).startswith(b"HTTP/1.1 401 ")
    end([streams])


async def probed(streams: Streams) -> bytes:
    """Return the head of the response to a probe; no bytes if the connection has been closed."""
    try:
        streams[1].write(PROBE)
        head = await streams[0].readuntil(b"\r\n\r\n")
        await streams[0].readexactly(len(b'{"status":"ok"}'))
    except (ConnectionError, asyncio.IncompleteReadError):
        return b""
    return head


async def test_a_probe_keeps_its_connection_in_a_crowd_and_another_one_is_answered(guarded: Operator) -> None:
    (kept,) = await opened(guarded, 1)
    assert (await probed(kept)).startswith(b"HTTP/1.1 200 ")
    crowd = await opened(guarded, MOST_WITHOUT_TOKEN * 3)
    assert (await probed(kept)).startswith(b"HTTP/1.1 200 ")
    (fresh,) = await opened(guarded, 1)
    assert (await probed(fresh)).startswith(b"HTTP/1.1 200 ")
    crowd += await opened(guarded, MOST_WITHOUT_TOKEN)
    assert (await probed(kept)).startswith(b"HTTP/1.1 200 ")
    end([kept, fresh, *crowd])


async def test_probes_are_few_and_whoever_has_not_asked_for_longest_gives_way(guarded: Operator) -> None:
    probes = await opened(guarded, MOST_PROBES)
    for each in (*probes, probes[0]):
        assert (await probed(each)).startswith(b"HTTP/1.1 200 ")
    (further,) = await opened(guarded, 1)
    assert (await probed(further)).startswith(b"HTTP/1.1 200 ")
    assert await answer(probes[1]) == b""
    assert (await probed(probes[0])).startswith(b"HTTP/1.1 200 ")
    end([further, *probes])


async def test_a_probe_that_asks_for_more_without_the_token_is_refused_as_anybody(guarded: Operator) -> None:
    (streams,) = await opened(guarded, 1)
    assert (await probed(streams)).startswith(b"HTTP/1.1 200 ")
    streams[1].write(WRONG + PROBE)
    got = await answer(streams)
    assert (got.startswith(b"HTTP/1.1 401 "), got.count(b"HTTP/1.1 ")) == (True, 1)
    end([streams])
