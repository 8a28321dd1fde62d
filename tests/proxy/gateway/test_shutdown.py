"""Requests in flight during a shutdown, and the notice of the end."""

import asyncio

import pytest

from proxy.deadlines import Phase
from tests.proxy.kit.gateway_rig import AUTH, Rig, ask
from tests.proxy.kit.raw_client import connected, request
from tests.support.http_scripts import LAST_CHUNK, chunk, head, json_answer, sse_answer
from tests.support.openai_wire import completion, completion_frames
from tests.support.vendor_script import Hang, Script, Send, Until

OK = json_answer(200, completion("hello", "m"))
FRAMES = completion_frames(["one"])
START = Send(head(200, [("content-type", "text/event-stream"), ("transfer-encoding", "chunked")]) + chunk(FRAMES[0]))


def expire(served: Rig) -> None:
    for clock in tuple(served.gateway.deadlines):
        clock.expire(Phase.DRAIN)


@pytest.mark.parametrize("path", ["/v1/completions", "/v1/models", "/nowhere", "/health"])
async def test_while_draining_each_answer_says_that_its_connection_closes(served: Rig, path: str) -> None:
    served.gateway.draining = True
    async with connected(served.port) as client:
        body = ask() if path == "/v1/completions" else None
        await client.send(request("GET" if body is None else "POST", path, body, AUTH))
        answer = await client.answer()
        assert answer.whole
        assert answer.headers["connection"] == "close"
        assert await client.closed() == b""


async def test_a_stream_that_begins_while_draining_says_so_too(served: Rig) -> None:
    served.gateway.draining = True
    served.vendor.answer(sse_answer(FRAMES))
    answer = await served.post("/v1/completions", ask(stream=True))
    assert (answer.whole, answer.headers["connection"]) == (True, "close")


async def test_a_request_that_began_before_the_drain_is_told_of_it(served: Rig) -> None:
    gate = asyncio.Event()
    served.vendor.answer((Until(gate), *OK))
    async with connected(served.port) as client:
        await client.send(request("POST", "/v1/completions", ask(), AUTH))
        await served.vendor.received(1)
        assert not served.gateway.idle.is_set()
        served.gateway.draining = True
        gate.set()
        answer = await client.answer()
    assert (answer.status, answer.headers["connection"]) == (200, "close")
    await served.gateway.idle.wait()
    assert served.gateway.in_flight == 0


@pytest.mark.parametrize("stream", [False, True])
async def test_who_has_no_content_at_the_drain_s_end_gets_a_real_error(served: Rig, stream: bool) -> None:
    served.vendor.answer((Hang(),))
    async with connected(served.port) as client:
        await client.send(request("POST", "/v1/completions", ask(stream=stream), AUTH))
        await served.vendor.received(1)
        expire(served)
        answer = await client.answer()
    assert (answer.status, answer.code, answer.whole) == (503, "overloaded", True)
    assert answer.message == "The gateway is shutting down."
    (record,) = await served.finished(1)
    assert (record.outcome, record.attempts[0].outcome) == ("error", "cancelled")
    await served.vendor.requests[0].gone.wait()


async def test_a_stream_under_way_at_the_drain_s_end_looks_broken(served: Rig) -> None:
    served.vendor.answer((START, Hang()))
    async with connected(served.port) as client:
        await client.send(request("POST", "/v1/completions", ask(stream=True), AUTH))
        await client.head()
        await client.chunk()
        expire(served)
        body, whole = await client.chunks()
    assert not whole
    assert b"The gateway is shutting down." in body
    assert b"[DONE]" not in body
    (record,) = await served.finished(1)
    assert (record.outcome, record.code) == ("truncated", "overloaded")
    assert served.series("stream_aborts_total") == {"stream_aborts_total model=v/m reason=shutdown side=gateway": 1}
    await served.vendor.requests[0].gone.wait()


async def test_what_is_over_is_not_expired(served: Rig) -> None:
    rest = [Send(chunk(frame)) for frame in FRAMES[1:]]
    served.vendor.answer((START, *rest, Send(LAST_CHUNK)))
    assert (await served.post("/v1/completions", ask(stream=True))).whole
    await served.post("/v1/completions", ask())
    await served.finished(2)
    assert served.gateway.deadlines == set()


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("model", "script", "status", "called"),
    [
        ("v/m", json_answer(401, {"error": {"message": "no"}}), 502, ("v/m/default", "1")),
        ("fast", json_answer(500, {"error": {"message": "broken"}}), 502, ("v/m/default", "1")),
        ("local/some/name", json_answer(400, {"error": {"message": "no"}}), 400, ("local/some/name/default", "1")),
        ("v/short", (Hang(),), 504, ("v/short/default", "1")),
    ],
)
async def test_an_error_says_which_deployment_was_called_last_and_how_many_were(
    served: Rig, stream: bool, model: str, script: Script, status: int, called: tuple[str, str]
) -> None:
    served.vendor.default = script
    answer = await served.post("/v1/completions", ask(model, stream=stream))
    assert answer.status == status
    assert (answer.headers["x-dragoman-deployment"], answer.headers["x-dragoman-attempts"]) == called


async def test_where_none_was_called_an_error_names_none(served: Rig) -> None:
    served.vendor.default = json_answer(429, {"error": {"message": "wait"}}, [("retry-after", "40")])
    assert "x-dragoman-deployment" in (await served.post("/v1/completions", ask())).headers
    left_alone = await served.post("/v1/completions", ask())
    unknown = await served.post("/v1/completions", ask("v/other"))
    wrong = await served.post("/v1/completions", ask(max_tokens="many"))
    assert [answer.status for answer in (left_alone, unknown, wrong)] == [429, 404, 400]
    for answer in (left_alone, unknown, wrong):
        assert not {"x-dragoman-deployment", "x-dragoman-attempts"} & set(answer.headers)
