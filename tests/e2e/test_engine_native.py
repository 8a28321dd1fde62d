"""llama.cpp's own endpoints behind the gateway, compared with the same engine's OpenAI routes."""

import re
from collections.abc import AsyncIterator

import aiohttp
import jsonschema
import orjson
import pytest
import pytest_asyncio

from providers.json_types import JsonObject, JsonValue
from tests.e2e.kit import post, refused, streamed, text_of, totals
from tests.support.engine import Engine
from tests.support.gateway import RunningGateway, running_gateway
from tests.support.looped import looped

pytestmark = pytest.mark.engine

NATIVE, COMPATIBLE = "native/tiny", "compatible/tiny"
PATH = "/v1/completions"
GREEDY: JsonObject = {"model": NATIVE, "prompt": "The quick", "max_tokens": 5, "temperature": 0}
SCHEMA: JsonObject = {
    "type": "object",
    "properties": {"colour": {"enum": ["red", "blue"]}},
    "required": ["colour"],
    "additionalProperties": False,
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningGateway]:
    table = f"""\
version: 1
vendors:
  native: {{profile: llamacpp_native, base_url: "{engine.base_url}", allow_private: true}}
  compatible: {{profile: llamacpp, base_url: "{engine.base_url}/v1", allow_private: true}}
models:
  {NATIVE}: {{context_window: 4096}}
  {COMPATIBLE}: {{context_window: 4096}}
"""
    async with running_gateway(table, tmp_path_factory.mktemp("gateway")) as running:
        yield running


@looped("prompt", ["The quick", [1, 2, 3]], ids=["text", "tokens"])
@looped("more", [{}, {"logprobs": 2}, {"top_k": 3, "repetition_penalty": 1.3, "min_p": 0}])
async def test_both_ways_give_the_same(prompt: JsonValue, more: JsonObject, http: aiohttp.ClientSession) -> None:
    asked: JsonObject = {**GREEDY, **more, "prompt": prompt}
    own, other = await post(http, PATH, asked), await post(http, PATH, {**asked, "model": COMPATIBLE})
    assert own["choices"][0]["text"] == other["choices"][0]["text"] != ""
    assert own["choices"][0]["finish_reason"] == other["choices"][0]["finish_reason"] == "length"
    assert totals(own["usage"]) == totals(other["usage"])
    if "logprobs" in more:
        assert own["choices"][0]["logprobs"]["tokens"] == other["choices"][0]["logprobs"]["tokens"]
        assert {len(top) for top in own["choices"][0]["logprobs"]["top_logprobs"]} == {2}


async def test_a_stream_says_what_the_whole_answer_says(http: aiohttp.ClientSession) -> None:
    body: JsonObject = {**GREEDY, "prompt": "Grüße", "temperature": 1, "seed": 4, "max_tokens": 30, "logprobs": 1}
    whole = await post(http, PATH, body)
    chunks = await streamed(http, PATH, {**body, "stream_options": {"include_usage": True}})
    choices = [choice for chunk in chunks for choice in chunk["choices"]]
    assert "".join(map(text_of, choices)) == whole["choices"][0]["text"]
    tokens = [token for choice in choices if choice["logprobs"] for token in choice["logprobs"]["tokens"]]
    assert tokens == whole["choices"][0]["logprobs"]["tokens"]
    assert totals(chunks[-1]["usage"]) == totals(whole["usage"])


@pytest.mark.parametrize("prompts", [["The quick", "hi"], [[1, 2, 3], [4]]], ids=["texts", "tokens"])
async def test_several_prompts_are_a_call_and_all_count(prompts: list[JsonValue], http: aiohttp.ClientSession) -> None:
    alone = [await post(http, PATH, {**GREEDY, "prompt": prompt}) for prompt in prompts]
    asked: JsonObject = {**GREEDY, "prompt": prompts}
    together = await post(http, PATH, asked)
    texts = [answer["choices"][0]["text"] for answer in alone]
    assert [choice["text"] for choice in together["choices"]] == texts
    sums = [sum(counts) for counts in zip(*[totals(answer["usage"]) or [] for answer in alone], strict=True)]
    assert totals(together["usage"]) == sums
    pieces = ["", ""]
    for chunk in await streamed(http, PATH, asked):
        for choice in chunk["choices"]:
            pieces[choice["index"]] += text_of(choice)
    assert pieces == texts


async def test_candidates_are_calls_of_their_own(http: aiohttp.ClientSession) -> None:
    answer = await post(http, PATH, {**GREEDY, "n": 2, "best_of": 3, "temperature": 1, "seed": 1})
    assert [choice["index"] for choice in answer["choices"]] == [0, 1]
    assert totals(answer["usage"]) == [2, 15, 17]


async def test_the_stop_that_matched_is_told_and_kept_when_asked_for(http: aiohttp.ClientSession) -> None:
    before = (await post(http, PATH, {**GREEDY, "max_tokens": 8}))["choices"][0]["text"]
    found = re.search("(?<=.)[a-z]{2}", before)
    assert found is not None, before
    stop = found[0]
    for keep, text in ((False, before[: before.index(stop)]), (True, before[: before.index(stop) + 2])):
        body: JsonObject = {**GREEDY, "max_tokens": 8, "stop": stop, "include_stop_str_in_output": keep}
        answer = await post(http, PATH, body)
        assert (answer["choices"][0]["text"], answer["choices"][0]["finish_reason"]) == (text, "stop")
        assert (
            "".join(text_of(choice) for chunk in await streamed(http, PATH, body) for choice in chunk["choices"])
            == text
        )


@pytest.mark.parametrize("seed", [1, 2])
async def test_constraints_bind_the_model(seed: int, http: aiohttp.ClientSession) -> None:
    base: JsonObject = {**GREEDY, "temperature": 1, "seed": seed, "max_tokens": 500}

    async def bound(**constraint: JsonValue) -> str:
        answer = await post(http, PATH, {**base, **constraint})
        assert answer["choices"][0]["finish_reason"] == "stop"
        return str(answer["choices"][0]["text"])

    jsonschema.validate(orjson.loads(await bound(guided_json=SCHEMA)), SCHEMA)
    assert await bound(guided_choice=['say "yes"', "no\n"]) in ('say "yes"', "no\n")
    assert re.fullmatch("[a-c]{2}-[0-9]{3}", await bound(guided_regex="[a-c]{2}-[0-9]{3}"))
    assert await bound(guided_grammar='root ::= "a" [bc]') in ("ab", "ac")
    assert isinstance(orjson.loads(await bound(response_format={"type": "json_object"})), dict)


async def test_a_prompt_beyond_the_window_says_so(http: aiohttp.ClientSession) -> None:
    body: JsonObject = {**GREEDY, "prompt": "x " * 5000}
    error = await refused(http, PATH, body)
    assert error["code"] == "context_length_exceeded"
    assert await refused(http, PATH, {**body, "stream": True}) == error


async def test_a_limit_beyond_the_window_is_refused_or_lowered_as_asked(http: aiohttp.ClientSession) -> None:
    window = "context_length_exceeded_behavior"
    body: JsonObject = {**GREEDY, "max_tokens": 4095, window: "error"}
    assert (await refused(http, PATH, body))["code"] == "context_length_exceeded"
    grammar: JsonObject = {"guided_grammar": 'root ::= "a"', window: "truncate"}
    assert (await post(http, PATH, {**body, **grammar}))["choices"][0]["text"] == "a"


async def test_a_model_that_fills_no_middle_says_so(http: aiohttp.ClientSession) -> None:
    assert "Infill is not supported" in (await refused(http, PATH, {**GREEDY, "suffix": "end"}))["message"]


async def test_the_prompt_stands_before_its_answer(http: aiohttp.ClientSession) -> None:
    alone = (await post(http, PATH, GREEDY))["choices"][0]["text"]
    assert (await post(http, PATH, {**GREEDY, "echo": True}))["choices"][0]["text"] == "The quick" + alone
