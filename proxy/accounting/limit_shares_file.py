"""A file with the division of limits among processes. A process that starts while the coordinator is unreachable uses
the file, so that it takes no larger shares than before. Reading and writing block and are called in a thread."""

import asyncio
import json
import logging
import math
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

MAX_FILE_BYTES: Final = 16 * 1024 * 1024
"""The largest size of a file that this module writes."""

SAVE_EVERY: Final = 1.0
"""The least seconds between two checks for a changed division. If a process is killed, its replacement does not know
the shares that were granted since the last check."""

PAUSE_FACTOR: Final = 100
"""The pause between two checks, as a multiple of the duration of the last check and write. So even very many limits
cost at most a hundredth of a CPU."""

SHARE_STEPS: Final = 1024
"""Shares with the same number of whole steps of the limit count as equal."""

Shares: TypeAlias = Mapping[str, tuple[float, int]]
"""A process's share and the number of processes that share, by the key of the limit."""


def write_shares(path: Path, shares: Shares) -> None:
    """Write the divisions atomically. Raises OSError."""
    before = path.with_name(path.name + ".new")
    before.write_text(json.dumps(shares), encoding="utf-8")
    os.replace(before, path)


def read_shares(path: Path) -> dict[str, tuple[float, int]]:
    """Return the valid divisions. There are none if the file is missing or foreign. Raises OSError if it cannot be
    read."""
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            return {}
        read = json.loads(path.read_bytes())
    except (FileNotFoundError, ValueError, RecursionError):
        return {}
    entries = read.items() if isinstance(read, dict) else ()
    return {key: entry for key, value in entries if (entry := _entry(value)) is not None}


def read_shares_or_warn(path: Path) -> dict[str, tuple[float, int]]:
    """Do as `read_shares`, but log a file that cannot be read and return no divisions."""
    try:
        return read_shares(path)
    except OSError as error:
        logging.getLogger("dragoman").warning("limits: %s cannot be read: %s", path, error.strerror)
        return {}


@dataclass(slots=True, eq=False)
class ShareFile:
    """A file that stores the divisions. `shares` returns them and is called in a thread."""

    path: Path
    shares: Callable[[], Shares]
    _written: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    _logged_error: str = ""

    async def save_changes(self) -> None:
        """Write the divisions whenever they have changed, until cancelled."""
        took = 0.0
        while True:
            await asyncio.sleep(max(SAVE_EVERY, PAUSE_FACTOR * took))
            took = await asyncio.to_thread(self.save)

    def save(self) -> float:
        """Write the divisions if they have changed, and return how many seconds of CPU that took. Blocks."""
        begin = time.thread_time()
        shares = self.shares()
        steps = {key: (int(share * SHARE_STEPS), processes) for key, (share, processes) in shares.items()}
        if steps != self._written:
            try:
                self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)  # The folder may not exist yet.
                write_shares(self.path, shares)
                self._written = steps
            except OSError as error:
                if self._logged_error != (reason := error.strerror or "failed"):
                    self._logged_error = reason
                    logging.getLogger("dragoman").warning("limits: %s cannot be written: %s", self.path, reason)
        return time.thread_time() - begin


def _entry(value: object) -> tuple[float, int] | None:
    match value:
        case [int() | float() as share, int() as processes] if math.isfinite(share):
            valid = 0 <= share <= 1 and 1 <= processes <= 1_000_000 and not isinstance(processes, bool)
            return (float(share), processes) if valid else None
        case _:
            return None
