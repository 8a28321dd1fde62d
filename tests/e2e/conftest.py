"""Fixtures of the tests from outside: real parts alone."""

from collections.abc import AsyncIterator

import aiohttp
import pytest

from tests.support.clients import clients
from tests.support.engine import engine
from tests.support.gateway import RunningGateway

__all__ = ["clients", "engine"]


@pytest.fixture
async def http(gateway: RunningGateway) -> AsyncIterator[aiohttp.ClientSession]:
    """Yield a client of the module's gateway."""
    async with aiohttp.ClientSession(gateway.url) as session:
        yield session
