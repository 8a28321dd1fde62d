"""Where what outlives requests is kept, by the operator's settings."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
import pytest_asyncio

from config.sections.server_section import ServerSection
from proxy.gateway.handle_request import Gateway
from proxy.listener.cors_and_host_names import BrowserGuard
from proxy.process.choose_storage import set_up_storage
from proxy.shared_state.redis_sync import SharedState
from proxy.telemetry.metrics import Metrics
from tests.proxy.conversations.test_response_entries import response
from tests.proxy.kit.gateway_rig import rig

pytestmark = pytest.mark.smoke


REDIS = {"redis": "redis://127.0.0.1:1"}


@dataclass
class Kept:
    gateway: Gateway
    services: int


@pytest_asyncio.fixture
async def gateway() -> AsyncIterator[Gateway]:
    async with rig() as made:
        yield made.gateway


async def kept(gateway: Gateway, **settings: object) -> Kept:
    server = ServerSection.model_validate(settings)
    shared = None if server.shared is None else SharedState(server.shared, lambda cooldowns, now: None)
    services = list(set_up_storage(gateway, BrowserGuard("127.0.0.1", (), ()), shared, server, Metrics()))
    await asyncio.sleep(0)
    return Kept(gateway, len(services))


async def test_without_a_word_all_is_kept_in_this_process(gateway: Gateway) -> None:
    made = await kept(gateway)
    assert made.services == 0
    assert not gateway.turns.off
    assert not gateway.responses.off
    assert gateway.responses.entries.kept.most == 64 * 2**20
    assert gateway.turns.entries.others is None
    assert gateway.responses.entries.others is None


async def test_where_processes_share_a_redis_all_is_kept_there_too(gateway: Gateway) -> None:
    made = await kept(gateway, shared=REDIS)
    assert made.services == 4
    assert gateway.turns.entries.others is not None
    assert gateway.responses.entries.others is not None


async def test_each_may_stay_in_the_process_or_be_off(gateway: Gateway) -> None:
    made = await kept(
        gateway, shared=REDIS, keep_thinking="process", keep_responses={"where": "off", "memory": 1024, "lifetime": 5.0}
    )
    assert made.services == 2
    assert gateway.turns.entries.others is None
    assert (gateway.turns.off, gateway.responses.off) == (False, True)
    assert gateway.responses.entries.kept.most == 1024


async def test_the_lifetime_is_the_operator_s(gateway: Gateway) -> None:
    await kept(gateway, keep_responses={"lifetime": 5.0})
    entries = gateway.responses.entries
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
    gateway: Gateway, settings: dict[str, object], warns: bool, caplog: pytest.LogCaptureFixture
) -> None:
    await kept(gateway, **settings)
    for number in range(2):
        assert await gateway.responses.keep("a", response(f"resp_{number}"))
    assert caplog.text.count("only this worker finds") == warns


@pytest.mark.parametrize("lifetime", ["0s", "31d"])
def test_a_lifetime_is_at_least_a_second_and_at_most_thirty_days(lifetime: str) -> None:
    assert ServerSection.model_validate({"keep_responses": {"lifetime": "30d"}}).keep_responses.lifetime == 30 * 86400.0
    with pytest.raises(ValueError, match="lifetime"):
        ServerSection.model_validate({"keep_responses": {"lifetime": lifetime}})
