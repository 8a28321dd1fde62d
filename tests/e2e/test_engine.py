"""The gateway in front of a real engine, the llama.cpp server with a tiny random model, whose text is noise."""

import re
from collections.abc import AsyncIterator, Callable

import aiohttp
import jsonschema
import orjson
import pytest
import pytest_asyncio

from providers.json_types import JsonObject
from tests.e2e.kit import choices_of, line_of, post, refused, streamed, text_of, totals
from tests.support.clients import RECIPES, Client
from tests.support.engine import Engine
from tests.support.gateway import RunningGateway, running_gateway
from tests.support.looped import looped

pytestmark = pytest.mark.engine

MODEL = "local/tiny"
COMPLETIONS, CHAT_COMPLETIONS = "/v1/completions", "/v1/chat/completions"
GREEDY: JsonObject = {"model": MODEL, "prompt": "The quick", "max_tokens": 5, "temperature": 0}


def talk(text: str) -> JsonObject:
    return {"messages": [{"role": "user", "content": text}]}


TALK: JsonObject = {"model": MODEL, **talk("hi"), "max_tokens": 5, "temperature": 0}
LONG: JsonObject = {"model": MODEL, "prompt": "x", "max_tokens": 2000, "inference_extra_params": {"ignore_eos": True}}
SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "colour": {"enum": ["red", "blue"]},
        "sizes": {"type": "array", "items": {"enum": [1, 2, 3]}, "minItems": 1, "maxItems": 3},
    },
    "required": ["colour", "sizes"],
    "additionalProperties": False,
}
RESPONSE_FORMAT: JsonObject = {"type": "json_schema", "json_schema": {"name": "colour", "schema": SCHEMA}}
FORMS = pytest.mark.parametrize(
    ("path", "ask"), [(COMPLETIONS, GREEDY), (CHAT_COMPLETIONS, TALK)], ids=["completion", "chat"]
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningGateway]:
    table = f"""\
version: 1
vendors:
  local: {{profile: llamacpp, base_url: "{engine.base_url}/v1", allow_private: true}}
models:
  {MODEL}: {{context_window: 4096}}
"""
    async with running_gateway(table, tmp_path_factory.mktemp("gateway")) as running:
        yield running


# Text ----------------------------------------------------------------------------------------------------------------


@FORMS
async def test_the_engines_text_and_counts_come_whole_and_streamed_alike(
    path: str, ask: JsonObject, http: aiohttp.ClientSession
) -> None:
    whole = await post(http, path, ask)
    (choice,) = whole["choices"]
    assert (choice["index"], choice["finish_reason"], whole["model"]) == (0, "length", MODEL)
    assert text_of(choice)
    assert whole["usage"]["completion_tokens"] == 5
    chunks = await streamed(http, path, {**ask, "stream_options": {"include_usage": True}})
    choices = [choice for chunk in chunks for choice in chunk["choices"]]
    assert "".join(text_of(choice) for choice in choices) == text_of(whole["choices"][0])
    assert [choice["finish_reason"] for choice in choices if choice["finish_reason"]] == ["length"]
    assert totals(chunks[-1]["usage"]) == totals(whole["usage"])
    assert len({(chunk["id"], chunk["model"]) for chunk in chunks}) == 1


@FORMS
async def test_a_stop_string_ends_the_text_before_it(path: str, ask: JsonObject, http: aiohttp.ClientSession) -> None:
    before = text_of((await post(http, path, {**ask, "max_tokens": 8}))["choices"][0])
    # Letters, because the noise also contains bytes that are not characters; and not the first letters.
    found = re.search("(?<=.)[a-z]{2}", before)
    assert found is not None, before
    stop = found[0]
    answer = await post(http, path, {**ask, "max_tokens": 8, "stop": stop})
    assert text_of(answer["choices"][0]) == before[: before.index(stop)]
    assert answer["choices"][0]["finish_reason"] == "stop"


async def test_token_ids_are_a_prompt(http: aiohttp.ClientSession) -> None:
    answer = await post(http, COMPLETIONS, {**GREEDY, "prompt": [1, 2, 3]})
    assert len(answer["choices"]) == 1
    assert totals(answer["usage"]) == [3, 5, 8]
    again = await post(http, COMPLETIONS, {**GREEDY, "prompt": [3, 2, 1]})
    assert again["choices"][0]["text"] != answer["choices"][0]["text"]


# Log probabilities ---------------------------------------------------------------------------------------------------


async def test_entries_become_the_four_arrays_with_offsets_into_prompt_and_text(http: aiohttp.ClientSession) -> None:
    answer = await post(http, COMPLETIONS, {**GREEDY, "logprobs": 2})
    choice = answer["choices"][0]
    found = choice["logprobs"]
    assert "content" not in found
    assert "".join(found["tokens"]) == choice["text"]
    whole = "The quick" + choice["text"]
    for token, offset in zip(found["tokens"], found["text_offset"], strict=True):
        assert whole[offset : offset + len(token)] == token
    assert [top[token] for top, token in zip(found["top_logprobs"], found["tokens"], strict=True)] == found[
        "token_logprobs"
    ]
    assert {len(top) for top in found["top_logprobs"]} == {2}


async def test_offsets_count_code_points_and_are_the_same_in_a_stream(http: aiohttp.ClientSession) -> None:
    body: JsonObject = {**GREEDY, "prompt": "Grüße", "temperature": 1, "seed": 4, "max_tokens": 30, "logprobs": 1}
    whole = (await post(http, COMPLETIONS, body))["choices"][0]["logprobs"]
    chunks = await streamed(http, COMPLETIONS, body)
    parts = [choice["logprobs"] for chunk in chunks for choice in chunk["choices"] if choice["logprobs"]]
    assert whole["text_offset"][0] == len("Grüße")
    for name in ("tokens", "text_offset", "token_logprobs"):
        assert [value for part in parts for value in part[name]] == whole[name]


async def test_true_for_logprobs_gives_both_forms(http: aiohttp.ClientSession) -> None:
    answer = await post(http, COMPLETIONS, {**GREEDY, "logprobs": True, "top_logprobs": 3})
    found = answer["choices"][0]["logprobs"]
    assert [entry["token"] for entry in found["content"]] == found["tokens"]
    assert [len(entry["top_logprobs"]) for entry in found["content"]] == [3] * 5


# Constraints ---------------------------------------------------------------------------------------------------------


@FORMS
@pytest.mark.parametrize("constraint", [{"guided_json": SCHEMA}, {"response_format": RESPONSE_FORMAT}])
@pytest.mark.parametrize("seed", [1, 2])
async def test_a_schema_binds_the_model(
    path: str, ask: JsonObject, constraint: JsonObject, seed: int, http: aiohttp.ClientSession
) -> None:
    body: JsonObject = {**ask, **constraint, "seed": seed, "temperature": 1, "max_tokens": 2000}
    answer = await post(http, path, body)
    assert answer["choices"][0]["finish_reason"] == "stop"
    jsonschema.validate(orjson.loads(text_of(answer["choices"][0])), SCHEMA)
    chunks = await streamed(http, path, body)
    text = "".join(text_of(choice) for chunk in chunks for choice in chunk["choices"])
    jsonschema.validate(orjson.loads(text), SCHEMA)


@FORMS
async def test_a_choice_is_one_of_the_given_ones(path: str, ask: JsonObject, http: aiohttp.ClientSession) -> None:
    given = ['say "yes"', "no\n", "ünclear"]
    for seed in range(4):
        body: JsonObject = {**ask, "guided_choice": list(given), "temperature": 1, "seed": seed, "max_tokens": 200}
        answer = await post(http, path, body)
        assert text_of(answer["choices"][0]) in given


@FORMS
async def test_a_grammar_binds_the_model(path: str, ask: JsonObject, http: aiohttp.ClientSession) -> None:
    body: JsonObject = {**ask, "guided_grammar": 'root ::= "a" [bc] [bc] "d"', "temperature": 1, "max_tokens": 50}
    text = text_of((await post(http, path, body))["choices"][0])
    assert text in {"abbd", "abcd", "acbd", "accd"}


@FORMS
async def test_a_regular_expression_binds_the_model(path: str, ask: JsonObject, http: aiohttp.ClientSession) -> None:
    # ASCII only: other bytes of the noise are not valid UTF-8.
    pattern = r"(ab|\d{2}|_)-(yes)?[A-F!]{1,3}"
    for seed in range(4):
        body: JsonObject = {**ask, "guided_regex": pattern, "temperature": 1, "seed": seed, "max_tokens": 50}
        text = text_of((await post(http, path, body))["choices"][0])
        assert re.fullmatch(pattern, text), text


# Ends ----------------------------------------------------------------------------------------------------------------


@FORMS
async def test_a_prompt_beyond_the_window_says_so(path: str, ask: JsonObject, http: aiohttp.ClientSession) -> None:
    long = "x " * 5000
    body: JsonObject = {**ask, **({"prompt": long} if "prompt" in ask else talk(long))}
    error = await refused(http, path, body)
    assert error["code"] == "context_length_exceeded"
    assert "4096" in error["message"]
    assert await refused(http, path, {**body, "stream": True}) == error


async def test_the_engine_stops_generating_when_the_client_of_a_stream_leaves(
    http: aiohttp.ClientSession, engine: Engine, gateway: RunningGateway
) -> None:
    await engine.quiet()
    before = await engine.generated_tokens()
    async with http.post(COMPLETIONS, json={**LONG, "stream": True}) as answer:
        assert answer.status == 200
        await answer.content.readline()
        answer.close()
    await engine.quiet()
    assert 0 < await engine.generated_tokens() - before < 2000
    assert (await line_of(gateway, answer.headers["x-request-id"]))["outcome"] == "client_gone"


# The vendors' SDKs ---------------------------------------------------------------------------------------------------


@pytest.mark.clients
@pytest.mark.timeout(300)
@looped("name", RECIPES)
async def test_sdks_get_engines_answers(name: str, clients: Callable[[str], Client], gateway: RunningGateway) -> None:
    for kind, fields in (("completion", GREEDY), ("chat", TALK)):
        whole = await clients(name).run(kind, gateway.url, fields)
        stream = await clients(name).run(f"{kind}_stream", gateway.url, fields)
        assert (whole["error"], stream["error"]) == (None, None)
        assert whole["text"] == stream["text"] != ""
        assert whole["finish_reason"] == stream["finish_reason"] == "length"
        assert whole["usage"] is not None
        assert whole["usage"]["completion_tokens"] == 5
        assert {choice["index"] for choice in choices_of(stream)} == {0}
