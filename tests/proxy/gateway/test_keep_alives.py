"""Keep-alives through the gateway over real sockets: silent vendors, the response after a keep-alive, and clients that
leave before it.
"""

import asyncio
from collections.abc import AsyncIterator

import orjson
import pytest
import pytest_asyncio

from proxy.listener.streamed_response import StreamedResponse
from proxy.request_record import RequestRecord
from proxy.teams.held_limits import Held
from tests.proxy.kit.gateway_rig import AUTH, Rig, rig
from tests.proxy.kit.keep_alives import (
    COMMENT,
    FRAMES,
    GOOD,
    PATHS,
    PATIENT_TABLE,
    START,
    TABLE,
    asked,
    filler_of,
    last_error,
    late,
    rest,
    said,
    silent,
    without_ids,
)
from tests.proxy.kit.raw_client import connected, request
from tests.support.http_scripts import DONE, chunk, json_answer
from tests.support.openai_wire import chat
from tests.support.vendor_script import Delay, Hang, Loop, Rst, Send, Until


@pytest_asyncio.fixture
async def served() -> AsyncIterator[Rig]:
    async with rig(TABLE) as made:
        made.vendor.default = GOOD
        yield made


# The response after a keep-alive -------------------------------------------------------------------------------------


@pytest.mark.parametrize("surface", PATHS)
async def test_a_silent_stream_is_whole_after_its_keep_alives(served: Rig, surface: str) -> None:
    path, filler = PATHS[surface], filler_of(surface)
    served.table(PATIENT_TABLE)
    quick = await served.post(path, asked(surface), {})
    served.table(TABLE)
    answer = await late(served, asked(surface), GOOD, path)
    assert said(answer) == {"x-dragoman-deployment": "v/m/default", "x-dragoman-attempts": "1"}
    assert not any(name.startswith("x-dragoman") for name in answer.headers)
    assert {"x-request-id", "content-type", "x-accel-buffering"} <= answer.headers.keys()
    events = answer.body.partition(b"\n\n")[2]
    assert without_ids(events) == without_ids(quick.body)
    assert (answer.whole, filler in quick.body) == (True, False)
    one, two = await served.finished(2)
    assert (one.keep_alives, two.status, two.outcome, two.code) == (0, 200, "ok", None)
    assert two.keep_alives >= 2


async def test_a_deployment_that_dies_in_silence_is_followed_by_another_without_a_trace(served: Rig) -> None:
    gate = asyncio.Event()
    served.vendor.answer_model("m", (Until(gate), Rst()))
    served.vendor.answer_model("second", GOOD)
    async with connected(served.port) as client:
        await client.send(request("POST", PATHS["openai"], asked("openai", "patient"), AUTH))
        headers = await silent(client, 2)
        gate.set()
        answer = await rest(client, headers)
    assert said(answer) == {"x-dragoman-deployment": "v/second/default", "x-dragoman-attempts": "2"}
    assert (answer.whole, answer.events()[-1], b"error" in answer.body) == (True, b"[DONE]", False)
    assert all(b'"m"' not in event for event in answer.events())
    (record,) = await served.finished(1)
    assert (record.status, record.outcome, [each.outcome for each in record.attempts]) == (200, "ok", ["server", "ok"])
    assert served.series("stream_aborts_total") == {}


async def test_silence_ends_an_attempt_and_not_the_request(served: Rig) -> None:
    served.vendor.answer_model("first", (START, Loop((Send(chunk(b": alive\n\n")), Delay(0.02)))))
    served.vendor.answer_model("second", GOOD)
    async with connected(served.port) as client:
        await client.send(request("POST", PATHS["openai"], asked("openai", "both"), AUTH))
        answer = await rest(client, await silent(client, 1))
    assert (answer.whole, answer.events()[-1]) == (True, b"[DONE]")
    (record,) = await served.finished(1)
    assert [each.outcome for each in record.attempts] == ["timeout", "ok"]


@pytest.mark.parametrize("surface", PATHS)
async def test_a_failure_after_keep_alives_is_an_event_and_the_status_stays_200(served: Rig, surface: str) -> None:
    refused = json_answer(400, {"error": {"message": "it is too hot"}})
    answer = await late(served, asked(surface), refused, PATHS[surface])
    error = last_error(answer)
    assert "too hot" in str(error["message"])
    # Codex and OpenAI's SDKs recognize the end of a failed response; every other stream breaks off.
    assert answer.whole is (surface == "responses")
    assert DONE not in answer.body
    assert said(answer)["x-dragoman-attempts"] == "1"
    (record,) = await served.finished(1)
    assert (record.status, record.code, record.outcome) == (200, "invalid_value", "client_error")
    assert (record.first_content, record.keep_alives >= 2) == (None, True)
    assert served.series("requests_total") == {
        f"requests_total code=200 model=v/m outcome=client_error stream=true surface={record.surface} team=t": 1.0
    }
    assert list(served.series("stream_aborts_total").values()) == [1.0]


async def test_all_deployments_may_fail_after_keep_alives(served: Rig) -> None:
    gate = asyncio.Event()
    for model in ("m", "second"):
        served.vendor.answer_model(model, (Until(gate), *json_answer(503, {"error": {"message": "no"}})))
    async with connected(served.port) as client:
        await client.send(request("POST", PATHS["openai"], asked("openai", "patient"), AUTH))
        headers = await silent(client, 2)
        gate.set()
        answer = await rest(client, headers)
    assert (last_error(answer)["code"], answer.whole) == ("overloaded", False)
    (record,) = await served.finished(1)
    assert (record.status, record.outcome) == (200, "upstream_error")
    assert [each.outcome for each in record.attempts] == ["overloaded", "overloaded"]
    assert served.series("stream_aborts_total") == {
        "stream_aborts_total model=patient reason=overloaded side=upstream": 1.0
    }


async def test_a_deadline_passes_in_spite_of_keep_alives(served: Rig) -> None:
    served.vendor.answer((Hang(),))
    async with connected(served.port) as client:
        await client.send(request("POST", PATHS["openai"], asked("openai", "v/hasty"), AUTH))
        answer = await rest(client, await silent(client, 1))
    assert (last_error(answer)["code"], answer.whole) == ("upstream_timeout", False)
    (record,) = await served.finished(1)
    assert (record.status, record.outcome, record.code) == (200, "timeout", "upstream_timeout")


async def test_comments_of_the_vendor_are_signs_of_its_life_and_no_bytes_for_the_client(served: Rig) -> None:
    # They come often enough for `idle`. None of them is content, so `progress` ends the stream.
    alive = Loop((Send(chunk(b": alive\n\n")), Delay(0.05)))
    served.vendor.answer((START, Send(chunk(FRAMES[0] + FRAMES[1])), alive))
    async with connected(served.port) as client:
        await client.send(request("POST", PATHS["openai"], asked("openai", "v/hasty"), AUTH))
        status, headers = await client.head()
        while (first := await client.chunk()) == COMMENT:
            pass
        for _ in range(5):
            assert await client.chunk() == COMMENT
        answer = await rest(client, headers)
    assert (status, b'"one"' in first, answer.whole) == (200, True, False)
    assert headers["x-dragoman-attempts"] == "1"
    (record,) = await served.finished(1)
    assert "sent no content for 1.5 s" in str(last_error(answer)["message"])
    assert (record.outcome, record.keep_alives >= 5) == ("timeout", True)


async def test_without_keep_alives_a_silent_client_gets_nothing_before_content(served: Rig) -> None:
    gate = asyncio.Event()
    served.vendor.answer((Until(gate), *GOOD))
    async with connected(served.port) as client:
        await client.send(request("POST", PATHS["openai"], asked("openai", "v/off"), AUTH))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(client.reader.read(1), 0.35)
        gate.set()
        answer = await client.answer()
    assert (answer.headers["x-dragoman-deployment"], answer.whole) == ("v/off/default", True)
    assert b"\n:" not in b"\n" + answer.body
    again = await served.post(PATHS["openai"], asked("openai", "v/off"))
    assert without_ids(again.body) == without_ids(answer.body)


async def test_the_shortest_time_holds_until_a_deployment_answers_and_then_its_own(served: Rig) -> None:
    gate, more = asyncio.Event(), asyncio.Event()
    script = (Until(gate), START, Send(chunk(FRAMES[0] + FRAMES[1])), Until(more), *GOOD[3:])
    served.vendor.answer_model("off", script)
    async with connected(served.port) as client:
        await client.send(request("POST", PATHS["openai"], asked("openai", "mixed"), AUTH))
        headers = await silent(client, 2)
        gate.set()
        while b'"one"' not in await client.chunk():
            pass
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(client.reader.read(1), 0.35)
        more.set()
        assert (await rest(client, headers)).whole


async def test_a_request_that_waits_for_a_limit_is_kept_alive_too(served: Rig) -> None:
    key = {"Authorization": "Bearer queued"}
    served.vendor.answer((Hang(),))
    async with connected(served.port) as other, connected(served.port) as client:
        await other.send(request("POST", PATHS["openai"], asked("openai", "v/off"), key))
        await served.vendor.received(1)
        await client.send(request("POST", PATHS["openai"], asked("openai"), key))
        answer = await rest(client, await silent(client, 1))
        assert (last_error(answer)["code"], answer.whole) == ("rate_limit_exceeded", False)
        assert int(said(answer)["retry-after"]) > 0
        (record,) = await served.finished(1)
        assert (record.status, record.outcome, record.attempts) == (200, "limited", [])


# Non-streaming responses ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("surface", PATHS)
async def test_white_space_comes_before_a_late_whole_response(served: Rig, surface: str) -> None:
    body, whole = asked(surface, "v/json", stream=False), json_answer(200, chat("one"))
    served.vendor.answer(whole)
    served.table(PATIENT_TABLE)
    quick = await served.post(PATHS[surface], body)
    served.table(TABLE)
    gate = asyncio.Event()
    served.vendor.answer((Until(gate), *whole))
    async with connected(served.port) as client:
        await client.send(request("POST", PATHS[surface], body, AUTH))
        headers = await silent(client, 2, b"\n")
        gate.set()
        left, ended = await client.chunks()
    assert (headers["content-type"], ended) == ("application/json", True)
    assert headers["x-accel-buffering"] == "no"  # nginx would buffer the line breaks
    assert without_ids(left.lstrip()) == without_ids(quick.body)
    assert (quick.headers["x-dragoman-attempts"], "content-length" in quick.headers) == ("1", True)
    one, two = await served.finished(2)
    assert (one.keep_alives, two.status, two.outcome, two.keep_alives >= 2) == (0, 200, "ok", True)


async def test_a_late_whole_response_counts_when_its_request_ends(served: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the tokens are missing from the limits if the ledger is read between its end and its row."""
    gate, steps = asyncio.Event(), list[str]()
    write, end = StreamedResponse.write_eof, Held.end

    async def write_eof(self: StreamedResponse, data: bytes = b"") -> None:
        await write(self, data)
        steps.append("written")

    def end_held(self: Held, record: RequestRecord) -> None:
        end(self, record)
        steps.append("counted")

    monkeypatch.setattr(StreamedResponse, "write_eof", write_eof)
    monkeypatch.setattr(Held, "end", end_held)
    served.vendor.answer((Until(gate), *json_answer(200, chat("one"))))
    body, key = asked("openai", "v/json", stream=False), {"Authorization": "Bearer queued"}
    async with connected(served.port) as client:
        await client.send(request("POST", PATHS["openai"], body, key))
        await silent(client, 1, b"\n")
        gate.set()
        assert (await client.chunks())[1]
    await served.finished(1)
    assert steps[:2] == ["written", "counted"]


async def test_an_error_after_white_space_is_the_body_under_status_200(served: Rig) -> None:
    gate = asyncio.Event()
    served.vendor.answer((Until(gate), *json_answer(400, {"error": {"message": "too hot"}})))
    async with connected(served.port) as client:
        await client.send(request("POST", PATHS["openai"], asked("openai", "v/json", stream=False), AUTH))
        await silent(client, 1, b"\n")
        gate.set()
        left, ended = await client.chunks()
        assert (ended, orjson.loads(left)["error"]["code"]) == (True, "invalid_value")
        # The connection serves the next request.
        served.vendor.answer(json_answer(200, chat("one")))
        await client.send(request("POST", PATHS["openai"], asked("openai", "v/json", stream=False), AUTH))
        assert (await client.answer()).status == 200
    (record, _) = await served.finished(2)
    assert (record.status, record.code, record.outcome) == (200, "invalid_value", "client_error")
    assert served.series("stream_aborts_total") == {}


async def test_a_whole_response_without_the_setting_is_silent_and_has_its_status(served: Rig) -> None:
    served.vendor.answer((Delay(0.35), *json_answer(400, {"error": {"message": "too hot"}})))
    answer = await served.post(PATHS["openai"], asked("openai", stream=False))
    assert (answer.status, answer.body[:1]) == (400, b"{")
