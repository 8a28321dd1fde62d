"""OpenAI's and Anthropic's SDKs in Python return the same result with and without a receipt at the end of a stream."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import orjson
import pytest
import pytest_asyncio

from providers.json_types import JsonObject
from tests.e2e.agents.environments import sdk_process
from tests.support.environments import LineProcess
from tests.support.gateway import RunningGateway, running_gateway

pytestmark = [pytest.mark.clients, pytest.mark.timeout(300), pytest.mark.asyncio(loop_scope="module")]

TABLE = """\
version: 1
server:
  port: ${PORT}
  admin:
    port: ${ADMIN_PORT}
  receipt: true
defaults: {on_unsupported: drop}
vendors: {mock: {}}
models: {mock/echo: {}}
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningGateway]:
    folder: Path = tmp_path_factory.mktemp("gateway")
    async with running_gateway(TABLE, folder) as running:
        yield running


@pytest.fixture(scope="module")
def agents() -> Iterator[LineProcess]:
    with sdk_process("agents") as process:
        yield process


@pytest.mark.parametrize("client", ["chat", "messages", "responses"])
async def test_the_last_comment_changes_nothing(client: str, gateway: RunningGateway, agents: LineProcess) -> None:
    order: JsonObject = {
        "scenario": "talk",
        "client": client,
        "url": gateway.url,
        "model": "mock/echo",
        "prompt": "Say hi now",
        "stream": True,
        "stored": False,
    }

    async def done(headers: JsonObject) -> JsonObject:
        line = await asyncio.to_thread(agents.exchange, orjson.dumps({**order, "headers": headers}).decode())
        found: JsonObject = orjson.loads(line)
        return found

    without = await done({})
    assert without["error"] is None
    assert await done({"x-dragoman-receipt": "last"}) == without
    refused = (await done({"x-dragoman-receipt": "first"}))["error"]
    assert isinstance(refused, dict)
    assert refused["status"] == 400
