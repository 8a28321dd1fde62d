"""The storage of data that outlives requests, by the operator's settings."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
import pytest_asyncio

from config.sections.server_section import ServerSection
from providers.json_types import JsonObject
from proxy.process.choose_storage import GatewayFeatures, set_up_storage
from proxy.shared_state.redis_sync import SharedState
from proxy.telemetry.metrics import Metrics
from tests.proxy.conversations.test_response_entries import response
from tests.proxy.kit.gateway_rig import Rig, rig
from tests.support.http_scripts import json_answer
from tests.support.openai_wire import chat

pytestmark = pytest.mark.smoke


REDIS = {"redis": "redis://127.0.0.1:1"}


@dataclass
class Kept:
    features: GatewayFeatures
    services: int


@pytest_asyncio.fixture
async def features() -> AsyncIterator[GatewayFeatures]:
    async with rig() as made:
        yield made.features


async def kept(features: GatewayFeatures, **settings: object) -> Kept:
    server = ServerSection.model_validate(settings)
    shared = None if server.shared is None else SharedState(server.shared, lambda cooldowns, now: None)
    services = list(set_up_storage(features, shared, server, Metrics()))
    await asyncio.sleep(0)
    return Kept(features, len(services))


async def test_without_a_word_all_is_kept_in_this_process(features: GatewayFeatures) -> None:
    made = await kept(features)
    assert made.services == 0
    assert not features.reasoning.off
    assert not features.responses.off
    assert features.responses.entries.kept.most == 64 * 2**20
    assert features.reasoning.entries.others is None
    assert features.responses.entries.others is None


async def test_where_processes_share_a_redis_all_is_kept_there_too(features: GatewayFeatures) -> None:
    made = await kept(features, shared=REDIS)
    assert made.services == 4
    assert features.reasoning.entries.others is not None
    assert features.responses.entries.others is not None


async def test_each_may_stay_in_the_process_or_be_off(features: GatewayFeatures) -> None:
    made = await kept(
        features,
        shared=REDIS,
        keep_thinking="process",
        keep_responses={"where": "off", "memory": 1024, "lifetime": 5.0},
    )
    assert made.services == 2
    assert features.reasoning.entries.others is None
    assert (features.reasoning.off, features.responses.off) == (False, True)
    assert features.responses.entries.kept.most == 1024


async def test_the_lifetime_is_the_operator_s(features: GatewayFeatures) -> None:
    await kept(features, keep_responses={"lifetime": 5.0})
    entries = features.responses.entries
    entries.kept.put("a", "k", b"x", 100.0)
    assert entries.kept.take("a", ["k"], 104.0) == {"k": b"x"}
    assert entries.kept.take("a", ["k"], 109.0) == {}


@pytest.mark.parametrize(
    ("settings", "warns"),
    [
        ({}, False),
        ({"workers": 2}, True),
        ({"workers": 2, "shared": REDIS}, False),
        ({"workers": 2, "shared": REDIS, "keep_responses": {"where": "process"}}, True),
    ],
)
async def test_workers_that_do_not_find_each_other_s_responses_say_so_once(
    features: GatewayFeatures, settings: dict[str, object], warns: bool, caplog: pytest.LogCaptureFixture
) -> None:
    await kept(features, **settings)
    for number in range(2):
        assert await features.responses.keep("a", response(f"resp_{number}"))
    assert caplog.text.count("only this worker finds") == warns


@pytest.mark.parametrize("lifetime", ["0s", "31d"])
def test_a_lifetime_is_at_least_a_second_and_at_most_thirty_days(lifetime: str) -> None:
    assert ServerSection.model_validate({"keep_responses": {"lifetime": "30d"}}).keep_responses.lifetime == 30 * 86400.0
    with pytest.raises(ValueError, match="lifetime"):
        ServerSection.model_validate({"keep_responses": {"lifetime": lifetime}})


# The features as hooks ----------------------------------------------------------------------------------------------

TABLE = """
vendors:
  v: {profile: openai_compatible, base_url: "http://127.0.0.1:PORT/v1", api_key: sk-x, allow_private: true}
models: {v/m: {}, v/cached: {cache: {}}}
"""
ASKED: JsonObject = {"temperature": 0, "messages": [{"role": "user", "content": "hi"}]}


@pytest_asyncio.fixture
async def served() -> AsyncIterator[Rig]:
    async with rig(TABLE) as made:
        made.vendor.default = json_answer(200, chat("hello"))
        yield made


async def test_an_ordinary_request_has_no_hooks(served: Rig) -> None:
    assert (await served.post("/v1/chat/completions", {"model": "v/m", **ASKED})).status == 200
    assert [*served.gateway.hooks.values()] == [()]
    assert (len(served.features.responses.entries.kept), len(served.features.cache.kept)) == (0, 0)


async def test_a_response_is_cached_for_a_name_with_a_cache_and_stored_for_an_api_that_refers_to_it(
    served: Rig,
) -> None:
    assert (await served.post("/v1/chat/completions", {"model": "v/cached", **ASKED})).status == 200
    assert (len(served.features.responses.entries.kept), len(served.features.cache.kept)) == (0, 1)
    body: JsonObject = {"model": "v/cached", "temperature": 0, "input": "hi"}
    answer = await served.post("/v1/responses", body)
    assert answer.status == 200
    assert len(served.features.responses.entries.kept) > 0
    assert len(served.features.cache.kept) == 1  # a stored response is private to its client
    assert (await served.get(f"/v1/responses/{answer.json()['id']}")).status == 200
