"""A fake vendor, and the gateway's own transport."""

from collections.abc import AsyncIterator

import pytest

from proxy.http_client.http_transport import HttpTransport
from tests.proxy.kit.transport_calls import OK, tidy_transport
from tests.support.vendor import FakeVendor


@pytest.fixture
async def vendor() -> AsyncIterator[FakeVendor]:
    async with FakeVendor(OK) as running:
        yield running


@pytest.fixture
async def transport() -> AsyncIterator[HttpTransport]:
    """The gateway's own transport."""
    async with tidy_transport() as made:
        yield made
