"""How limits were divided among processes, in a file: a process that starts while whoever counts is away goes on from
there, and takes no more than it had. Reading and writing block; they are called in a thread.
"""

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

MOST_BYTES: Final = 16 * 1024 * 1024
"""A file above this size was not written here."""

SAVE_EVERY: Final = 1.0
"""Seconds between two looks at whether a division has changed, at least. What a process was told since then, and is
killed, it does not know when it is replaced."""

REST: Final = 100
"""So many times as long as a look and a write took, nothing is looked at: with very many limits, a hundredth of a
CPU's time at most goes into this."""

STEPS: Final = 1024
"""Shares that are as many whole steps of the limit are alike."""

Shares: TypeAlias = Mapping[str, tuple[float, int]]
"""By the key of a limit, a process's share and how many processes share."""


def write_shares(path: Path, shares: Shares) -> None:
    """Write the divisions, whole or not at all. Raises OSError."""
    before = path.with_name(path.name + ".new")
    before.write_text(json.dumps(shares), encoding="utf-8")
    os.replace(before, path)


def read_shares(path: Path) -> dict[str, tuple[float, int]]:
    """Return the divisions that make sense; none where there is no such file, or it is none of ours. Raises OSError
    for one that cannot be read."""
    try:
        if path.stat().st_size > MOST_BYTES:
            return {}
        read = json.loads(path.read_bytes())
    except (FileNotFoundError, ValueError, RecursionError):
        return {}
    entries = read.items() if isinstance(read, dict) else ()
    return {key: entry for key, value in entries if (entry := _entry(value)) is not None}


def read_or_say(path: Path) -> dict[str, tuple[float, int]]:
    """Do as `read_shares`; a file that cannot be read is said to be none."""
    try:
        return read_shares(path)
    except OSError as error:
        logging.getLogger("dragoman").warning("limits: %s cannot be read: %s", path, error.strerror)
        return {}


@dataclass(slots=True, eq=False)
class ShareFile:
    """Keeps the divisions that `shares` returns, which is called in a thread, in a file."""

    path: Path
    shares: Callable[[], Shares]
    _written: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    _said: str = ""

    async def keep(self) -> None:
        """Write the divisions when they have changed, for ever."""
        took = 0.0
        while True:
            await asyncio.sleep(max(SAVE_EVERY, REST * took))
            took = await asyncio.to_thread(self.save)

    def save(self) -> float:
        """Write the divisions if they have changed, and return how many seconds of CPU that took. Blocks."""
        begin = time.thread_time()
        shares = self.shares()
        steps = {key: (int(share * STEPS), processes) for key, (share, processes) in shares.items()}
        if steps != self._written:
            try:
                self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)  # no row may have been written yet
                write_shares(self.path, shares)
                self._written = steps
            except OSError as error:
                if self._said != (said := error.strerror or "failed"):
                    self._said = said
                    logging.getLogger("dragoman").warning("limits: %s cannot be written: %s", self.path, said)
        return time.thread_time() - begin


def _entry(value: object) -> tuple[float, int] | None:
    match value:
        case [int() | float() as share, int() as processes] if math.isfinite(share):
            sound = 0 <= share <= 1 and 1 <= processes <= 1_000_000 and not isinstance(processes, bool)
            return (float(share), processes) if sound else None
        case _:
            return None
