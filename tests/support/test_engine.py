"""The engine fixture runs, and the server behaves as `tests/support/engine.py` describes."""

import json
from collections.abc import AsyncIterator

import aiohttp
import pytest

from providers.json_types import JsonObject, JsonValue
from tests.support.engine import Engine, client_of

pytestmark = pytest.mark.engine

SCHEMA: JsonObject = {
    "type": "object",
    "properties": {"colour": {"enum": ["red", "blue"]}},
    "required": ["colour"],
    "additionalProperties": False,
}
RESPONSE_FORMAT: JsonObject = {"type": "json_schema", "json_schema": {"name": "colour", "schema": SCHEMA}}
GREEDY: JsonObject = {"prompt": "The quick", "max_tokens": 5, "temperature": 0}
LONG: JsonObject = {"prompt": "The quick", "max_tokens": 2000, "ignore_eos": True}
ASK: JsonObject = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 5, "temperature": 0}


@pytest.fixture
async def http(engine: Engine) -> AsyncIterator[aiohttp.ClientSession]:
    async with client_of(engine.base_url) as session:
        yield session


def at(value: JsonValue, *path: str | int) -> JsonValue:
    for step in path:
        match value, step:
            case dict(), str():
                value = value[step]
            case list(), int():
                value = value[step]
            case _:
                raise AssertionError(f"no {step!r} in {value!r}")
    return value


def parsed(text: JsonValue) -> JsonValue:
    assert isinstance(text, str)
    value: JsonValue = json.loads(text)
    return value


async def post(http: aiohttp.ClientSession, path: str, body: JsonObject) -> JsonValue:
    async with http.post(path, json=body) as answer:
        assert answer.status == 200, await answer.text()
        whole: JsonValue = await answer.json()
        return whole


async def text_of(http: aiohttp.ClientSession, body: JsonObject) -> JsonValue:
    return at(await post(http, "/v1/completions", body), "choices", 0, "text")


async def frames_of(http: aiohttp.ClientSession, path: str, body: JsonObject) -> list[str]:
    """Return the text after `data: ` of each frame of a streamed response."""
    async with http.post(path, json={**body, "stream": True}) as answer:
        assert answer.content_type == "text/event-stream"
        text = await answer.text()
    return [frame.removeprefix("data: ") for frame in text.strip().split("\n\n")]


async def test_the_same_greedy_prompt_gets_the_same_text(http: aiohttp.ClientSession) -> None:
    assert len({await text_of(http, GREEDY) for _ in range(5)}) == 1


async def test_a_streamed_completion_says_the_same_and_ends_with_usage_and_done(http: aiohttp.ClientSession) -> None:
    *frames, done = await frames_of(http, "/v1/completions", GREEDY)
    chunks = [json.loads(frame) for frame in frames]
    assert done == "[DONE]"
    assert "".join(chunk["choices"][0]["text"] for chunk in chunks) == await text_of(http, GREEDY)
    assert chunks[-1]["choices"][0]["finish_reason"] == "length"
    assert chunks[-1]["usage"]["completion_tokens"] == 5


async def test_chat_answers_whole_and_streamed(http: aiohttp.ClientSession) -> None:
    whole = await post(http, "/v1/chat/completions", ASK)
    *frames, done = await frames_of(http, "/v1/chat/completions", {**ASK, "stream_options": {"include_usage": True}})
    chunks = [json.loads(frame) for frame in frames]
    deltas = [choice["delta"] for chunk in chunks for choice in chunk["choices"]]
    assert done == "[DONE]"
    assert "".join(delta.get("content") or "" for delta in deltas) == at(whole, "choices", 0, "message", "content")
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"]["completion_tokens"] == at(whole, "usage", "completion_tokens") == 5


async def test_completions_give_log_probabilities_in_chats_form(http: aiohttp.ClientSession) -> None:
    answer = await post(http, "/v1/completions", {**GREEDY, "logprobs": 2})
    first = at(answer, "choices", 0, "logprobs", "content", 0)
    assert isinstance(at(first, "token"), str)
    assert at(first, "logprob") == at(first, "top_logprobs", 0, "logprob")
    assert isinstance(at(first, "top_logprobs", 1, "bytes"), list)


async def test_a_json_schema_binds_completions(http: aiohttp.ClientSession) -> None:
    text = await text_of(http, {"prompt": "x", "max_tokens": 1000, "seed": 1, "json_schema": SCHEMA})
    assert at(parsed(text), "colour") in {"red", "blue"}


async def test_a_response_format_binds_chat_but_not_completions(http: aiohttp.ClientSession) -> None:
    limits: JsonObject = {"max_tokens": 1000, "seed": 1, "temperature": 1, "response_format": RESPONSE_FORMAT}
    answer = await post(http, "/v1/chat/completions", {**ASK, **limits})
    assert at(parsed(at(answer, "choices", 0, "message", "content")), "colour") in {"red", "blue"}
    text = await text_of(http, {"prompt": "x", **limits})
    with pytest.raises(json.JSONDecodeError):
        parsed(text)


async def test_an_over_long_prompt_is_refused_with_numbers(http: aiohttp.ClientSession) -> None:
    async with http.post("/v1/completions", json={"prompt": "x " * 5000}) as answer:
        body = await answer.json()
    assert answer.status == 400
    assert body["error"]["type"] == "exceed_context_size_error"
    assert body["error"]["n_ctx"] == 4096
    assert body["error"]["n_prompt_tokens"] > 4096


async def test_generation_stops_when_the_client_of_a_stream_leaves(http: aiohttp.ClientSession, engine: Engine) -> None:
    await engine.quiet()
    before = await engine.generated_tokens()
    async with http.post("/v1/completions", json={**LONG, "stream": True}) as answer:
        await answer.content.readline()
        answer.close()
    await engine.quiet()
    assert 0 < await engine.generated_tokens() - before < 2000


async def test_generation_goes_on_when_an_answers_client_leaves(http: aiohttp.ClientSession, engine: Engine) -> None:
    await engine.quiet()
    before = await engine.generated_tokens()
    with pytest.raises(TimeoutError):
        await http.post("/v1/completions", json=LONG, timeout=aiohttp.ClientTimeout(total=0.1))
    await engine.quiet()
    assert await engine.generated_tokens() - before == 2000
