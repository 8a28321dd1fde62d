"""Clients that close their sending half: a waiting client gets the response, and a client that is gone keeps no
vendor busy."""

import asyncio

import pytest

from proxy.listener.half_closed_clients import PROBED_AT
from tests.proxy.kit.gateway_rig import AUTH, Rig, ask, rig
from tests.proxy.kit.raw_client import RawClient, connected, request
from tests.support.http_scripts import LAST_CHUNK, chunk, head, json_answer
from tests.support.looped import looped
from tests.support.openai_wire import completion, completion_frames
from tests.support.vendor_script import Delay, Hang, Script, Send

FRAMES = completion_frames(["one", "two"])
START = Send(head(200, [("content-type", "text/event-stream"), ("transfer-encoding", "chunked")]) + chunk(FRAMES[0]))
LATE: Script = (Delay(0.3), *json_answer(200, completion("late")))
LATE_STREAM: Script = (START, Delay(0.3), Send(chunk(b"".join(FRAMES[1:])) + LAST_CHUNK))


async def send_half_closed(made: Rig, client: RawClient, stream: bool) -> None:
    """Send a request, close the sending half of the connection, and wait until the vendor has the request."""
    await client.send(request("POST", "/v1/completions", ask("v/m", stream=stream), AUTH))
    client.writer.write_eof()
    await made.vendor.received(1)


@pytest.mark.smoke
async def test_who_closes_one_half_gets_the_answer_behind_an_interim_one() -> None:
    async with rig() as made, connected(made.port) as client:
        made.vendor.answer(LATE)
        await send_half_closed(made, client, stream=False)
        statuses = []
        while (status_and_headers := await client.head())[0] == 100:
            statuses.append(100)
        status, headers = status_and_headers
        body = await client.reader.readexactly(int(headers["content-length"]))
        assert (statuses[:1], status) == ([100], 200)
        assert b"late" in body
        assert await client.closed() == b""
        (record,) = await made.finished(1)
        assert record.outcome == "ok"


@pytest.mark.smoke
async def test_who_closes_one_half_gets_the_stream_to_its_end() -> None:
    async with rig() as made, connected(made.port) as client:
        made.vendor.answer(LATE_STREAM)
        await client.send(request("POST", "/v1/completions", ask("v/m", stream=True), AUTH))
        status, _ = await client.head()
        first = await client.chunk()
        client.writer.write_eof()
        rest, whole = await client.chunks()
        assert (status, whole) == (200, True)
        assert (first + rest).endswith(b"data: [DONE]\n\n")
        assert b": keep-alive\n\n" in rest


@looped("later", [0.0, 0.3])
@looped("script", [(Hang(),), (START, Hang())], ids=["before the answer", "in a stream"])
async def test_who_closes_the_other_half_too_is_gone(script: Script, later: float) -> None:
    async with rig() as made:
        made.vendor.default = script
        async with connected(made.port) as client:
            await send_half_closed(made, client, stream=len(script) > 1)
            await asyncio.sleep(later)
        async with asyncio.timeout(20):
            (record,) = await made.finished(1)
            while made.vendor.open_connections:  # noqa: ASYNC110 - no event
                await asyncio.sleep(0.01)
        assert record.outcome == "client_gone"


async def test_half_a_request_gets_no_answer() -> None:
    async with rig() as made, connected(made.port) as client:
        whole = request("POST", "/v1/completions", ask("v/m"), AUTH)
        await client.send(whole[:-1])
        client.writer.write_eof()
        assert b"200" not in await client.closed()
        assert made.vendor.requests == []


@pytest.mark.parametrize("later", [0.0, 0.01])
async def test_half_a_request_is_refused_for_what_its_head_says(later: float) -> None:
    async with rig() as made, connected(made.port) as client:
        await client.send(request("POST", "/nowhere", ask("v/m"), AUTH)[:-1])
        await asyncio.sleep(later)
        client.writer.write_eof()
        assert (await client.closed()).startswith(b"HTTP/1.1 404 ")


async def test_an_old_client_that_closes_one_half_is_taken_for_gone() -> None:
    async with rig() as made, connected(made.port) as client:
        made.vendor.default = (Hang(),)
        await client.send(request("POST", "/v1/completions", ask("v/m"), AUTH).replace(b"HTTP/1.1", b"HTTP/1.0", 1))
        client.writer.write_eof()
        assert await client.closed() == b""


async def test_who_waits_long_gets_few_interim_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proxy.listener.http_connection.LOOK_EVERY", 0.02)
    async with rig() as made, connected(made.port) as client:
        made.vendor.answer((Delay(1.5), *json_answer(200, completion("late"))))
        await send_half_closed(made, client, stream=False)
        interim = 0
        while (await client.head())[0] == 100:
            interim += 1
        assert interim == len(PROBED_AT)
