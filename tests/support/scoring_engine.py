"""A completions endpoint with `echo` and `logprobs` over the real llama.cpp engine, whose own endpoint ignores `echo`.

Every log probability is the engine's, for one token after the tokens before it.

How the engine is called (xllamacpp 2026.10.11549, tried in November 2026): one generated token with `n_probs` of the
whole vocabulary gives the distribution behind a prompt, before any bias of the sampling. The engine gives no
distribution if the generated token ends within a character. So the sampling is restricted to a token that does not.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import accumulate

import aiohttp
from aiohttp import web
from aiohttp.test_utils import TestServer

from providers.json_types import JsonObject
from tests.support.engine import Engine, client_of

ONLY: JsonObject = {"echo": True, "logprobs": 1, "max_tokens": 1, "temperature": 0}
"""The fields that the endpoint requires: it computes a prompt's own log probabilities and one greedy token, nothing
else."""

MEMBERS = {"model", "prompt", "seed", *ONLY}


@dataclass(frozen=True, slots=True)
class Candidate:
    """A token that may come next. `text` is its own text, which is empty or has replacement characters if the token is
    not UTF-8."""

    text: str
    logprob: float


class Scorer:
    """The computations of the endpoint. One request runs at a time, so that equal requests give equal numbers.

    `vocabulary` is the number of the model's tokens; `safe` is a token whose text is a complete character.
    """

    def __init__(self, http: aiohttp.ClientSession, vocabulary: int, safe: int) -> None:
        self._http = http
        self._vocabulary = vocabulary
        self._safe = safe
        self._turn = asyncio.Lock()

    async def complete(self, request: web.Request) -> web.Response:
        """Serve `POST /v1/completions`. Values other than in `ONLY`, and further fields, are a 400."""
        body = await request.json()
        wrong = {name for name in ONLY if body.get(name) != ONLY[name]} | (set(body) - MEMBERS)
        if wrong:
            return web.json_response(
                {"error": {"message": f"not what this endpoint computes: {sorted(wrong)}"}}, status=400
            )
        asked = body["prompt"]
        separate = asked if isinstance(asked, list) and not isinstance(asked[0], int) else [asked]
        async with self._turn:
            prompts = [await self._tokens(prompt) for prompt in separate]
            choices = [await self._choice(index, prompt) for index, prompt in enumerate(prompts)]
        read = sum(map(len, prompts))
        usage = {"prompt_tokens": read, "completion_tokens": len(prompts), "total_tokens": read + len(prompts)}
        answer = {"id": "cmpl-1", "object": "text_completion", "created": 1, "model": body["model"]}
        return web.json_response({**answer, "choices": choices, "usage": usage})

    async def _tokens(self, prompt: str | list[int]) -> list[int]:
        return prompt if isinstance(prompt, list) else await tokens_of(self._http, prompt)

    async def _choice(self, index: int, prompt: Sequence[int]) -> dict[str, object]:
        """Return the classic arrays for the prompt's tokens and one greedy token. The prompt's first token follows no
        other, so it has no log probability."""
        async with self._http.post("/detokenize", json={"tokens": prompt[:1]}) as answer:
            texts: list[str] = [(await answer.json())["content"]]
        logprobs: list[float | None] = [None]
        tops: list[dict[str, float] | None] = [None]
        for length in range(1, len(prompt) + 1):
            after = await self._after(prompt[:length])
            best = max(after.values(), key=lambda candidate: candidate.logprob)
            chosen = after[prompt[length]] if length < len(prompt) else best
            texts.append(chosen.text)
            logprobs.append(chosen.logprob)
            tops.append({best.text: best.logprob, chosen.text: chosen.logprob})
        offsets = list(accumulate(map(len, texts[:-1]), initial=0))
        arrays = {"tokens": texts, "token_logprobs": logprobs, "top_logprobs": tops, "text_offset": offsets}
        return {"index": index, "text": "".join(texts), "logprobs": arrays, "finish_reason": "length"}

    async def _after(self, prompt: Sequence[int]) -> Mapping[int, Candidate]:
        """Return the engine's distribution of the token after these tokens."""
        ask: JsonObject = {
            "prompt": list(prompt),
            "n_predict": 1,
            "n_probs": self._vocabulary,
            "temperature": 0,
            "cache_prompt": False,
            "logit_bias": [[self._safe, 100]],
        }
        async with self._http.post("/completion", json=ask) as answer:
            (place,) = (await answer.json())["completion_probabilities"]
        entries = place["top_logprobs"]
        return {entry["id"]: Candidate(entry["token"], entry["logprob"]) for entry in entries}


async def tokens_of(http: aiohttp.ClientSession, text: str) -> list[int]:
    """Return the engine's own tokens of a text."""
    async with http.post("/tokenize", json={"content": text}) as answer:
        tokens: list[int] = (await answer.json())["tokens"]
    return tokens


@asynccontextmanager
async def running_scorer(engine: Engine) -> AsyncIterator[str]:
    """Run the endpoint for the duration of the block. Yield its URL without a path: `/v1/completions` is below it.

    It waits until the engine has finished other requests: a batch that includes their tokens might round differently.
    """
    await engine.quiet()
    async with client_of(engine.base_url) as http:
        (safe,) = await tokens_of(http, "a")
        async with http.get("/v1/models") as answer:
            vocabulary = (await answer.json())["data"][0]["meta"]["n_vocab"]
        app = web.Application()
        app.router.add_post("/v1/completions", Scorer(http, vocabulary, safe).complete)
        async with TestServer(app) as server:
            yield str(server.make_url("")).rstrip("/")
