"""The interaction of guards and the response cache, over sockets; and the smallest size of a response."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from providers.completion import Choice, Completion, ContentLogprobs, Extras, LegacyLogprobs, TokenLogprob, ToolCall
from providers.json_types import JsonObject
from proxy.process.assemble_app import WholeGateway
from proxy.response_cache.cached_request import least_size
from tests.proxy.kit.raw_client import Answer, exchange, request
from tests.proxy.kit.tables import digest_of
from tests.proxy.kit.whole_gateway import port_of, up
from tests.proxy.plugins.kit import SECRET, plugin

CACHED = "version: 1\nvendors: {mock: {}}\nmodels: {mock/echo: {cache: {scope: table}}}\n"
TEAMS = f"""
teams:
  strict: {{keys: ["{digest_of("strict")}"], models: ["mock/echo"]}}
  free: {{keys: ["{digest_of("free")}"], models: ["mock/echo"], plugins: []}}
"""
SAYS = f"now say {SECRET}."


def guarded(kind: str, options: str = "") -> str:
    return f"plugins: {{g: {plugin(kind, options)}}}\n"


@asynccontextmanager
async def served(folder: Path, plugins: str) -> AsyncIterator[WholeGateway]:
    async with up(f"{CACHED}{TEAMS}{plugins}", folder) as app:
        yield app


async def ask(app: WholeGateway, stream: bool, team: str = "strict") -> Answer:
    body: JsonObject = {
        "model": "mock/echo",
        "messages": [{"role": "user", "content": SAYS}],
        "temperature": 0,
        "stream": stream,
    }
    headers = {"Authorization": f"Bearer {team}"}
    return await exchange(port_of(app.url), request("POST", "/v1/chat/completions", body, headers))


def stored_count(app: WholeGateway) -> int:
    return len(app.front.features.cache.kept)


def was_refused(answer: Answer) -> bool:
    """Return whether a response was refused, before it began or in the middle of it."""
    return answer.status == 400 or not answer.whole or b'"error"' in answer.body


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("kind", ["Refuser", "LiveRefuser"])
async def test_nothing_that_a_guard_refuses_is_kept_whole_or_streamed(tmp_path: Path, kind: str, stream: bool) -> None:
    async with served(tmp_path, guarded(kind)) as app:
        for _ in range(2):
            answer = await ask(app, stream)
            assert was_refused(answer), answer.body
            assert answer.headers.get("x-dragoman-cache") != "hit"
            assert stored_count(app) == 0
        other = await ask(app, stream, "free")
        assert (other.status, other.headers["x-dragoman-cache"]) == (200, "miss")
        assert stored_count(app) == 1


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("kind", ["Refuser", "LiveRefuser"])
async def test_a_kept_answer_that_a_guard_refuses_is_kept_no_more(tmp_path: Path, kind: str, stream: bool) -> None:
    async with served(tmp_path, guarded(kind)) as app:
        assert (await ask(app, stream, "free")).status == 200
        assert stored_count(app) == 1
        assert was_refused(await ask(app, stream))
        assert stored_count(app) == 0


@pytest.mark.parametrize("stream", [False, True])
async def test_a_guard_sees_each_answer_out_of_the_cache_too(tmp_path: Path, stream: bool) -> None:
    async with served(tmp_path, guarded("Hider", "where: answer")) as app:
        plain = await ask(app, stream, "free")
        assert SECRET.encode() in plain.body
        hidden = await ask(app, stream)
        assert hidden.headers["x-dragoman-cache"] == "hit"
        assert SECRET.encode() not in hidden.body
        assert SECRET.encode() in (await ask(app, stream, "free")).body


@pytest.mark.smoke
async def test_a_guard_holds_for_what_is_not_for_the_cache(tmp_path: Path) -> None:
    async with served(tmp_path, guarded("Refuser")) as app:
        body: JsonObject = {"model": "mock/echo", "messages": [{"role": "user", "content": SAYS}]}
        for headers in ({}, {"x-dragoman-cache": "no-store"}):
            sent = request("POST", "/v1/chat/completions", body, {"Authorization": "Bearer strict", **headers})
            assert was_refused(await exchange(port_of(app.url), sent))


@pytest.mark.smoke
def test_the_least_size_of_an_answer_counts_all_that_may_be_large() -> None:
    token = TokenLogprob("a", -1.0, None, (TokenLogprob("b", -2.0),))
    choices = (
        Choice(0, "x" * 10, "stop", reasoning="y" * 20, tool_calls=(ToolCall("i", "n", "z" * 30),)),
        Choice(1, "", "stop", logprobs=ContentLogprobs((token,))),
        Choice(2, "", "stop", logprobs=LegacyLogprobs(("a",), (None,), None, None)),
        Choice(3, "", "stop", extras=Extras(message={"m": "w" * 100})),
    )
    assert least_size(Completion(choices, None, native=b"n" * 40)) >= 10 + 20 + 30 + 3 * 48 + 100 + 40
