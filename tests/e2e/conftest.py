"""Fixtures of the tests from outside, with real components only."""

from collections.abc import AsyncIterator, Callable

import aiohttp
import pytest

from tests.e2e.kit import Sdks
from tests.support.clients import Client, clients
from tests.support.engine import engine
from tests.support.gateway import RunningGateway

__all__ = ["clients", "engine"]


@pytest.fixture
async def http(gateway: RunningGateway) -> AsyncIterator[aiohttp.ClientSession]:
    """Yield a client of the module's gateway."""
    async with aiohttp.ClientSession(gateway.url) as session:
        yield session


@pytest.fixture
def sdks(clients: Callable[[str], Client], gateway: RunningGateway) -> Sdks:
    """The vendors' SDKs as clients of the module's gateway."""
    return Sdks(clients, gateway)
