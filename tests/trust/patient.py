"""The rig of the faults without the limits that a busy machine could reach, for figures that count. Never a figure."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final
from unittest.mock import patch

from tests.faults.rig import COUNTED, TABLE, Rig, rig

SLOW: Final = re.sub(r"timeouts: {.*}", "timeouts: {connect: 5m, first_event: 5m, idle: 5m, total: 10m}", TABLE)

PATIENT: Final = replace(
    COUNTED,
    health=replace(COUNTED.health, failures=10**9, window_least=10**9),
    retries=replace(COUNTED.retries, least=1e9),
)
"""A deployment that fails every request is asked all the same, and every retry is paid for."""


@asynccontextmanager
async def patient_rig(folder: Path) -> AsyncIterator[Rig]:
    """A rig that asks for streams, for as long as the block."""
    with patch("tests.faults.rig.COUNTED", PATIENT):
        async with rig(folder, stream=True, table=SLOW) as made:
            yield made
