"""How limits were divided among processes, in a file: a process that starts while whoever counts is away goes on from
there. Both functions block; they are called in a thread.
"""

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

MOST_BYTES: Final = 16 * 1024 * 1024
"""A file above this size was not written here."""

SAVE_EVERY: Final = 60.0
"""Seconds between two writes."""


def write_shares(path: Path, shares: Mapping[str, tuple[float, int]]) -> None:
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


def _entry(value: object) -> tuple[float, int] | None:
    match value:
        case [int() | float() as share, int() as processes] if math.isfinite(share):
            sound = 0 <= share <= 1 and 1 <= processes <= 1_000_000 and not isinstance(processes, bool)
            return (float(share), processes) if sound else None
        case _:
            return None
