"""Features that the gateway adds for vendors without them, over real sockets: stops, echoes, and limits that fit the
window.
"""

import pytest

from providers.completion import Usage
from providers.json_types import JsonObject, JsonValue
from tests.proxy.kit.gateway_rig import Rig, gateway_fixture
from tests.proxy.kit.limited_vendors import START, TABLE, WINDOW, asking, choices_of, frames_of, gone, texts_of
from tests.support.http_scripts import chunk, json_answer, sse_answer
from tests.support.openai_wire import chat_frames, completion, completion_frames
from tests.support.vendor_script import Delay, Loop, Received, Script, Send

served = gateway_fixture(TABLE)


# Stops that the gateway finds ----------------------------------------------------------------------------------------

STOPS: list[JsonValue] = ["<1>", "<2>", "<3>", "<4>", "END"]
ENDLESS: Script = (
    START,
    *(Send(chunk(frame)) for frame in chat_frames(["one E", "ND two"])[:3]),
    Loop((Send(chunk(chat_frames(["more"])[1])), Delay(0.001))),
)


@pytest.mark.parametrize("n", [1, 2])
async def test_at_a_stop_that_the_gateway_finds_the_vendor_is_cut_off(served: Rig, n: int) -> None:
    served.vendor.default = ENDLESS
    answer = await served.post("/v1/completions", asking(stop=STOPS, n=n))
    assert choices_of(answer) == [(index, "one ", "stop") for index in range(n)]
    assert answer.json()["usage"] == {
        "prompt_tokens": 1,
        "completion_tokens": n,
        "total_tokens": 1 + n,
        "estimated": True,
    }
    emulated = ["stop", "n", "prompt", "usage"] if n > 1 else ["stop", "prompt", "usage"]
    assert answer.headers["x-dragoman-emulated"].split(", ") == emulated
    await gone(served, n)
    body = served.vendor.requests[0].json()
    assert isinstance(body, dict)
    assert (body["stop"], body["stream"]) == (STOPS[:4], True)


@pytest.mark.parametrize("n", [1, 2])
async def test_a_stream_ends_at_a_stop_that_the_gateway_finds(served: Rig, n: int) -> None:
    served.vendor.default = ENDLESS
    fields: dict[str, JsonValue] = {"stop": STOPS, "n": n, "stream": True, "stream_options": {"include_usage": True}}
    answer = await served.post("/v1/completions", asking("chats/m", "hi", **fields))
    frames = frames_of(answer)
    assert texts_of(frames) == {index: "one " for index in range(n)}
    usage = frames[-1]["usage"]
    assert isinstance(usage, dict)
    assert (usage["estimated"], usage["completion_tokens"]) == (True, n)
    await gone(served, n)
    (record,) = await served.finished(1)
    assert record.outcome == "ok"
    assert record.usage == Usage(1, n, estimated=True)


# The window ----------------------------------------------------------------------------------------------------------


def full(prompt: int, limit: int) -> Script:
    words = (
        f"This model's maximum context length is 100 tokens. However, you requested {prompt + limit} tokens "
        f"({prompt} in the messages, {limit} in the completion)."
    )
    error: JsonObject = {"message": words, "code": "context_length_exceeded"}
    return json_answer(400, {"error": error})


def limits(requests: list[Received]) -> list[object]:
    return [body["max_tokens"] for received in requests if isinstance(body := received.json(), dict)]


@pytest.mark.parametrize("stream", [False, True])
async def test_under_truncate_the_vendor_is_asked_again_for_what_fits(served: Rig, stream: bool) -> None:
    good = sse_answer(completion_frames(["ok"])) if stream else json_answer(200, completion("ok"))
    served.vendor.answer(full(60, 50), good)
    fields: dict[str, JsonValue] = {"max_tokens": 50, "stream": stream, WINDOW: "truncate"}
    answer = await served.post("/v1/completions", asking("whole/m", **fields))
    assert (answer.status, answer.whole) == (200, True)
    assert answer.headers["x-dragoman-max-tokens"] == "40"
    assert answer.headers["x-dragoman-emulated"] == WINDOW
    assert answer.headers["x-dragoman-attempts"] == "1"
    assert limits(served.vendor.requests) == [50, 40]
    (record,) = await served.finished(1)
    assert (record.outcome, record.max_tokens, len(record.attempts)) == ("ok", 40, 1)
    await served.vendor.connected(1)


async def test_a_refusal_is_passed_on_to_a_client_that_wants_the_error(served: Rig) -> None:
    served.vendor.default = full(60, 50)
    answer = await served.post("/v1/completions", asking("whole/m", max_tokens=50))
    assert (answer.status, answer.code, len(served.vendor.requests)) == (400, "context_length_exceeded", 1)
    assert "x-dragoman-max-tokens" not in answer.headers


async def test_an_engine_that_would_shorten_the_answer_is_asked_to_count_first(served: Rig) -> None:
    served.vendor.answer_path("/tokenize", json_answer(200, {"tokens": [0] * 4090}))
    served.vendor.answer_path("/props", json_answer(200, {"default_generation_settings": {"n_ctx": 4096}}))
    served.vendor.answer_path("/v1/completions", json_answer(200, completion("ok")))
    long = await served.post("/v1/completions", asking("engine/m", max_tokens=50, stream=True))
    assert (long.status, long.code) == (400, "context_length_exceeded")
    assert "4140 tokens (4090 in the prompt, 50 in the completion)" in long.message
    assert [received.path for received in served.vendor.requests] == ["/tokenize", "/props"]
    # The window is known now, and this prompt surely fits.
    short = await served.post("/v1/completions", asking("engine/m", max_tokens=50))
    assert short.status == 200
    assert [received.path for received in served.vendor.requests] == ["/tokenize", "/props", "/v1/completions"]
