"""Operators of a gateway without an admin token and of one with it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.proxy.admin.operators import TABLE, WITH_TOKEN, Operator, up


@pytest.fixture
async def operator(tmp_path: Path) -> AsyncIterator[Operator]:
    """Return an operator who needs no token."""
    async with up(TABLE, tmp_path) as made:
        yield made


@pytest.fixture
async def guarded(tmp_path: Path) -> AsyncIterator[Operator]:
    """Return an operator who needs the token."""
    async with up(WITH_TOKEN, tmp_path) as made:
        yield made
