"""What tests of the door to the vendors share. Never a vendor's script."""

from collections.abc import AsyncIterator

import pytest

from proxy.upstream import HttpTransport
from tests.proxy.door import OK, tidy_transport
from tests.support.vendor import FakeVendor


@pytest.fixture
async def vendor() -> AsyncIterator[FakeVendor]:
    """A vendor that answers everything with OK."""
    async with FakeVendor(OK) as running:
        yield running


@pytest.fixture
async def transport() -> AsyncIterator[HttpTransport]:
    """The gateway's own transport."""
    async with tidy_transport() as made:
        yield made
