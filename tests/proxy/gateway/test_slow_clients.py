"""Clients that send slowly, read slowly or not at all: their cost for the gateway, and their records."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from proxy.listener import http_connection as server
from proxy.listener import request_body
from proxy.listener.inline_requests import COLLECT_WAIT
from tests.proxy.kit.gateway_rig import AUTH, Rig, ask, rig
from tests.proxy.kit.keep_alives import PATHS, asked
from tests.proxy.kit.keep_alives import TABLE as KEEP_ALIVES
from tests.proxy.kit.raw_client import RawClient, connected, request
from tests.support.http_scripts import json_answer, sse_unterminated
from tests.support.openai_wire import chat_frames, completion
from tests.support.vendor_script import Hang

SIZE = 2**24
"""The bytes of a response that exceeds the socket buffers of any system."""

LONG = json_answer(200, completion("x" * SIZE, "m"))


@pytest_asyncio.fixture
async def served(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Rig]:
    """Yield a gateway that checks its clients 100 times as often, before a vendor with long responses."""
    monkeypatch.setattr(server, "LOOK_EVERY", 0.01)
    monkeypatch.setattr(server, "CLIENT_STALL", 0.3)
    async with rig() as made:
        made.vendor.default = LONG
        yield made


def deaf(client: RawClient) -> None:
    client.writer.transport.pause_reading()  # type: ignore[attr-defined]  # a transport of sockets has it


async def test_a_whole_answer_that_nobody_reads_is_dropped_and_its_client_gone(served: Rig) -> None:
    async with connected(served.port) as client:
        deaf(client)
        await client.send(request("POST", "/v1/completions", ask(), AUTH))
        (record,) = await served.finished(1)
    assert (record.status, record.outcome) == (200, "client_gone")
    assert [attempt.outcome for attempt in record.attempts] == ["ok"]
    assert record.client_waited >= 0.3
    assert served.gateway.in_flight == 0


async def test_who_never_reads_gets_no_keep_alives_and_is_gone_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "LOOK_EVERY", 0.01)
    monkeypatch.setattr(server, "CLIENT_STALL", 0.6)
    async with rig(KEEP_ALIVES) as made:
        # The system's buffers hold a part of these events; then the vendor is silent.
        made.vendor.default = sse_unterminated(chat_frames(["x" * 2**16] * (SIZE // 2**16))[:-1], Hang())
        async with connected(made.port) as client:
            deaf(client)
            await client.send(request("POST", PATHS["openai"], asked("openai"), AUTH))
            (record,) = await made.finished(1)
        await asyncio.wait_for(made.vendor.requests[0].gone.wait(), 10)
    assert (record.outcome, record.first_content is None) == ("client_gone", False)
    # There would be one every 100 ms, but none is written behind unread bytes.
    assert record.keep_alives == 0
    assert made.gateway.in_flight == 0


async def test_who_leaves_within_an_answer_is_gone_and_no_fault(served: Rig, caplog: pytest.LogCaptureFixture) -> None:
    async with connected(served.port) as client:
        await client.send(request("POST", "/v1/completions", ask(), AUTH))
        await client.head()
        deaf(client)
        client.writer.transport.abort()
        (record,) = await served.finished(1)
    assert (record.status, record.outcome, record.code) == (200, "client_gone", None)
    assert caplog.text == ""


async def test_who_reads_late_gets_everything_and_the_wait_is_not_the_gateway_s(served: Rig) -> None:
    async with connected(served.port) as client:
        await client.send(request("POST", "/v1/completions", ask(), AUTH))
        await client.head()
        deaf(client)
        await asyncio.sleep(0.15)
        client.writer.transport.resume_reading()  # type: ignore[attr-defined]  # as above
        left = SIZE
        while left > 0:
            left -= len(await client.reader.read(2**20))
        (record,) = await served.finished(1)
    assert (record.status, record.outcome) == (200, "ok")
    assert record.client_waited >= 0.1
    (overhead,) = served.series("overhead_seconds_sum").values()
    assert overhead <= record.duration - record.client_waited


async def test_the_time_a_body_takes_to_come_is_not_the_gateway_s(served: Rig) -> None:
    data = request("POST", "/v1/completions", ask(), AUTH)
    async with connected(served.port) as client:
        await client.send(data[:-5])
        await asyncio.sleep(0.1 + COLLECT_WAIT)
        await client.send(data[-5:])
        assert (await client.answer()).status == 200
    (record,) = await served.finished(1)
    assert record.client_waited >= 0.09


@pytest.mark.parametrize(
    ("framing", "status", "code"),
    [
        ("Content-Length: 100001", 413, "request_too_large"),
        ("Content-Length: 5", 408, "bad_request"),
        ("Transfer-Encoding: chunked", 408, "bad_request"),
        ("Content-Length: 5\r\nContent-Encoding: gzip", 415, "bad_request"),
        ("Content-Length: 5\r\nContent-Type: text/plain", 415, "unsupported_media_type"),
    ],
)
async def test_who_is_refused_before_the_body_is_told_that_the_connection_closes(
    served: Rig, framing: str, status: int, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_body, "BODY_WAIT", 0.05)
    key = f"Authorization: {AUTH['Authorization']}"
    head = f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n{key}\r\n{framing}\r\n\r\n"
    async with connected(served.port) as client:
        await client.send(head.encode())
        answer = await client.answer()
    assert (answer.status, answer.code, answer.headers["connection"]) == (status, code, "close")
    (record,) = await served.finished(1)
    assert (record.status, record.outcome) == (status, "client_error")


async def test_two_thousand_requests_at_once_on_one_connection_are_answered_in_order(served: Rig) -> None:
    served.vendor.default = json_answer(200, completion("hello", "m"))
    ids = [f"id-{number}" for number in range(2000)]
    held: list[int] = []
    async with connected(served.port) as client:

        async def send() -> None:
            for each in ids:
                await client.send(request("GET", "/v1/models", None, {**AUTH, "X-Request-Id": each}))

        sending = asyncio.create_task(send())
        for each in ids:
            answer = await client.answer()
            assert (answer.status, answer.headers["x-request-id"]) == (200, each)
            held.append(served.gateway.in_flight)
        await sending
    assert max(held) <= 1
    assert len(await served.finished(2000)) == 2000
