"""The scoring endpoint's numbers are the engine's own, in the classic shape, and equal requests get equal numbers."""

import math
from collections.abc import AsyncIterator, Sequence
from typing import Any

import aiohttp
import pytest

from providers.json_types import JsonObject, JsonValue
from tests.support.engine import Engine, client_of
from tests.support.looped import looped
from tests.support.scoring_engine import ONLY, running_scorer, tokens_of

pytestmark = pytest.mark.engine

FOX = "The quick brown fox"


@pytest.fixture
async def http(engine: Engine) -> AsyncIterator[aiohttp.ClientSession]:
    async with running_scorer(engine) as url, aiohttp.ClientSession(url) as session:
        yield session


async def completion(
    http: aiohttp.ClientSession, prompt: Sequence[str | list[int]] | str, **more: JsonValue
) -> dict[str, Any]:  # Any: a response from the wire
    async with http.post("/v1/completions", json={"model": "m", "prompt": prompt, **ONLY, **more}) as answer:
        body: dict[str, Any] = await answer.json()
    return body


async def test_each_prompt_gets_arrays_of_its_tokens_and_one_more(engine: Engine, http: aiohttp.ClientSession) -> None:
    async with client_of(engine.base_url) as direct:
        prompts = [await tokens_of(direct, text) for text in (FOX, "東京")]
    answer = await completion(http, prompts)
    assert [choice["index"] for choice in answer["choices"]] == [0, 1]
    for prompt, choice in zip(prompts, answer["choices"], strict=True):
        arrays = choice["logprobs"]
        assert {len(array) for array in arrays.values()} == {len(prompt) + 1}
        assert (arrays["token_logprobs"][0], arrays["top_logprobs"][0]) == (None, None)
        assert all(number < 0 for number in arrays["token_logprobs"][1:])
        assert "".join(arrays["tokens"]) == choice["text"]
        assert [choice["text"][at:] for at in arrays["text_offset"]][-1] == arrays["tokens"][-1]
    read = sum(map(len, prompts))
    assert answer["usage"] == {"prompt_tokens": read, "completion_tokens": 2, "total_tokens": read + 2}


async def test_a_token_of_the_prompt_has_the_probability_the_engine_generates_it_with(
    engine: Engine, http: aiohttp.ClientSession
) -> None:
    ask: JsonObject = {"prompt": "O", "max_tokens": 1, "temperature": 0, "logprobs": 1}
    async with (
        client_of(engine.base_url) as direct,
        direct.post("/v1/completions", json=ask) as response,
    ):
        (generated,) = (await response.json())["choices"][0]["logprobs"]["content"]
    answer = await completion(http, "O" + generated["token"])
    arrays = answer["choices"][0]["logprobs"]
    assert arrays["tokens"][:2] == ["O", generated["token"]]
    assert math.isclose(arrays["token_logprobs"][1], generated["logprob"], abs_tol=1e-6)


async def test_equal_requests_get_equal_numbers(http: aiohttp.ClientSession) -> None:
    assert await completion(http, [FOX, "O gat"]) == await completion(http, [FOX, "O gat"])


@looped(
    ("more", "named"),
    [({"max_tokens": 2}, "max_tokens"), ({"echo": False}, "echo"), ({"logprobs": None}, "logprobs"), ({"n": 1}, "n")],
    ids=["max_tokens", "echo", "logprobs", "n"],
)
async def test_what_it_does_not_compute_it_refuses_by_name(
    http: aiohttp.ClientSession, more: dict[str, JsonValue], named: str
) -> None:
    answer = await completion(http, FOX, **more)
    assert answer["error"]["message"] == f"not what this endpoint computes: ['{named}']"
