"""The gateway's emulation over a real engine that accepts one prompt, returns one choice and repeats nothing.

The engine is the llama.cpp server with a tiny random model: its text is noise, but the same noise for the same seed.
"""

from collections.abc import AsyncIterator, Mapping
from math import fsum

import aiohttp
import orjson
import pytest
import pytest_asyncio

from providers.json_types import JsonObject, JsonValue
from tests.e2e.kit import Wire, post, refused, streamed, text_of, totals
from tests.support.engine import Engine
from tests.support.gateway import RunningGateway, running_gateway
from tests.support.looped import looped

pytestmark = pytest.mark.engine

KNOWN, UNSAID = "local/tiny", "local/unsaid"
"""The configuration sets one model's window. The engine reports the window of the other."""

WINDOW = 4096
COMPLETIONS, CHAT = "/v1/completions", "/v1/chat/completions"
NOISE: JsonObject = {
    "model": KNOWN,
    "prompt": "The quick",
    "max_tokens": 8,
    "temperature": 1,
    "seed": 11,
    # Half a character at the end of a text is in its non-streaming responses and not in its streams.
    "guided_grammar": "root ::= [a-z] [a-z ]*",
}
TALK: JsonObject = {**NOISE, "messages": [{"role": "user", "content": "hi"}]}
del TALK["prompt"]
FORMS = looped(("path", "ask"), [(COMPLETIONS, NOISE), (CHAT, TALK)], ids=["completion", "chat"])
IGNORE_EOS: JsonObject = {"ignore_eos": True}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningGateway]:
    table = f"""\
version: 1
vendors:
  local: {{profile: llamacpp, base_url: "{engine.base_url}/v1", allow_private: true}}
models:
  {KNOWN}: {{context_window: {WINDOW}}}
  {UNSAID}: {{}}
"""
    async with running_gateway(table, tmp_path_factory.mktemp("gateway")) as running:
        yield running


async def headed(
    http: aiohttp.ClientSession, body: Mapping[str, JsonValue], path: str = COMPLETIONS
) -> tuple[Wire, Mapping[str, str]]:
    """Return a non-streaming response, and the gateway's headers about it."""
    async with http.post(path, json=body) as answer:
        facts = orjson.loads(await answer.read())
        assert answer.status == 200, facts
    return facts, answer.headers


def put_together(chunks: list[Wire]) -> list[tuple[str, str | None]]:
    found: dict[int, tuple[str, str | None]] = {}
    for chunk in chunks:
        for choice in chunk["choices"]:
            text, ended = found.get(choice["index"], ("", None))
            assert ended is None, "a frame came after the choice's end"
            found[choice["index"]] = (text + text_of(choice), choice["finish_reason"])
    return [found[index] for index in sorted(found)]


def told(answer: Wire) -> list[tuple[str, str | None]]:
    """Return the same for a non-streaming response. Assert that its indices are in order."""
    assert [choice["index"] for choice in answer["choices"]] == list(range(len(answer["choices"])))
    return [(text_of(choice), choice["finish_reason"]) for choice in answer["choices"]]


async def alone(http: aiohttp.ClientSession, path: str, body: JsonObject) -> tuple[str, str | None]:
    ((text, ended),) = told(await post(http, path, body))
    return text, ended


# Candidates and prompts ----------------------------------------------------------------------------------------------


@FORMS
@looped("n", [2, 4])
async def test_candidates_are_those_of_seeds_that_follow_each_other(
    path: str, ask: JsonObject, n: int, http: aiohttp.ClientSession
) -> None:
    each = [await alone(http, path, {**ask, "seed": 11 + k}) for k in range(n)]
    assert len({text for text, _ in each}) == n
    answer, headers = await headed(http, {**ask, "n": n}, path)
    assert told(answer) == each
    assert headers["x-dragoman-emulated"] == "n"
    one = await post(http, path, ask)
    assert answer["usage"]["prompt_tokens"] == one["usage"]["prompt_tokens"]
    assert answer["usage"]["completion_tokens"] >= n
    chunks = list(await streamed(http, path, {**ask, "n": n, "stream_options": {"include_usage": True}}))
    assert put_together(chunks) == each
    assert totals(chunks[-1]["usage"]) == totals(answer["usage"])
    assert [chunk["usage"] for chunk in chunks[:-1]] == [None] * (len(chunks) - 1)


async def test_candidates_without_a_seed_differ_too(http: aiohttp.ClientSession) -> None:
    answer = await post(http, COMPLETIONS, {**NOISE, "seed": None, "n": 4, "max_tokens": 12})
    assert len({text for text, _ in told(answer)}) > 1


async def test_three_prompts_of_two_candidates_are_six_choices_whole_and_streamed(http: aiohttp.ClientSession) -> None:
    prompts: list[JsonValue] = ["The quick", "hi", "Grüße"]
    singles: list[JsonObject] = [{**NOISE, "prompt": prompt, "seed": seed} for prompt in prompts for seed in (11, 12)]
    each = [await alone(http, COMPLETIONS, body) for body in singles]
    answer, headers = await headed(http, {**NOISE, "prompt": prompts, "n": 2})
    assert told(answer) == each
    assert headers["x-dragoman-emulated"] == "prompt, n"
    counts = [(await post(http, COMPLETIONS, body))["usage"] for body in singles]
    assert answer["usage"]["prompt_tokens"] == sum(count["prompt_tokens"] for count in counts[::2])
    assert answer["usage"]["completion_tokens"] == sum(count["completion_tokens"] for count in counts)
    chunks = await streamed(http, COMPLETIONS, {**NOISE, "prompt": prompts, "n": 2})
    assert put_together(list(chunks)) == each
    assert len({(chunk["id"], chunk["model"]) for chunk in chunks}) == 1


async def test_prompts_of_token_ids_are_asked_one_by_one(http: aiohttp.ClientSession) -> None:
    sequences: list[JsonValue] = [[1, 2, 3], [3, 2], [5]]
    each = [await alone(http, COMPLETIONS, {**NOISE, "prompt": sequence}) for sequence in sequences]
    answer = await post(http, COMPLETIONS, {**NOISE, "prompt": sequences})
    assert told(answer) == each
    assert answer["usage"]["prompt_tokens"] == 6


async def test_the_best_of_several_has_the_highest_mean(http: aiohttp.ClientSession) -> None:
    means: dict[str, float] = {}
    for seed in range(11, 15):
        (choice,) = (await post(http, COMPLETIONS, {**NOISE, "seed": seed, "logprobs": 1}))["choices"]
        numbers = choice["logprobs"]["token_logprobs"]
        means[choice["text"]] = fsum(numbers) / len(numbers)
    answer, headers = await headed(http, {**NOISE, "best_of": 4})
    ((text, _),) = told(answer)
    assert text == max(means, key=means.__getitem__)
    assert answer["choices"][0]["logprobs"] is None
    assert headers["x-dragoman-emulated"] == "best_of"


async def test_candidates_keep_to_a_constraint(http: aiohttp.ClientSession) -> None:
    body: JsonObject = {**NOISE, "guided_grammar": None, "guided_choice": ["red", "green"], "n": 3, "max_tokens": 50}
    assert {text for text, _ in told(await post(http, COMPLETIONS, body))} <= {"red", "green"}
    assert {text for text, _ in put_together(list(await streamed(http, COMPLETIONS, body)))} <= {"red", "green"}


# Echo and stops ------------------------------------------------------------------------------------------------------


async def test_an_echo_is_the_prompt_and_then_the_text(http: aiohttp.ClientSession) -> None:
    text, ended = await alone(http, COMPLETIONS, NOISE)
    answer, headers = await headed(http, {**NOISE, "echo": True})
    assert (told(answer), headers["x-dragoman-emulated"]) == ([("The quick" + text, ended)], "echo")
    chunks = list(await streamed(http, COMPLETIONS, {**NOISE, "echo": True, "n": 2}))
    whole = told(await post(http, COMPLETIONS, {**NOISE, "n": 2}))
    assert put_together(chunks) == [("The quick" + text, ended) for text, ended in whole]
    only = await post(http, COMPLETIONS, {**NOISE, "echo": True, "max_tokens": 0, "n": 2})
    assert told(only) == [("The quick", "length")] * 2
    assert only["usage"]["estimated"] is True
    error = await refused(http, COMPLETIONS, {**NOISE, "echo": True, "logprobs": 1})
    assert (error["code"], error["param"]) == ("unsupported_parameter", "echo")


LETTERS = 'root ::= "one two three four five six seven eight nine ten"'
SAID: JsonObject = {**NOISE, "guided_grammar": LETTERS, "max_tokens": 200}
NOT_SAID: list[JsonValue] = [f"never{number}" for number in range(20)]


@looped("stream", [False, True])
@looped(
    ("stops", "emulated"),
    [
        (["zwei", " three", "ten"], None),
        ([*NOT_SAID[:15], " three"], None),
        ([*NOT_SAID, " three"], "stop"),
        ([" three", *NOT_SAID], "stop"),
    ],
    ids=["three", "sixteen", "the last of twenty-one", "the first of twenty-one"],
)
async def test_many_stops_end_the_text_as_few_do(
    stream: bool, stops: list[JsonValue], emulated: str | None, http: aiohttp.ClientSession
) -> None:
    body: JsonObject = {**SAID, "stop": stops}
    if stream:
        found = put_together(list(await streamed(http, COMPLETIONS, body)))
    else:
        answer, headers = await headed(http, body)
        found = told(answer)
        assert (emulated is not None) == ("stop" in headers.get("x-dragoman-emulated", "").split(", "))
    assert found == [("one two", "stop")]


@pytest.mark.parametrize("stops", [[" three"], [*NOT_SAID, " three"]])
async def test_a_stop_stays_in_the_text_for_who_wants_it(stops: list[JsonValue], http: aiohttp.ClientSession) -> None:
    body: JsonObject = {**SAID, "stop": stops, "include_stop_str_in_output": True}
    answer, headers = await headed(http, body)
    assert told(answer) == [("one two three", "stop")]
    assert "include_stop_str_in_output" in headers["x-dragoman-emulated"]
    assert put_together(list(await streamed(http, COMPLETIONS, body))) == [("one two three", "stop")]
    missed = await post(http, COMPLETIONS, {**body, "max_tokens": 5})
    assert missed["choices"][0]["finish_reason"] == "length"
    assert "one two three".startswith(text_of(missed["choices"][0]))


async def test_the_engine_generates_no_further_than_to_a_stop_that_the_gateway_found(
    http: aiohttp.ClientSession, engine: Engine
) -> None:
    await engine.quiet()
    before = await engine.generated_tokens()
    endless = 'root ::= "one two three" [a-z]*'
    body: JsonObject = {**NOISE, "guided_grammar": endless, "max_tokens": 3000, **IGNORE_EOS}
    body["stop"] = [*NOT_SAID, "three"]
    assert told(await post(http, COMPLETIONS, body)) == [("one two ", "stop")]
    await engine.quiet()
    assert await engine.generated_tokens() - before < 1500


# The window ----------------------------------------------------------------------------------------------------------

MODELS = pytest.mark.parametrize("model", [KNOWN, UNSAID])
LONG = "x" * 4000


@FORMS
@MODELS
@pytest.mark.parametrize("stream", [False, True])
async def test_what_would_not_fit_is_refused_before_a_token_is_generated(
    path: str, ask: JsonObject, model: str, stream: bool, http: aiohttp.ClientSession, engine: Engine
) -> None:
    size = (await post(http, path, {**ask, "max_tokens": 1}))["usage"]["prompt_tokens"]
    await engine.quiet()
    before = await engine.generated_tokens()
    body: JsonObject = {**ask, "model": model, "max_tokens": WINDOW - size + 1, "stream": stream}
    error = await refused(http, path, {**body, "context_length_exceeded_behavior": "error"})
    assert (error["code"], error["param"]) == ("context_length_exceeded", "prompt")
    assert f"{size} in the prompt" in error["message"]
    assert f"{WINDOW} tokens" in error["message"]
    # OpenAI's rule holds by default too.
    assert await refused(http, path, body) == error
    assert await engine.generated_tokens() == before


@MODELS
async def test_what_fits_exactly_is_answered(model: str, http: aiohttp.ClientSession) -> None:
    counted = (await post(http, COMPLETIONS, {**NOISE, "model": model, "prompt": LONG, "max_tokens": 1}))["usage"]
    room = WINDOW - counted["prompt_tokens"]
    assert 0 < room < 500
    body: JsonObject = {**NOISE, "model": model, "prompt": LONG, "max_tokens": room, **IGNORE_EOS}
    answer = await post(http, COMPLETIONS, {**body, "context_length_exceeded_behavior": "error"})
    assert answer["usage"]["completion_tokens"] == room


@MODELS
@pytest.mark.parametrize("path", [COMPLETIONS, "/inference/v1/completions"])
async def test_what_does_not_fit_is_shortened_for_who_wants(model: str, path: str, http: aiohttp.ClientSession) -> None:
    body: JsonObject = {**NOISE, "model": model, "prompt": LONG, "max_tokens": 500, **IGNORE_EOS}
    if path == COMPLETIONS:
        body["context_length_exceeded_behavior"] = "truncate"
    answer = await post(http, path, body)
    ((_, ended),) = told(answer)
    count = answer["usage"]
    assert (ended, count["total_tokens"]) == ("length", WINDOW)
    assert 0 < count["completion_tokens"] < 500


@MODELS
@pytest.mark.parametrize("behavior", ["truncate", "error"])
async def test_a_prompt_that_fills_the_window_is_an_error_whatever_was_asked(
    model: str, behavior: str, http: aiohttp.ClientSession
) -> None:
    body: JsonObject = {**NOISE, "model": model, "prompt": LONG * 2, "context_length_exceeded_behavior": behavior}
    error = await refused(http, COMPLETIONS, body)
    assert (error["code"], error["param"]) == ("context_length_exceeded", "prompt")
    batch = await refused(http, COMPLETIONS, {**body, "prompt": ["hi", LONG * 2]})
    assert batch["code"] == "context_length_exceeded"
