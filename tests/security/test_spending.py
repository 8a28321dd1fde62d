"""Token limits against clients that cause more tokens to be sent or generated than are counted."""

import asyncio
from typing import cast

import pytest

from providers.json_types import JsonObject, JsonValue
from tests.proxy.gateway.test_team_limits import NOON, chatting, limited, table, views
from tests.proxy.kit.gateway_rig import AUTH, Rig, rig
from tests.proxy.kit.raw_client import connected, request
from tests.support.http_scripts import json_answer, sse_answer, sse_unterminated
from tests.support.openai_wire import USAGE, chat, chat_frames
from tests.support.vendor_script import Delay, Fin, Hang, Rst, Script

pytestmark = pytest.mark.smoke

TEAM = "limits: {tokens_per_day: 5000}"
TOTAL = cast(int, USAGE["total_tokens"])
LONG: JsonObject = {"messages": [{"role": "user", "content": "x" * 3000}]}


def counted(served: Rig) -> tuple[int, int]:
    """Return the tokens that the limit has counted, and the tokens in the metrics."""
    return views(served)["team t: tokens day"], int(sum(served.series("tokens_total").values()))


@pytest.mark.parametrize(
    "members", [{"max_tokens": 4000}, {"max_completion_tokens": "4000"}, {"n_predict": 4000}, {"best_of": 16}]
)
async def test_threat_19_members_that_vendors_read_are_reserved(members: JsonObject) -> None:
    body = chatting(max_tokens=300, inference_extra_params=members)
    async with limited(TEAM) as served:
        served.vendor.default = (Delay(0.3), *json_answer(200, chat("x")))
        answers = await asyncio.gather(*[served.post("/v1/chat/completions", body) for _ in range(20)])
    assert sorted(answer.status for answer in answers) == [200] + [429] * 19


SCHEMA: JsonObject = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
REFUSED: list[tuple[str, JsonObject]] = [
    ("/v1/chat/completions", chatting(response_format={"type": "json_object"})),
    ("/v1/chat/completions", chatting(guided_choice=["a", "b"])),
    ("/v1/responses", {"model": "v/m", "input": "hi", "text": {"format": {"type": "json_object"}}}),
    ("/v1/chat/completions", chatting(n=2)),
    (
        "/v1/messages",
        {**chatting(max_tokens=9), "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}},
    ),
]


@pytest.mark.parametrize(("path", "body"), REFUSED)
async def test_threat_19_what_was_reported_counts_if_the_answer_is_refused(path: str, body: JsonObject) -> None:
    async with limited(TEAM) as served:
        served.vendor.default = json_answer(200, chat("neither"))
        answer = await served.post(path, body)
        (record,) = await served.finished(1)
        assert answer.status == 502, answer.body
        assert counted(served) == (len(served.vendor.requests) * TOTAL,) * 2
        assert record.billed is not None
        assert not record.billed.estimated


@pytest.mark.parametrize("stream", [False, True])
async def test_threat_19_the_prompt_of_a_client_that_leaves_counts(stream: bool) -> None:
    async with limited(TEAM) as served:
        served.vendor.default = (Hang(),)
        async with connected(served.port) as client:
            body = chatting(stream=stream) | LONG
            await client.send(request("POST", "/v1/chat/completions", body, AUTH))
            await served.vendor.received(1)
            await client.leave()
        (record,) = await served.finished(1)
        assert record.outcome == "client_gone"
        assert record.billed is not None
        assert record.billed.estimated
        assert record.billed.prompt_tokens >= 750
        assert counted(served) == (record.billed.prompt_tokens,) * 2


@pytest.mark.parametrize("stream", [False, True])
async def test_threat_19_the_prompt_counts_if_the_deadline_passes(stream: bool) -> None:
    async with limited(TEAM) as served:
        served.vendor.default = (Hang(),)
        body = chatting(stream=stream, inference_timeout=0.2) | LONG
        answer = await served.post("/v1/chat/completions", body)
        (record,) = await served.finished(1)
        assert answer.status == 504
        assert record.billed is not None
        assert record.billed.prompt_tokens >= 750
        assert counted(served) == (record.billed.prompt_tokens,) * 2


async def test_threat_19_a_refused_call_costs_nothing() -> None:
    async with limited(TEAM) as served:
        served.vendor.default = json_answer(400, {"error": {"message": "no"}})
        answer = await served.post("/v1/chat/completions", chatting())
        await served.finished(1)
        assert (answer.status, counted(served)) == (400, (0, 0))


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("script", [(Hang(),), (Fin(),), (Rst(),)], ids=["late", "closed", "reset"])
async def test_threat_19_a_call_that_broke_before_another_answered_counts_at_its_price(
    script: Script, stream: bool
) -> None:
    text = table(TEAM, model=", timeouts: {answer: 500ms, first_event: 500ms}")
    text = text.replace("fast: {targets: [v/m]}", "fast: {targets: [v/m, v/cheap], policy: priority}")
    good = sse_answer(chat_frames(["x"])) if stream else json_answer(200, chat("x"))
    async with rig(text, wall=lambda: NOON) as served:
        served.vendor.default = lambda received: script if received.model == "m" else good
        answer = await served.post("/v1/chat/completions", chatting("fast", stream=stream) | LONG)
        (record,) = await served.finished(1)
        assert (answer.status, len(record.attempts)) == (200, 2), answer.body
        assert record.billed is not None
        assert record.billed.estimated
        lost = record.billed.prompt_tokens - 6
        assert lost >= 750
        assert record.cost == pytest.approx((lost * 1 + 6 * 0.1 + 2 * 0.2) / 1e6)
        assert counted(served) == (lost + TOTAL,) * 2


async def test_threat_19_what_candidates_reported_counts_if_one_of_them_breaks() -> None:
    frames = chat_frames(["one", "two"])
    scripts = iter([sse_answer(frames), sse_unterminated(frames[:2], Rst())])
    async with rig(table(TEAM).replace("openai_compatible", "groq"), wall=lambda: NOON) as served:
        served.vendor.default = lambda received: next(scripts)
        await served.post("/v1/chat/completions", chatting(n=2, stream=True) | LONG)
        (record,) = await served.finished(1)
        assert record.billed is not None
        assert record.billed.prompt_tokens >= 6 + 750
        assert counted(served) == (record.billed.total_tokens,) * 2


async def test_threat_19_calls_of_a_task_that_were_answered_count_if_another_fails() -> None:
    vectors: list[JsonValue] = [{"index": number, "embedding": [0.5]} for number in range(100)]
    good = json_answer(200, {"data": vectors, "usage": {"prompt_tokens": 7, "total_tokens": 7}})
    bad = (Delay(0.3), *json_answer(400, {"error": {"message": "no"}}))
    async with rig(table(TEAM).replace("openai_compatible", "cloudflare"), wall=lambda: NOON) as served:
        served.vendor.default = lambda received: good if b"a" in received.body.split(b"input")[1][:9] else bad
        inputs: list[JsonValue] = [*["a"] * 100, *["z"] * 4]
        body: JsonObject = {"model": "v/m", "input": inputs}
        answer = await served.post("/v1/embeddings", body)
        await served.finished(1)
        assert (answer.status, len(served.vendor.requests)) == (400, 2), answer.body
        assert counted(served) == (7, 7)
