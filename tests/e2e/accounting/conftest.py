"""A client for each test, which leaves no connection open."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.e2e.accounting.kit import Client


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    made = Client()
    yield made
    made.leave()
    await asyncio.sleep(0)
