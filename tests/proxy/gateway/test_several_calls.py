"""Requests that need several calls, through the gateway over real sockets: the client's response, and the vendor's
calls.

The numbers of the worked examples are taken from the page of the four APIs.
"""

import asyncio
from collections.abc import Sequence

import orjson
import pytest

from providers.completion import Usage
from providers.json_types import JsonObject, JsonValue
from tests.proxy.kit.gateway_rig import AUTH, Rig, gateway_fixture
from tests.proxy.kit.limited_vendors import (
    FIRST,
    START,
    TABLE,
    WINDOW,
    asking,
    choices_of,
    each,
    frames_of,
    gone,
    prompt_of,
    texts_of,
)
from tests.proxy.kit.raw_client import Answer, connected, request
from tests.support.http_scripts import DONE, chunk, data_frames, json_answer, sse_answer
from tests.support.openai_wire import chat, chat_frames, completion_frames
from tests.support.vendor_script import Delay, Hang, Loop, Received, Rst, Script, Send, Until

served = gateway_fixture(TABLE)


# Responses -----------------------------------------------------------------------------------------------------------


async def test_three_candidates_of_a_vendor_that_gives_one(served: Rig) -> None:
    served.vendor.default = json_answer(200, chat("hello"))
    body: JsonObject = {"model": "chats/m", "messages": [{"role": "user", "content": "hi"}], "n": 3}
    answer = await served.post("/v1/chat/completions", body)
    choices = answer.json()["choices"]
    assert isinstance(choices, list)
    assert [choice["index"] for choice in choices if isinstance(choice, dict)] == [0, 1, 2]
    assert len(served.vendor.requests) == 3
    assert answer.headers["x-dragoman-emulated"] == "n"
    assert answer.headers["x-dragoman-attempts"] == "1"
    assert answer.json()["usage"] == {"prompt_tokens": 6, "completion_tokens": 6, "total_tokens": 12}
    (record,) = await served.finished(1)
    assert (record.outcome, len(record.attempts), record.billed) == ("ok", 1, Usage(18, 6))
    tokens = served.series("tokens_total")
    assert sorted(tokens.values()) == [6, 18]


async def test_three_candidates_in_one_stream(served: Rig) -> None:
    served.vendor.default = sse_answer(chat_frames(["hel", "lo"]))
    body: JsonObject = {"model": "chats/m", "messages": [{"role": "user", "content": "hi"}], "n": 3, "stream": True}
    answer = await served.post("/v1/chat/completions", body)
    assert texts_of(frames_of(answer)) == {0: "hello", 1: "hello", 2: "hello"}
    assert answer.headers["x-dragoman-emulated"] == "n"
    assert answer.body.count(b'"finish_reason":"stop"') == 3
    (record,) = await served.finished(1)
    assert (record.outcome, record.usage, record.billed) == ("ok", Usage(6, 6), Usage(18, 6))
    await served.vendor.connected(3)


@pytest.mark.parametrize("path", ["/inference/v1/completions", "/v4/beta/completions", "/v5/completions"])
async def test_where_usage_goes_with_the_last_end_it_does_so_once(served: Rig, path: str) -> None:
    served.vendor.default = sse_answer(chat_frames(["hello"]))
    answer = await served.post(path, asking(n=3, stream=True, stream_options={"include_usage": path[:2] == "/v"}))
    assert answer.whole
    frames = [orjson.loads(data) for data in answer.events() if data != b"[DONE]"]
    ends = [frame for frame in frames if frame["choices"] and frame["choices"][0]["finish_reason"]]
    assert [bool(frame.get("usage")) for frame in ends] == [False, False, True]
    assert ends[-1]["usage"]["total_tokens"] == 12
    assert texts_of(frames) == {0: "hello", 1: "hello", 2: "hello"}


async def test_the_likeliest_of_three_candidates(served: Rig) -> None:
    scores = {"A": [-0.1, -0.2, -3.0], "B": [-0.9, -0.9], "C": [-1.0] * 10}
    left = [*scores]

    def scored(received: Received) -> Script:
        text = left.pop()
        content: list[JsonValue] = [{"token": "t", "logprob": value, "bytes": [116]} for value in scores[text]]
        message: JsonObject = {"role": "assistant", "content": text}
        choice: JsonObject = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": {"content": content}}
        usage: JsonObject = {"prompt_tokens": 4, "completion_tokens": len(content), "total_tokens": 4 + len(content)}
        return json_answer(200, {**chat(text), "choices": [choice], "usage": usage})

    served.vendor.default = scored
    answer = await served.post("/v1/completions", asking("scored/m", best_of=3))
    assert choices_of(answer) == [(0, "B", "stop")]
    assert answer.json()["usage"] == {"prompt_tokens": 4, "completion_tokens": 15, "total_tokens": 19}
    assert answer.headers["x-dragoman-emulated"] == "best_of, prompt"


def shape(frames: Sequence[JsonObject]) -> list[bytes]:
    """Return the content of frames, without their ids and in a fixed order."""
    volatile = ("id", "created", "model", "system_fingerprint")
    kept = ({name: value for name, value in frame.items() if name not in volatile} for frame in frames)
    return sorted(orjson.dumps(frame, option=orjson.OPT_SORT_KEYS) for frame in kept)


async def test_ten_prompts_with_two_candidates_look_as_from_a_vendor_that_has_both(served: Rig) -> None:
    prompts: list[JsonValue] = [f"{number}" for number in range(10)]
    frame: JsonObject = {"id": "c", "object": "text_completion", "created": 1, "model": "m"}
    texts: list[JsonObject] = [{"index": index, "text": f"{index // 2}", "finish_reason": None} for index in range(20)]
    ends: list[JsonObject] = [{"index": index, "text": "", "finish_reason": "stop"} for index in range(20)]
    usage: JsonObject = {"prompt_tokens": 60, "completion_tokens": 40, "total_tokens": 100}
    said: list[JsonObject] = [{**frame, "choices": [choice]} for choice in (*texts, *ends)]
    fields: dict[str, JsonValue] = {"n": 2, "stream": True, "stream_options": {"include_usage": True}}
    served.vendor.answer(sse_answer([*data_frames(*said, {**frame, "choices": [], "usage": usage}), DONE]))
    from_one = await served.post("/v1/completions", asking("whole/m", prompts, **fields))
    served.vendor.default = lambda received: sse_answer(completion_frames([prompt_of(received)]))
    # With "error" the engine would first be asked for a token count.
    from_many = await served.post("/v1/completions", asking("engine/m", prompts, **fields, **{WINDOW: "truncate"}))
    assert len(served.vendor.requests) == 21
    assert shape(frames_of(from_one)) == shape(frames_of(from_many))
    assert texts_of(frames_of(from_many)) == {index: f"{index // 2}" for index in range(20)}
    assert from_many.headers["x-dragoman-emulated"] == "prompt, n"


# Failures ------------------------------------------------------------------------------------------------------------

FAILING: dict[str, tuple[Script, int, str]] = {
    "500": (json_answer(500, {"error": {"message": "no"}}), 502, "upstream_error"),
    "429": (json_answer(429, {"error": {"message": "no"}}), 429, "rate_limit_exceeded"),
    "400": (json_answer(400, {"error": {"message": "no"}}), 400, "invalid_value"),
    "cut": ((Rst(),), 502, "upstream_error"),
    "nonsense": (json_answer(200, {"nothing": "here"}), 502, "malformed_upstream"),
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("script", "status", "code"), FAILING.values(), ids=FAILING.keys())
async def test_53_a_call_that_fails_before_any_content_fails_the_request(
    served: Rig, stream: bool, script: Script, status: int, code: str
) -> None:
    together = asyncio.Event()
    served.vendor.default = each({"good": (Hang(),), "bad": (Until(together), *script), "better": (Hang(),)})
    async with connected(served.port) as client:
        body = asking(prompt=["good", "bad", "better"], stream=stream)
        await client.send(request("POST", "/v1/completions", body, AUTH))
        await served.vendor.received(3)
        together.set()
        answer = await client.answer()
    assert (answer.status, answer.code, answer.whole) == (status, code, True)
    await gone(served, 2)
    (record,) = await served.finished(1)
    assert (record.status, record.first_content) == (status, None)
    assert record.billed is not None  # the prompts of the calls that were sent and not refused
    assert record.billed.estimated
    assert record.attempts[0].outcome != "ok"


@pytest.mark.parametrize("model", ["chats/hasty", "chats/m"])
async def test_53_a_call_that_hangs_fails_the_request(served: Rig, model: str) -> None:
    served.vendor.default = (Hang(),)
    answer = await served.post("/v5/completions", asking(model, ["a", "b"], stream=True, inference_timeout=0.5))
    assert (answer.status, answer.code) == (504, "upstream_timeout")
    await gone(served, 2)


@pytest.mark.parametrize("stream", [False, True])
async def test_the_total_deadline_ends_every_call(served: Rig, stream: bool) -> None:
    served.vendor.default = (Hang(),)
    answer = await served.post("/v5/completions", asking(n=3, stream=stream, inference_timeout=0.3))
    assert (answer.status, answer.code) == (504, "upstream_timeout")
    assert "0.3 s" in answer.message
    await gone(served, 3)


BREAKING: dict[str, Script] = {
    "500": json_answer(500, {"error": {"message": "no"}}),
    "429": json_answer(429, {"error": {"message": "no"}}),
    "reset": (Rst(),),
    "cut": (*FIRST, Rst()),
    "unfinished": sse_answer(chat_frames(["one"])[:2]),
    "in-band": (*FIRST, Send(chunk(data_frames({"error": {"message": "it broke"}})[0])), Hang()),
}


@pytest.mark.parametrize("script", BREAKING.values(), ids=BREAKING.keys())
async def test_53_a_call_that_fails_after_content_breaks_the_stream(served: Rig, script: Script) -> None:
    gate = asyncio.Event()
    served.vendor.default = each({"good": (*FIRST, Hang()), "bad": (Until(gate), *script), "idle": (Hang(),)})
    async with connected(served.port) as client:
        body = asking(prompt=["good", "bad", "idle"], stream=True)
        await client.send(request("POST", "/v1/completions", body, AUTH))
        status, _ = await client.head()
        first = await client.chunk()
        gate.set()
        rest, whole = await client.chunks()
    assert (status, whole) == (200, False)
    assert b'"text":"one"' in first
    answer = Answer(status, {}, first + rest, whole)
    assert b'"error"' in answer.events()[-1]
    assert b"[DONE]" not in answer.body
    assert b'"finish_reason":"' not in answer.body
    await gone(served, 2)
    (record,) = await served.finished(1)
    assert record.outcome == "truncated"
    assert record.billed is not None
    assert record.billed.estimated
    assert sum(served.series("stream_aborts_total").values()) == 1


async def test_a_stream_of_which_every_call_falls_silent_breaks(served: Rig) -> None:
    served.vendor.default = each({"good": sse_answer(chat_frames(["one"])), "idle": (*FIRST, Hang())})
    answer = await served.post("/v1/completions", asking("chats/hasty", ["good", "idle"], stream=True))
    assert (answer.status, answer.whole) == (200, False)
    assert b"upstream_timeout" in answer.events()[-1]


@pytest.mark.parametrize("script", [(Hang(),), (*FIRST, Hang()), (START, Loop((FIRST[1], Delay(0.001))))])
@pytest.mark.parametrize("stream", [False, True])
async def test_a_client_that_leaves_ends_every_call(served: Rig, stream: bool, script: Script) -> None:
    served.vendor.default = script
    async with connected(served.port) as client:
        await client.send(request("POST", "/v1/completions", asking(n=3, stream=stream), AUTH))
        await served.vendor.received(3)
        if stream and script[0] is START:
            await client.head()
        await client.leave()
        await gone(served, 3)
    (record,) = await served.finished(1)
    assert (record.outcome, record.attempts[0].outcome) == ("client_gone", "cancelled")
