"""Refusals of an overloaded gateway: their bytes, and the client, the log and the metrics over real sockets."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import suppress
from unittest import mock

import orjson
import pytest

from proxy.errors import OverloadReason, overloaded
from proxy.overload.admission_limits import AdmissionLimits
from proxy.overload.refusal_responses import DRAIN_BYTES, RefusalResponse, RefusalResponses
from proxy.request_record import fresh_id
from proxy.surfaces.anthropic.surface import ANTHROPIC
from proxy.surfaces.registry import SURFACES
from proxy.surfaces.surface import Surface
from proxy.telemetry.access_log import request_line
from tests.proxy.kit.gateway_rig import AUTH, Rig, ask, rig
from tests.proxy.kit.raw_client import connected, exchange, request
from tests.support.http_scripts import chunk, head, json_answer
from tests.support.looped import looped
from tests.support.openai_wire import completion, completion_frames
from tests.support.vendor_script import Hang, Send, Until

pytestmark = pytest.mark.smoke


OK = json_answer(200, completion("hello"))
POSTS = [(surface, surface.endpoints[0].path) for surface in SURFACES]


@pytest.fixture
async def full() -> AsyncIterator[Rig]:
    """Run a gateway that refuses every request except health checks."""
    async with rig() as served:
        served.memory.share = 0.99
        yield served


def sheds(served: Rig) -> dict[str, float]:
    return {name.partition("reason=")[2]: count for name, count in served.series("shed_total").items() if count}


@pytest.mark.parametrize(("surface", "path"), POSTS, ids=[path for _, path in POSTS])
async def test_a_refusal_wears_the_surface_s_envelope(full: Rig, surface: Surface, path: str) -> None:
    answer = await full.post(path, ask(), {"x-request-id": "abc-1"})
    status, body = surface.error(overloaded(OverloadReason.MEMORY).facts)
    assert (answer.status, answer.body, answer.whole) == (status, body, True)
    assert answer.status == (529 if surface is ANTHROPIC else 503)
    assert answer.headers["x-request-id"] == "abc-1"
    assert answer.headers.get("request-id") == ("abc-1" if surface is ANTHROPIC else None)
    assert answer.headers["retry-after"] == "1"
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["server"] == "dragoman"
    assert answer.headers["cache-control"] == "no-store"
    assert "x-should-retry" not in answer.headers
    assert "connection" not in answer.headers


async def test_everything_but_health_is_refused_before_its_key_and_its_body_are_looked_at(full: Rig) -> None:
    assert (await full.get("/health/live")).status == 200
    assert (await full.get("/health/ready")).status == 200
    assert (await full.get("/v1/models")).code == "overloaded"
    assert (await full.get("/nowhere", {})).code == "overloaded"
    assert (await full.post("/v1/completions", b"no json", {"Authorization": "wrong"})).code == "overloaded"


async def test_a_refusal_is_told_once_and_counted_with_its_reason(full: Rig) -> None:
    await full.post("/v5/completions", ask(), {"x-request-id": "abc-2"})
    (record,) = await full.finished(1)
    line = orjson.loads(request_line(record, record.cost))
    told = {name: line[name] for name in ("request_id", "surface", "team", "status", "code", "outcome")}
    assert told == {
        "request_id": "abc-2",
        "surface": "scale",
        "team": "unknown",
        "status": 503,
        "code": "overloaded",
        "outcome": "shed",
    }
    assert sheds(full) == {"memory": 1.0}
    assert list(full.series("requests_total")) == [
        "requests_total code=503 model=other outcome=shed stream=false surface=scale team=unknown"
    ]
    assert full.series("request_duration") == {}


async def test_a_late_loop_refuses_and_a_punctual_one_takes_on_again() -> None:
    async with rig() as served:
        served.vendor.default = OK
        for now in (0.4, 0.8, 1.2):
            served.lags.add(0.3, now)
            assert (await served.post("/v1/completions", ask())).status == 200
        for now in (1.6, 2.0):
            served.lags.add(0.3, now)
        assert (await served.post("/v1/completions", ask())).code == "overloaded"
        for tick in range(9):
            served.lags.add(0.0, 2.1 + tick / 10)
        assert (await served.post("/v1/completions", ask())).status == 200
        assert sheds(served) == {"loop_lag": 1.0}


async def test_the_one_beyond_the_lid_is_refused_and_the_others_are_answered() -> None:
    async with rig(limits=AdmissionLimits(requests=1)) as served:
        go = asyncio.Event()
        served.vendor.default = (Until(go), *OK)
        first = asyncio.create_task(served.post("/v1/completions", ask()))
        await served.vendor.received(1)
        assert (await served.post("/v1/completions", ask())).message.startswith("The gateway has reached its limit")
        go.set()
        assert (await first).status == 200
        assert (await served.post("/v1/completions", ask())).status == 200


async def test_bodies_together_stay_below_their_lid() -> None:
    async with rig(limits=AdmissionLimits(body_bytes=3000)) as served:
        go = asyncio.Event()
        served.vendor.default = (Until(go), *OK)
        first = asyncio.create_task(served.post("/v1/completions", ask(prompt="x" * 2000)))
        await served.vendor.received(1)
        assert (await served.post("/v1/completions", ask(prompt="x" * 2000))).code == "overloaded"
        assert sheds(served) == {"body_bytes": 1.0}
        go.set()
        assert (await first).status == 200


async def test_no_stream_begins_beyond_the_lid_and_what_is_not_streamed_is_answered() -> None:
    async with rig(limits=AdmissionLimits(streams=1)) as served:
        begin = Send(head(200, [("content-type", "text/event-stream"), ("transfer-encoding", "chunked")]))
        served.vendor.answer((begin, Send(chunk(completion_frames(["one"])[0])), Hang()), OK)
        async with connected(served.port) as client:
            await client.send(request("POST", "/v1/completions", ask(stream=True), AUTH))
            assert (await client.head())[0] == 200
            second = await served.post("/v1/completions", ask(stream=True))
            assert (second.status, second.code) == (503, "overloaded")
            assert second.headers["retry-after"] == "1"
            assert (await served.post("/v1/completions", ask())).status == 200
        records = await served.finished(3)
        assert [record.outcome for record in records] == ["shed", "ok", "client_gone"]
        assert sheds(served) == {"streams": 1.0}


async def test_a_kept_connection_is_kept_and_serves_when_there_is_room_again(full: Rig) -> None:
    full.vendor.default = OK
    data = request("POST", "/v1/completions", ask(), AUTH)
    async with connected(full.port) as client:
        for _ in range(3):
            await client.send(data)
            assert (await client.answer()).code == "overloaded"
        await client.send(data * 3)
        assert [(await client.answer()).code for _ in range(3)] == ["overloaded"] * 3
        full.memory.share = 0.0
        await client.send(data)
        assert (await client.answer()).status == 200


async def test_a_short_body_that_comes_after_its_refusal_is_no_next_request(full: Rig) -> None:
    full.vendor.default = OK
    data = request("POST", "/v1/completions", ask(), AUTH)
    begin, _, body = data.partition(b"\r\n\r\n")
    async with connected(full.port) as client:
        await client.send(begin + b"\r\n\r\n")
        answer = await client.answer()
        assert "connection" not in answer.headers
        full.memory.share = 0.0
        await client.send(body + data)
        assert (await client.answer()).status == 200


async def test_a_client_that_is_still_uploading_20_mb_reads_its_refusal(full: Rig) -> None:
    size, piece = 20 * 2**20, b"x" * 2**16
    begin = f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {size}\r\n\r\n".encode()

    async def upload() -> None:
        for _ in range(size // len(piece)):
            await client.send(piece)

    async with connected(full.port) as client:
        await client.send(begin + piece)
        uploading = asyncio.create_task(upload())
        answer = await client.answer()
        assert (answer.code, answer.headers["connection"], answer.whole) == ("overloaded", "close", True)
        uploading.cancel()
        await asyncio.gather(uploading, return_exceptions=True)
        with suppress(ConnectionResetError):  # bytes that were in flight when the gateway closed
            assert await client.closed() == b""
    assert full.gateway.in_flight == 0


@pytest.mark.parametrize(
    "headers",
    [
        {"Expect": "100-continue", "Content-Length": "10"},
        {"Content-Length": str(DRAIN_BYTES)},
        {"Transfer-Encoding": "chunked"},
        {"Connection": "close", "Content-Length": "0"},
    ],
    ids=["waiting to be invited", "too long to read", "of no known length", "closing"],
)
async def test_a_connection_whose_next_bytes_are_worth_nothing_is_closed(full: Rig, headers: dict[str, str]) -> None:
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    async with connected(full.port) as client:
        await client.send(f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n".encode())
        answer = await client.answer()
        assert (answer.code, answer.headers["connection"]) == ("overloaded", "close")
        client.writer.write_eof()
        assert await client.closed() == b""


async def test_a_client_of_the_first_http_version_is_answered_and_left(full: Rig) -> None:
    async with connected(full.port) as client:
        await client.send(b"GET /v1/models HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
        assert (await client.answer()).headers["connection"] == "close"
        assert await client.closed() == b""


async def test_a_draining_gateway_keeps_no_connection(full: Rig) -> None:
    full.gateway.draining = True
    assert (await full.post("/v1/completions", ask())).headers["connection"] == "close"


async def test_an_answer_to_head_has_no_body(full: Rig) -> None:
    async with connected(full.port) as client:
        await client.send(request("HEAD", "/v1/models") + request("GET", "/v1/models"))
        assert (await client.head())[0] == 503
        assert (await client.answer()).code == "overloaded"


async def test_an_id_that_may_not_be_echoed_reaches_no_header(full: Rig) -> None:
    data = b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\nx-request-id: a b\xe9\r\n\r\n"
    answer = await exchange(full.port, data)
    assert len(answer.headers["x-request-id"]) == 24


@looped("reason", OverloadReason)
@looped("surface", SURFACES, ids=lambda surface: surface.name)
def test_an_answer_is_its_surface_s_envelope_with_an_id_of_its_own(surface: Surface, reason: OverloadReason) -> None:
    refusal = RefusalResponse(surface, reason)
    first, second = refusal.encode(fresh_id()), refusal.encode(fresh_id())
    status, body = surface.error(overloaded(reason).facts)
    assert first.startswith(f"HTTP/1.1 {status} ".encode())
    assert first.endswith(b"\r\n\r\n" + body)
    assert b"\r\nretry-after: 1\r\n" in first
    ids = [re.findall(rb"\r\nx-request-id: ([0-9a-f]{24})\r\n", answer)[0] for answer in (first, second)]
    assert ids[0] != ids[1]


def test_the_date_of_an_answer_is_that_of_its_second() -> None:
    refusal = RefusalResponse(SURFACES[0], OverloadReason.MEMORY)
    with mock.patch("time.time", return_value=1_000_000_000.9):
        assert b"\r\nDate: Sun, 09 Sep 2001 01:46:40 GMT\r\n" in refusal.encode(fresh_id())
    with mock.patch("time.time", return_value=1_000_000_001.0):
        assert b"\r\nDate: Sun, 09 Sep 2001 01:46:41 GMT\r\n" in refusal.encode(fresh_id())


def test_an_envelope_is_made_once() -> None:
    refusals, made = RefusalResponses(), []

    class Counting:
        name = "counted"

        def error(self, facts: object) -> tuple[int, bytes]:
            made.append(facts)
            return 503, b"{}"

    for _ in range(3):
        for reason in OverloadReason:
            refusals.get(Counting(), reason)  # type: ignore[arg-type]  # the only part of a surface that is used
    assert len(made) == len(OverloadReason)
