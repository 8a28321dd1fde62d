"""A real engine that computes embeddings, the llama.cpp server with a tiny random model, behind the gateway."""

from collections.abc import AsyncIterator
from math import isclose, sqrt
from typing import cast

import aiohttp
import pytest
import pytest_asyncio

from providers.json_types import JsonObject
from tests.e2e.kit import post
from tests.support.engine import running_engine
from tests.support.gateway import RunningGateway, running_gateway

pytestmark = pytest.mark.engine


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningGateway]:
    with running_engine(tmp_path_factory.mktemp("embedding"), "embeddings") as engine:
        local = f'{{profile: llamacpp, base_url: "{engine.base_url}/v1", allow_private: true}}'
        table = f"version: 1\nvendors: {{local: {local}}}\nmodels: {{local/tiny: {{}}}}\n"
        async with running_gateway(table, tmp_path_factory.mktemp("gateway")) as running:
            yield running


async def test_a_real_engine_embeds_texts_and_its_own_token_ids(http: aiohttp.ClientSession) -> None:
    body = await post(http, "/v1/embeddings", {"model": "local/tiny", "input": ["The quick", "brown fox"]})
    first, second = [cast("list[float]", entry["embedding"]) for entry in cast("list[JsonObject]", body["data"])]
    assert len(first) == len(second) > 1
    assert isclose(sqrt(sum(value * value for value in first)), 1.0, abs_tol=1e-3)
    assert first != second
    assert cast("dict[str, int]", body["usage"])["prompt_tokens"] > 0
    ids: JsonObject = {"model": "local/tiny", "input": [[1, 2, 3], [4]], "encoding_format": "base64"}
    coded = await post(http, "/v1/embeddings", ids)
    assert [type(entry["embedding"]) for entry in cast("list[JsonObject]", coded["data"])] == [str, str]
