"""Fixtures for a fake vendor, a Redis server, the gateway's own transport, and the event loops that it runs on."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from proxy.http_client.http_transport import HttpTransport
from tests.proxy.kit.eager_tasks import LOOPS
from tests.proxy.kit.transport_calls import OK, tidy_transport
from tests.support.redis import RealRedis, real_redis
from tests.support.vendor import FakeVendor


@pytest.fixture
async def vendor() -> AsyncIterator[FakeVendor]:
    async with FakeVendor(OK) as running:
        yield running


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RealRedis]:
    """Start a real Redis server."""
    with real_redis(tmp_path) as server:
        yield server


@pytest.fixture
async def transport() -> AsyncIterator[HttpTransport]:
    """Yield the gateway's own transport."""
    async with tidy_transport() as made:
        yield made


@pytest.fixture(params=LOOPS)
def loop(request: pytest.FixtureRequest) -> Iterator[asyncio.AbstractEventLoop]:
    """Yield both event loops that the gateway runs on."""
    made = LOOPS[request.param]()
    made.set_debug(False)
    yield made
    made.run_until_complete(made.shutdown_asyncgens())
    made.close()
