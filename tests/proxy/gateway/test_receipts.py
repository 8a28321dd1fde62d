"""The receipt over real sockets: on every surface, streamed or not, also of failures, and within the client's own
measured time. The lower bound of each part and the upper bound of the total hold however slow the machine is.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping

import pytest

from providers.json_types import JsonObject
from proxy.listener import inline_requests
from proxy.receipt.server_timing import NAMELESS
from tests.proxy.kit.gateway_rig import AUTH, TABLE, Rig, ask, rig
from tests.proxy.kit.raw_client import Answer, exchange, request
from tests.proxy.receipt.kit import timings, told
from tests.support.http_scripts import json_answer, sse_answer, sse_unterminated
from tests.support.openai_wire import chat, chat_frames, completion, completion_frames
from tests.support.vendor_script import Delay, Fin, Received, Script

SLOW = 0.05
"""The least seconds before a response of the vendor, as the script says."""

ROUTED = TABLE.replace("retries: {attempts: 1}", "retries: {attempts: 3}")

MESSAGES: JsonObject = {"messages": [{"role": "user", "content": "hi"}]}
SURFACES: Mapping[str, JsonObject] = {
    "/v1/completions": {"prompt": "hi"},
    "/v1/chat/completions": {**MESSAGES},
    "/v4/beta/completions": {"prompt": "hi"},
    "/v5/chat/completions": {**MESSAGES},
    "/inference/v1/chat/completions": {**MESSAGES},
    "/api/v1/compatibility/openai/v1/completions": {"prompt": "hi"},
    "/v1/messages": {**MESSAGES, "max_tokens": 9},
    "/v1/responses": {"input": "hi", "store": False},
}


def slowly(received: Received) -> Script:
    """Respond after SLOW seconds, streamed if the request asks for a stream."""
    body = received.json()
    assert isinstance(body, dict)
    texts, chats = ["one", "two"], "messages" in body
    if body.get("stream"):
        return (Delay(SLOW), *sse_answer((chat_frames if chats else completion_frames)(texts)))
    return (Delay(SLOW), *json_answer(200, chat("hi") if chats else completion("hi")))


@pytest.fixture
async def served() -> AsyncIterator[Rig]:
    async with rig(ROUTED) as made:
        made.vendor.default = slowly
        made.gateway.use_receipts(on=True)
        yield made


async def timed(served: Rig, path: str, body: JsonObject, headers: Mapping[str, str] | None = None) -> Answer:
    """Return the response after a check that its parts are within the time that the client measured."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    answer = await exchange(served.port, request("POST", path, body, {**AUTH, **(headers or {})}))
    took = 1000 * (loop.time() - began)
    assert 0 < sum(each.milliseconds for each in timings(answer.headers["server-timing"])) <= took + 0.02
    return answer


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("path", SURFACES)
async def test_each_surface_has_it(served: Rig, path: str, stream: bool) -> None:
    body: JsonObject = {**SURFACES[path], "model": "v/m", "stream": stream}
    answer = await timed(served, path, body, {"x-dragoman-receipt": "last"})
    assert (answer.status, answer.whole) == (200, True)
    parts = told(answer.headers["server-timing"])
    assert parts.keys() == {"gateway", "connect", "vendor"}
    assert parts["vendor"] + parts["connect"] >= 1000 * SLOW - 1
    again = await timed(served, path, body)
    assert told(again.headers["server-timing"]).keys() == {"gateway", "vendor"}
    if stream:
        *_, last = answer.body.removesuffix(b"\n\n").split(b"\n\n")
        lines = [line.removeprefix(b": ").decode() for line in last.split(b"\n")]
        assert [line.partition(": ")[0] for line in lines] == ["server-timing", "x-dragoman-receipt"]
        closing = told(lines[0].partition(": ")[2])
        assert closing.items() >= {name: parts[name] for name in ("connect", "vendor")}.items()
        found = dict(each.split("=") for each in lines[1].partition(": ")[2].split(", "))
        assert sum(closing.values()) == pytest.approx(float(found["total"]), abs=0.05)
        assert float(found["first_content"]) == pytest.approx(sum(parts.values()), abs=0.05)
        assert b": server-timing" not in again.body
    else:
        assert answer.body.endswith(b"}")


async def test_without_the_setting_there_is_none(served: Rig) -> None:
    served.gateway.use_receipts(on=False)
    for stream in (False, True):
        answer = await served.post("/v1/completions", ask(stream=stream), {"x-dragoman-receipt": "last"})
        assert "server-timing" not in answer.headers
        assert b": " not in answer.body.replace(b"data: ", b"")


async def test_errors_have_it_and_a_word_that_means_nothing_is_one(served: Rig) -> None:
    unknown = await timed(served, "/v1/completions", ask("no/such"))
    refused = await timed(served, "/v1/completions", ask(stream=True), {"x-dragoman-receipt": "first"})
    stranger = await timed(served, "/v1/completions", ask(), {"Authorization": "Bearer wrong"})
    for answer in (unknown, refused, stranger):
        assert told(answer.headers["server-timing"]).keys() == {"gateway"}
    assert (refused.status, refused.message) == (400, "'x-dragoman-receipt' must be last.")
    assert served.vendor.requests == []


async def test_a_failover_names_the_deployment_only_to_a_team_that_may_ask_for_it(served: Rig) -> None:
    """Team `search` may use `v/two/eu` and the route `fast`. The other deployments behind the route are the operator's
    secret.
    """
    failing = json_answer(500, {"error": {"message": "canary"}})

    async def failures(model: str) -> list[str]:
        served.vendor.answer(lambda received: failing)
        answer = await timed(served, "/v1/completions", ask(model))
        assert answer.status == 200
        assert "backoff" not in told(answer.headers["server-timing"]) or answer.headers["x-dragoman-attempts"] == "2"
        return [each.text for each in timings(answer.headers["server-timing"]) if each.name == "attempt1"]

    assert await failures("fast") == ["v/m/default server"]
    served.table(ROUTED.replace("targets: [v/m, v/two]", "targets: [v/two/us, v/two/eu]"))
    assert await failures("fast") == ["server"]


async def test_a_wait_for_the_response_cache_is_a_part(served: Rig) -> None:
    served.table(ROUTED.replace("v/m: {}", "v/m: {cache: {ttl: 60s}}"))
    body = ask(temperature=0)
    first, second = await asyncio.gather(*(timed(served, "/v1/completions", body) for _ in range(2)))
    third = await timed(served, "/v1/completions", body)
    found = sorted((each.headers["x-dragoman-cache"], each.headers["server-timing"]) for each in (first, second))
    assert [cache for cache, _ in found] == ["hit", "miss"]
    (waited,) = [each for each in timings(found[0][1]) if each.name == "cache"]
    assert waited.text == "hit"
    assert waited.milliseconds > 0
    assert timings(third.headers["server-timing"])[1:] == [("cache", 0.0, "hit")]


async def test_a_body_that_comes_late_is_the_clients_time(served: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inline_requests, "MAX_COLLECTED", 1024)
    whole = request("POST", "/v1/completions", {"model": "v/m", "prompt": "x" * 90_000}, AUTH)
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
    writer.write(whole[:-5])
    await asyncio.sleep(SLOW)
    writer.write(whole[-5:])
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    writer.close()
    (line,) = [line for line in head.split("\r\n") if line.lower().startswith("server-timing: ")]
    assert told(line.partition(": ")[2])["client"] >= 1000 * SLOW - 25


async def test_a_record_does_not_keep_the_table(served: Rig) -> None:
    await timed(served, "/v1/completions", ask())
    (record,) = await served.finished(1)
    assert record.receipt is NAMELESS


async def test_after_a_keep_alive_it_is_in_the_comment_before_the_first_event(served: Rig) -> None:
    served.table(ROUTED.replace("v/m: {}", "v/m: {timeouts: {keep_alive: 100ms}}"))
    served.vendor.answer(lambda received: (Delay(0.25), *sse_answer(completion_frames(["one", "two"]))))
    answer = await exchange(served.port, request("POST", "/v1/completions", ask(stream=True), AUTH))
    assert "server-timing" not in answer.headers
    comments = [line for line in answer.body.decode().split("\n") if line.startswith(": ")]
    assert comments[0] == ": keep-alive"
    (line,) = [line for line in comments if line.startswith(": Server-Timing: ")]
    parts = told(line.removeprefix(": Server-Timing: "))
    assert parts["vendor"] + parts["connect"] >= 249


async def test_a_stream_that_ends_in_an_error_has_it_too(served: Rig) -> None:
    """The head has been sent with a keep-alive: the receipt comes before the error, and after it on request."""
    served.table(TABLE.replace("v/m: {}", "v/m: {timeouts: {keep_alive: 100ms}}"))
    late = (Delay(0.25), *json_answer(500, {"error": {"message": "canary"}}))
    broken = sse_unterminated(completion_frames(["one", "two"])[:1], Fin())
    for script, there in ((late, ["Server-Timing", "server-timing"]), (broken, ["server-timing"])):
        served.vendor.answer(lambda received, script=script: script)  # type: ignore[misc]
        asked = request("POST", "/v1/completions", ask(stream=True), {**AUTH, "x-dragoman-receipt": "last"})
        answer = await exchange(served.port, asked)
        assert (answer.whole, answer.body.count(b'data: {"error"')) == (False, 1)
        lines = [line.removeprefix(": ") for line in answer.body.decode().split("\n") if line.startswith(": ")]
        timed_lines = [line.partition(": ") for line in lines if line.lower().startswith("server-timing: ")]
        assert [name for name, _, _ in timed_lines] == there
        assert told(timed_lines[-1][2])["gateway"] > 0
        assert lines[-1].startswith("x-dragoman-receipt: total=")
