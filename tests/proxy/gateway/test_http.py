"""HTTP as real clients use it: upgrades, pipelining, half-sent requests, and the headers of responses."""

import asyncio
from dataclasses import replace

import pytest

from providers.emulation.plan_calls import CallPlan
from providers.target import Target
from providers.unified_request import UnifiedRequest
from proxy.dispatch import next_deployment as candidates
from proxy.gateway import client_exchange
from proxy.gateway import handle_request as gateway_module
from proxy.listener import request_body
from proxy.routing.snapshot import Team
from tests.proxy.kit.gateway_rig import AUTH, Rig, ask
from tests.proxy.kit.raw_client import connected, exchange, request
from tests.support.http_scripts import json_answer, sse_answer
from tests.support.openai_wire import completion, completion_frames

OK = json_answer(200, completion("hello", "m"))


UPGRADES = {
    "h2c": {"Connection": "Upgrade, HTTP2-Settings", "Upgrade": "h2c", "HTTP2-Settings": "AAMAAABkAAQAAP__"},
    "websocket": {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Key": "x"},
}


@pytest.mark.parametrize("headers", UPGRADES.values(), ids=UPGRADES.keys())
@pytest.mark.parametrize("stream", [False, True])
async def test_an_offer_to_upgrade_is_ignored(served: Rig, headers: dict[str, str], stream: bool) -> None:
    if stream:
        served.vendor.answer(sse_answer(completion_frames(["x"])))
    async with connected(served.port) as client:
        await client.send(request("POST", "/v1/completions", ask(stream=stream), {**AUTH, **headers}))
        answer = await client.answer()
        assert (answer.status, answer.whole) == (200, True)
        assert await client.closed() == b""


async def test_requests_sent_at_once_are_answered_in_order(served: Rig) -> None:
    async with connected(served.port) as client:
        ids = [f"id-{number}" for number in range(5)]
        await client.send(b"".join(request("GET", "/v1/models", None, {**AUTH, "X-Request-Id": each}) for each in ids))
        assert [(await client.answer()).headers["x-request-id"] for _ in ids] == ids


async def test_a_client_that_wants_the_connection_closed_has_it_closed(served: Rig) -> None:
    async with connected(served.port) as client:
        await client.send(request("POST", "/v1/completions", ask(), {**AUTH, "Connection": "close"}))
        assert (await client.answer()).headers["connection"] == "close"
        assert await client.closed() == b""


async def test_who_leaves_in_the_midst_of_a_request_is_no_fault(served: Rig, caplog: pytest.LogCaptureFixture) -> None:
    async with connected(served.port) as client:
        await client.send(request("POST", "/v1/completions", ask(), AUTH)[:-10])
        while not served.gateway.in_flight:  # noqa: ASYNC110 - no event
            await asyncio.sleep(0.005)
        await client.leave()
    (record,) = await served.finished(1)
    assert (record.status, record.outcome, record.attempts) == (499, "client_gone", [])
    assert caplog.text == ""


async def test_a_body_that_does_not_come_is_answered(served: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_body, "BODY_WAIT", 0.05)
    answer = await exchange(served.port, request("POST", "/v1/completions", ask(), AUTH)[:-10])
    assert (answer.status, answer.code) == (408, "bad_request")


async def test_many_clients_at_once_each_get_their_own(served: Rig) -> None:
    async def one(number: int) -> None:
        answer = await served.post("/v1/completions", ask(), {"X-Request-Id": f"id-{number}"})
        assert (answer.status, answer.headers["x-request-id"]) == (200, f"id-{number}")

    async with asyncio.TaskGroup() as group:
        for number in range(100):
            group.create_task(one(number))
    assert len(served.vendor.requests) == 100
    assert {record.outcome for record in await served.finished(100)} == {"ok"}


@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_names_the_fields_that_were_emulated_or_dropped(
    served: Rig, stream: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = candidates.prepared_for

    def prepared(asked: UnifiedRequest, target: Target, team: Team, session: str | None) -> CallPlan:
        return replace(made(asked, target, team, session), emulated=("n", "echo"), dropped=("seed",))

    monkeypatch.setattr(candidates, "prepared_for", prepared)
    if stream:
        served.vendor.answer(sse_answer(completion_frames(["x"])))
    answer = await served.post("/v1/completions", ask(stream=stream))
    assert answer.headers["x-dragoman-emulated"] == "n, echo"
    assert answer.headers["x-dragoman-dropped"] == "seed"
    (record,) = await served.finished(1)
    assert (record.emulated, record.dropped) == (("n", "echo"), ("seed",))


async def test_faults_of_ours_that_come_in_rows_are_not_all_told_with_where_they_lie(
    served: Rig, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*args: object) -> None:
        raise LookupError

    monkeypatch.setattr(client_exchange, "plan_for", fail)
    monkeypatch.setattr(gateway_module, "TRACEBACK_EVERY", 3600.0)
    answers = [await served.post("/v1/completions", ask()) for _ in range(3)]
    assert [answer.code for answer in answers] == ["internal_error"] * 3
    assert [record.code for record in await served.finished(3)] == ["internal_error"] * 3
    assert len([each for each in caplog.records if each.exc_info]) == 1
