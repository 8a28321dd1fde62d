"""Early refusal over real sockets: when it responds, that its responses equal the normal ones, and how they are
reported."""

import asyncio
import re
import socket
from collections.abc import AsyncIterator, Callable

import pytest

from proxy.errors import OverloadReason
from proxy.overload.admission_limits import AdmissionLimits
from proxy.surfaces.registry import SURFACES
from tests.proxy.kit.gateway_rig import AUTH, Rig, ask, rig
from tests.proxy.kit.raw_client import RawClient, connected, exchange, request
from tests.support.http_scripts import json_answer
from tests.support.openai_wire import completion
from tests.support.vendor_script import Until

OK = json_answer(200, completion("hello"))
POST = request("POST", "/v1/completions", ask(), AUTH)
CHANGING = re.compile(rb"(?<=request-id: )[0-9a-f]{24}|(?<=Date: )[^\r]*")
PATHS = [surface.endpoints[0].path for surface in SURFACES]


@pytest.fixture
async def full() -> AsyncIterator[Rig]:
    async with rig() as served:
        served.memory.share = 0.99
        assert (await served.post("/v1/completions", ask())).status == 503
        assert len(served.records) == 1
        yield served
        served.records.clear()


async def bytes_of(client: RawClient, data: bytes) -> bytes:
    """Return the response to these bytes, without the parts that differ each time."""
    await client.send(data)
    head = await client.reader.readuntil(b"\r\n\r\n")
    found = re.search(rb"Content-Length: (\d+)", head)
    assert found is not None
    return CHANGING.sub(b"*", head + await client.reader.readexactly(int(found[1])))


def at_the_door(served: Rig) -> int:
    served.door.look()
    return sum(count for *_, count in served.turned_away)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("case", [str.title, str.lower, str.upper])
async def test_the_ordinary_way_answers_the_same(full: Rig, path: str, case: Callable[[str], str]) -> None:
    fields = {case(name): value for name, value in {**AUTH, "connection": "keep-alive", "accept": "*/*"}.items()}
    data = request("POST", path, ask(), fields)
    async with connected(full.port) as client:
        refused = await bytes_of(client, data)
        assert (at_the_door(full), len(full.records)) == (1, 1)
        # Early refusal does not handle a request in two parts.
        await client.send(data[:20])
        await asyncio.sleep(0.01)
        assert await bytes_of(client, data[20:]) == refused
        assert (at_the_door(full), len(full.records)) == (1, 2)


@pytest.mark.smoke
async def test_a_connection_is_kept_and_serves_when_there_is_room_again(full: Rig) -> None:
    full.vendor.default = OK
    async with connected(full.port) as client:
        for _ in range(5):
            await client.send(POST)
            answer = await client.answer()
            assert answer.code == "overloaded"
            assert "connection" not in answer.headers
        full.memory.share = 0.0
        await client.send(POST)
        assert (await client.answer()).status == 200
        full.memory.share = 0.99
        await client.send(POST)
        assert (await client.answer()).status == 503
    # The last request may have arrived before the connection was seen to be idle again.
    assert at_the_door(full) in (5, 6)
    assert at_the_door(full) + len(full.records) == 8


@pytest.mark.smoke
async def test_a_connection_that_was_there_before_is_refused_at_the_door_too() -> None:
    async with rig() as served:
        served.vendor.default = OK
        async with connected(served.port) as client:
            await client.send(POST)
            assert (await client.answer()).status == 200
            served.memory.share = 0.99
            # Early refusal is tried only after the first request.
            for ordinary, door in ((2, 0), (2, 1), (2, 2)):
                await client.send(POST)
                assert (await client.answer()).status == 503
                assert (len(served.records), at_the_door(served)) == (ordinary, door)


async def test_bytes_that_the_parser_kept_make_the_next_ones_a_part_of_them() -> None:
    async with rig() as served:
        served.vendor.default = OK
        async with connected(served.port) as client:
            await client.send(POST + b"GET /health/live HTTP/1.1\r\nA: ")
            assert (await client.answer()).status == 200
            served.memory.share = 0.99
            assert (await served.post("/v1/completions", ask())).status == 503
            # After the first part, these bytes are the rest of a health check.
            await client.send(POST)
            assert (await client.answer()).status == 200
        assert at_the_door(served) == 0


async def test_after_half_a_request_the_other_half_is_no_request_of_its_own(full: Rig) -> None:
    async with connected(full.port) as client:
        await client.send(b"GET /health/live HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(POST))
        assert (await client.head())[0] == 200
        await client.send(POST)
        await asyncio.sleep(0.05)
        await client.send(POST)
        answer = (await client.reader.readuntil(b"\r\n\r\n")).split(b" ", 2)
        assert answer[:2] == [b"HTTP/1.1", b"503"] or answer[0].endswith(b"HTTP/1.1")
    # The body's bytes were no request; the request after them was.
    assert at_the_door(full) == 1


async def test_several_requests_at_once_are_answered_in_their_order(full: Rig) -> None:
    async with connected(full.port) as client:
        await client.send(POST)
        assert (await client.answer()).status == 503
        await client.send(POST + request("GET", "/health/live") + POST)
        assert [(await client.answer()).status for _ in range(3)] == [503, 200, 503]


async def test_health_is_never_refused(full: Rig) -> None:
    async with connected(full.port) as client:
        for path in ("/health", "/health/live", "/health/ready"):
            for method in ("GET", "POST"):
                await client.send(request(method, path))
                assert (await client.answer()).status == 200


async def test_an_id_of_the_client_s_is_echoed(full: Rig) -> None:
    async with connected(full.port) as client:
        for number in range(3):
            await client.send(request("POST", "/v1/completions", ask(), {**AUTH, "x-request-id": f"mine-{number}"}))
            assert (await client.answer()).headers["x-request-id"] == f"mine-{number}"


async def test_a_draining_gateway_takes_the_ordinary_way_and_closes(full: Rig) -> None:
    full.gateway.draining = True
    assert (await exchange(full.port, POST)).headers["connection"] == "close"
    assert at_the_door(full) == 0


async def test_refusals_are_counted_once_by_reason_surface_and_code(full: Rig) -> None:
    async with connected(full.port) as client:
        for path, count in (("/v1/completions", 3), ("/v5/completions", 2)):
            for _ in range(count):
                await client.send(request("POST", path, ask(), AUTH))
                assert (await client.answer()).status == 503
    assert at_the_door(full) == 5
    assert full.turned_away == [("openai", OverloadReason.MEMORY, 3), ("scale", OverloadReason.MEMORY, 2)]
    assert {name: count for name, count in full.series("shed_total").items() if count} == {
        "shed_total reason=memory": 6.0
    }
    assert full.series("requests_total") == {
        "requests_total code=503 model=other outcome=shed stream=false surface=openai team=unknown": 4.0,
        "requests_total code=503 model=other outcome=shed stream=false surface=scale team=unknown": 2.0,
    }


async def test_a_client_that_does_not_read_is_answered_no_more_than_its_buffer_holds(full: Rig) -> None:
    most, answered, loop = 50_000, 0, asyncio.get_running_loop()
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.setblocking(False)
        await loop.sock_connect(client, ("127.0.0.1", full.port))
        for sent in range(1, most):
            await loop.sock_sendall(client, POST)
            before = loop.time()
            while answered < sent and loop.time() < before + 1:
                await asyncio.sleep(0)
                told = sum(count for *_, count in full.turned_away)
                answered = told + full.door._counts.total()
            if answered < sent:
                break
    assert 0 < answered < most - 1


async def test_places_of_those_who_were_let_in_are_given_back_when_they_leave() -> None:
    async with rig(limits=AdmissionLimits(requests=1)) as served:
        go = asyncio.Event()
        served.vendor.default = (Until(go), *OK)
        first = asyncio.create_task(served.post("/v1/completions", ask()))
        await served.vendor.received(1)
        async with connected(served.port) as client:
            for _ in range(2):
                await client.send(POST)
                assert (await client.answer()).status == 503
            go.set()
            assert (await first).status == 200
            go.clear()
            await client.send(POST)
            await served.vendor.received(2)
            assert (await served.post("/v1/completions", ask())).status == 503
        go.set()
        served.vendor.default = OK
        async with asyncio.timeout(30):
            while (await served.post("/v1/completions", ask())).status != 200:  # noqa: ASYNC110 - no event
                await asyncio.sleep(0.01)


async def test_a_crowd_that_waits_is_served_and_the_rest_is_refused_at_once() -> None:
    async with rig() as served:
        served.vendor.default = OK
        loop = asyncio.get_running_loop()
        for _ in range(1024):
            served.line.coming += 1
        held = [loop.create_task(served.line.wait()) for _ in range(33)]
        await asyncio.sleep(0)
        served.line.tick()
        assert served.line.too_long
        answer = await served.post("/v1/completions", ask())
        assert (answer.status, answer.code) == (503, "overloaded")
        assert answer.message.startswith("The gateway has more requests waiting")
        served.line.coming = 0
        answers = await asyncio.gather(*(served.post("/v1/completions", ask()) for _ in range(40)))
        assert {answer.status for answer in answers} == {200}
        await asyncio.gather(*held)
