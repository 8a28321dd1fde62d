"""Clients that leave during the silence, a shutdown, faults, and the objects left of a stream with keep-alives."""

import asyncio
import gc
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from proxy.deadlines import Deadlines
from proxy.dispatch.single_attempt import Dispatcher
from proxy.relay.client_stream import ClientStream
from tests.proxy.kit.eager_tasks import uncollected
from tests.proxy.kit.gateway_rig import AUTH, Rig, rig
from tests.proxy.kit.keep_alives import (
    COMMENT,
    FRAMES,
    GOOD,
    PATHS,
    TABLE,
    asked,
    last_error,
    late,
    rest,
    silent,
)
from tests.proxy.kit.raw_client import connected, request
from tests.support.http_scripts import json_answer, sse_unterminated
from tests.support.openai_wire import chat
from tests.support.vendor_script import Delay, Hang, Rst


@pytest_asyncio.fixture
async def served() -> AsyncIterator[Rig]:
    async with rig(TABLE) as made:
        made.vendor.default = GOOD
        yield made


@pytest.mark.parametrize("model", ["v/m", "v/json"])
async def test_a_client_that_leaves_in_silence_ends_the_call(served: Rig, model: str) -> None:
    served.vendor.answer((Hang(),))
    stream = model == "v/m"
    async with connected(served.port) as client:
        await client.send(request("POST", PATHS["openai"], asked("openai", model, stream=stream), AUTH))
        await silent(client, 1, COMMENT if stream else b"\n")
        await client.leave()
        (record,) = await served.finished(1)
    await served.vendor.requests[0].gone.wait()
    assert (record.status, record.outcome, record.attempts[0].outcome) == (200, "client_gone", "cancelled")
    assert list(served.series("stream_aborts_total")) == (
        [f"stream_aborts_total model={model} reason=disconnect side=client"] if stream else []
    )


async def test_a_client_that_half_closes_and_leaves_is_seen_in_silence(served: Rig) -> None:
    served.vendor.answer((Hang(),))
    async with connected(served.port) as client:
        await client.send(request("POST", PATHS["openai"], asked("openai"), AUTH))
        await silent(client, 1)
        client.writer.write_eof()
        client.writer.transport.abort()
        (record,) = await served.finished(1)
    assert record.outcome == "client_gone"


async def test_the_gateway_ends_while_a_stream_is_silent(served: Rig) -> None:
    served.vendor.answer((Hang(),))
    async with connected(served.port) as client:
        await client.send(request("POST", PATHS["openai"], asked("openai"), AUTH))
        headers = await silent(client, 1)
        served.gateway.end_calls()
        answer = await rest(client, headers)
    assert (last_error(answer)["code"], answer.whole) == ("overloaded", False)
    (record,) = await served.finished(1)
    assert (record.status, record.outcome) == (200, "error")


@pytest.mark.parametrize("surface", ["openai", "responses"])
async def test_a_fault_of_ours_after_keep_alives_is_an_error_and_no_second_response(
    served: Rig, surface: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = asyncio.Event()

    async def broken(*_: object) -> None:
        await gate.wait()
        raise ZeroDivisionError

    monkeypatch.setattr(Dispatcher, "streamed", broken)
    async with connected(served.port) as client:
        await client.send(request("POST", PATHS[surface], asked(surface), AUTH))
        headers = await silent(client, 1)
        gate.set()
        answer = await rest(client, headers)
        assert await client.closed() == b""
    assert last_error(answer)["message"]
    (record,) = await served.finished(1)
    assert (record.outcome, record.code) == ("error", "internal_error")


async def test_a_fault_in_what_the_head_would_have_said_is_no_second_response(
    served: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    def odd(*_: object) -> str:
        raise ValueError

    monkeypatch.setattr("proxy.gateway.answer_request.answer_lines", odd)
    answer = await late(served, asked("openai"), GOOD, times=1)
    assert (last_error(answer)["code"], answer.whole) == ("internal_error", False)
    monkeypatch.setattr("proxy.gateway.answer_request.refusal_headers", odd)
    refused = await late(served, asked("openai"), json_answer(400, {}), times=1)
    assert (refused.body, refused.whole) == (b"", False)


def waiting() -> int:
    """Return the number of objects that a timer may call: responses to clients, and deadlines of requests."""
    return sum(isinstance(each, ClientStream | Deadlines) for each in gc.get_objects())


@pytest.fixture
def counts_alone() -> Iterator[None]:
    """Disable the garbage collector, so that reference cycles are not freed."""
    with uncollected():
        yield


@pytest.mark.parametrize("model", ["v/m", "v/off", "v/json"])
async def test_what_waited_with_a_client_is_freed_without_the_collector(
    served: Rig, model: str, counts_alone: None
) -> None:
    # The log record of an earlier test's internal fault may hold one.
    before = waiting()
    body = asked("openai", model, stream=model != "v/json")
    vendors = (GOOD, json_answer(500, {}), (Delay(0.25), *GOOD), (Delay(0.25), *json_answer(400, {})))
    served.vendor.answer(*vendors, json_answer(200, chat("one")), sse_unterminated(FRAMES[:2], Rst()))
    for _ in range(6):
        await served.post(PATHS["openai"], body)
    await served.finished(6)
    await asyncio.sleep(0)
    assert waiting() == before
