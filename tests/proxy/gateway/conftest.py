"""The gateway that most tests of this folder call."""

from collections.abc import AsyncIterator

import pytest

from tests.proxy.kit.gateway_rig import Rig, rig
from tests.support.http_scripts import json_answer
from tests.support.openai_wire import completion


@pytest.fixture
async def served() -> AsyncIterator[Rig]:
    """Yield a gateway whose vendor responds to everything."""
    async with rig() as made:
        made.vendor.default = json_answer(200, completion("hello", "m"))
        yield made
