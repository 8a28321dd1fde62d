"""Draw the parts of a request's duration from its log line: one bar for each part, in order of time.

The gateway's own work, which happens between all other parts, is drawn last.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

Fields = Mapping[str, object]

PARTS: Final = "parts_ms"
"""The log field with the parts."""

BAR_WIDTH: Final = 40
"""The width in characters of the bar of a whole request."""

MAX_PARTS: Final = 32
_NAME: Final = re.compile(r"[a-z]{1,12}[0-9]{0,3}")


def bars(fields: Fields) -> Iterator[str]:
    """Yield the bars of a request. There are none if its line has no parts."""
    parts = list(_parts(fields.get(PARTS)))
    whole = sum([took for _, took in parts])
    begun = 0.0
    for name, took in parts:
        if not took:
            continue
        before = int(BAR_WIDTH * begun / whole)
        begun += took
        length = max(1, int(BAR_WIDTH * begun / whole) - before)
        bar = (" " * before)[: BAR_WIDTH - 1] + "#" * length
        yield f"{name:<10} {took:>12.2f} ms  |{bar[:BAR_WIDTH]:<{BAR_WIDTH}}|{_failure(fields, name)}"


def _parts(parts: object) -> Iterator[tuple[str, float]]:
    """Yield the parts of a log line, the gateway's own last. The line is untrusted: any program may have written it."""
    if not isinstance(parts, dict):
        return
    found = [(name, took) for name, took in [*parts.items()][:MAX_PARTS] if _is_part(name, took)]
    yield from sorted(found, key=lambda part: part[0] == "gateway")


def _is_part(name: object, took: object) -> bool:
    is_time = isinstance(took, int | float) and 0 <= took < 1e12
    return is_time and isinstance(name, str) and _NAME.fullmatch(name) is not None


def _failure(fields: Fields, part: str) -> str:
    """Return the deployment and the outcome of the attempt that a part measures; an empty text if the part measures no
    attempt."""
    attempts = fields.get("attempts")
    number = part.removeprefix("attempt")
    if not isinstance(attempts, list) or number == part or not number.isdecimal():
        return ""
    place = int(number) - 1
    attempt = attempts[place] if 0 <= place < len(attempts) else None
    return f"  {attempt.get('deployment')} {attempt.get('outcome')}" if isinstance(attempt, dict) else ""
