"""The cost of requests through the gateway, over real sockets: in the record and in the metrics."""

import orjson
import pytest

from providers.json_types import JsonObject
from proxy.ledger.ledger_row import row_line
from proxy.telemetry.access_log import request_line
from tests.proxy.kit.gateway_rig import CLIENT_KEY, Rig, gateway_fixture
from tests.proxy.kit.limited_vendors import AT
from tests.proxy.kit.tables import digest_of
from tests.support.http_scripts import json_answer, sse_answer
from tests.support.openai_wire import chat, chat_frames

TABLE = f"""
vendors:
  v: {{profile: openai, {AT}, price: {{input: 1000, output: 3000, cached_input: 500}}}}
  single: {{profile: groq, {AT}}}
  claude: {{profile: anthropic, {AT}, price: {{input: 3, output: 15, cache_write: 3.75}}}}
models:
  v/m: {{}}
  v/own: {{price: {{input: 0, output: 0}}}}
  v/two: {{deployments: {{dear: {{price: {{input: 8000, output: 9000}}}}, plain: {{}}}}}}
  single/m: {{price: {{input: 1000, output: 3000}}}}
  single/unknown: {{}}
  claude/m: {{max_output_tokens: 99}}
teams:
  search: {{keys: ["{digest_of(CLIENT_KEY)}"], models: ["*"]}}
"""


served = gateway_fixture(TABLE)


def asking(model: str, **fields: object) -> JsonObject:
    return {"model": model, "messages": [{"role": "user", "content": "hi"}], **fields}  # type: ignore[dict-item]  # JSON


async def cost_of(served: Rig, model: str, **fields: object) -> float | None:
    before = len(served.records)
    await served.post("/v1/chat/completions", asking(model, **fields))
    return (await served.finished(before + 1))[before].cost


async def test_an_answer_costs_its_deployments_price_and_a_stream_the_same(served: Rig) -> None:
    served.vendor.default = json_answer(200, chat("hello"))
    assert await cost_of(served, "v/m") == pytest.approx(0.012)
    assert await cost_of(served, "v/two/dear") == pytest.approx(0.066)
    assert await cost_of(served, "v/two/plain") == pytest.approx(0.012)
    assert await cost_of(served, "v/own") == 0
    assert served.series("cost_usd") == {
        "cost_usd_total model=v/m team=search": pytest.approx(0.012),
        "cost_usd_total model=v/two team=search": pytest.approx(0.078),
        "cost_usd_total model=v/own team=search": 0,
    }
    served.vendor.default = sse_answer(chat_frames(["hel", "lo"]))
    assert await cost_of(served, "v/m", stream=True) == pytest.approx(0.012)


async def test_what_came_from_the_cache_costs_less(served: Rig) -> None:
    usage: JsonObject = {
        "prompt_tokens": 6,
        "completion_tokens": 2,
        "total_tokens": 8,
        "prompt_tokens_details": {"cached_tokens": 4},
    }
    served.vendor.default = json_answer(200, {**chat("hello"), "usage": usage})
    assert await cost_of(served, "v/m") == pytest.approx(0.010)


@pytest.mark.parametrize("stream", [False, True])
async def test_every_call_that_a_request_needs_is_billed(served: Rig, stream: bool) -> None:
    served.vendor.default = sse_answer(chat_frames(["hello"])) if stream else json_answer(200, chat("hello"))
    assert await cost_of(served, "single/m", n=3, stream=stream) == pytest.approx(0.036)


async def test_a_price_that_nobody_wrote_is_not_zero_and_a_request_that_failed_costs_nothing(served: Rig) -> None:
    served.vendor.default = json_answer(200, chat("hello"))
    assert await cost_of(served, "single/unknown") is None
    assert served.series("cost_usd") == {}
    served.vendor.default = json_answer(500, {"error": {"message": "no"}})
    assert await cost_of(served, "v/m") is None
    assert served.series("cost_usd") == {}


async def test_a_negative_count_is_left_out_wherever_usage_is_told(served: Rig) -> None:
    usage: JsonObject = {"input_tokens": 4000, "output_tokens": 20, "cache_creation_input_tokens": -1_000_000}
    message: JsonObject = {"type": "message", "role": "assistant", "content": [], "stop_reason": "end_turn"}
    served.vendor.default = json_answer(200, {**message, "usage": usage})
    answer = await served.post("/v1/chat/completions", asking("claude/m"))
    told = orjson.loads(answer.body)["usage"]
    assert (told["prompt_tokens"], told["completion_tokens"], told["total_tokens"]) == (4000, 20, 4020)
    assert "-" not in str(told)
    (record,) = await served.finished(1)
    line = orjson.loads(request_line(record, record.cost))
    assert (line["prompt_tokens"], line["completion_tokens"], line["cost_usd"]) == (4000, 20, 0.0123)
    assert orjson.loads(row_line(record, 1, 1))[13:19] == [4000, None, 20, None, 0, 12_300_000]
    assert served.series("cost_usd") == {"cost_usd_total model=claude/m team=search": 0.0123}
    assert served.series("tokens_total") == {
        "tokens_total direction=input model=claude/m team=search": 4000,
        "tokens_total direction=output model=claude/m team=search": 20,
    }


async def test_the_sum_of_costs_is_shown_in_billionths_of_a_usd(served: Rig) -> None:
    served.vendor.default = json_answer(200, chat("hello"))
    for number in range(1, 8):
        await cost_of(served, "v/m")
        (shown,) = served.series("cost_usd").values()
        assert str(shown) == str(number * 12 / 1000)
