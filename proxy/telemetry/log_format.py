"""The format of every log line: JSON and times."""

import json
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

import orjson

_MILLISECONDS: Final = tuple(f".{number:03d}Z" for number in range(1000))


def json_line(fields: Mapping[str, object]) -> bytes:
    """Return fields as JSON that is one line for every reader: U+2028, U+2029 and non-ASCII controls are escaped."""
    line = ascii_json(fields)
    if line is None:
        line = json.dumps(fields, separators=(",", ":")).encode("ascii")
    return line


def ascii_json(fields: Mapping[str, object]) -> bytes | None:
    """Return fields as JSON; `None` if a text in them is not ASCII."""
    try:
        line = orjson.dumps(fields)
    except orjson.JSONEncodeError:  # a text has lone surrogates: a client sent bytes that are not UTF-8
        return None
    return line.replace(b"\x7f", b"\\u007f") if line.isascii() else None


def timestamp(now: float | None = None) -> str:
    """Return unix seconds, by default the current time, as RFC 3339 in UTC with milliseconds."""
    if now is None:
        now = time.time()
    return _second(int(now)) + _MILLISECONDS[int(now % 1 * 1000)]


@lru_cache(maxsize=2)
def _second(unix: int) -> str:
    return datetime.fromtimestamp(unix, UTC).strftime("%Y-%m-%dT%H:%M:%S")
