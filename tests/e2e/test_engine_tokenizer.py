"""The llama.cpp server counts the tokens of a prompt before a call, and its count equals the usage of the call."""

from collections.abc import AsyncIterator

import aiohttp
import orjson
import pytest

from providers.dialects.vendor_token_counts import TOKENIZERS, Count
from providers.json_types import JsonObject, JsonValue
from providers.unified_request import Operation
from tests.support.engine import MODEL, Engine
from tests.support.looped import looped

pytestmark = pytest.mark.engine

PATHS = {Operation.COMPLETIONS: "/v1/completions", Operation.CHAT: "/v1/chat/completions"}
TOOL: JsonObject = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}


@pytest.fixture
async def http(engine: Engine) -> AsyncIterator[aiohttp.ClientSession]:
    """A client of the engine, with a connection for each request: the engine closes them without notice."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True)) as session:
        yield session


async def counted(http: aiohttp.ClientSession, engine: Engine, operation: Operation, body: JsonObject) -> Count:
    counting = TOKENIZERS["llamacpp"](body, operation, f"{engine.base_url}/v1", MODEL)
    while (question := counting.next()) is not None:
        async with http.request(question.method, question.url, data=question.body or None) as answer:
            counting.answer(answer.status, await answer.read())
    return counting.count


def talk(*contents: JsonValue, **more: JsonValue) -> JsonObject:
    return {"messages": [{"role": "user", "content": content} for content in contents], **more}


@looped(
    ("operation", "body"),
    [
        (Operation.COMPLETIONS, {"prompt": "The quick"}),
        (Operation.COMPLETIONS, {"prompt": ["<s>Grüße</s> \n"]}),
        (Operation.COMPLETIONS, {"prompt": [3, 2, 1, 0]}),
        (Operation.CHAT, talk("The quick")),
        (Operation.CHAT, talk("one", [{"type": "text", "text": "<s>two"}])),
        (Operation.CHAT, talk("with a tool", tools=[TOOL], temperature=0, stream=True)),
    ],
)
async def test_the_count_is_what_the_call_reports(
    operation: Operation, body: JsonObject, http: aiohttp.ClientSession, engine: Engine
) -> None:
    body = {"model": MODEL, "max_tokens": 1, **body}
    found = await counted(http, engine, operation, body)
    assert found.window == 4096
    async with http.post(engine.base_url + PATHS[operation], json={**body, "stream": False}) as answer:
        usage = orjson.loads(await answer.read())["usage"]
    assert found.tokens == usage["prompt_tokens"]
