"""The fault rig without the limits that a busy machine could reach, for figures that count."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final
from unittest.mock import patch

from tests.faults.fault_rig import COUNTED, TABLE, Rig, rig

SLOW: Final = re.sub(r"timeouts: {.*}", "timeouts: {connect: 5m, first_event: 5m, idle: 5m, total: 10m}", TABLE)

UNLIMITED: Final = replace(
    COUNTED,
    health=replace(COUNTED.health, failures=10**9, window_least=10**9),
    retries=replace(COUNTED.retries, budget=replace(COUNTED.retries.budget, least=1e9)),
)
"""Rules under which a deployment that fails every request stays closed, and every retry is within the budget."""


@asynccontextmanager
async def unlimited_rig(folder: Path) -> AsyncIterator[Rig]:
    """Run a rig that sends streams, for the duration of the block."""
    with patch("tests.faults.fault_rig.COUNTED", UNLIMITED):
        async with rig(folder, stream=True, table=SLOW) as made:
            yield made
