"""Finds the model that a name means, among models that each have patterns of their names.

Patterns are those of genai-prices 0.2.3: `equals`, `starts_with`, `ends_with`, `contains` and `regex`, of which one is
enough, and `all`, a list of patterns of which each must match. The first model that matches is meant.
"""

import re
from collections.abc import Callable, Mapping, Sequence

from providers.json_types import JsonValue

_Test = Callable[[str], bool]


class ModelNames:
    """The patterns of a vendor's models, by their places. Names are in lower case."""

    def __init__(self, patterns: Sequence[JsonValue]) -> None:
        self._equal: dict[str, int] = {}
        self._tests: list[tuple[int, _Test]] = []
        for place, pattern in enumerate(patterns):
            held = pattern if isinstance(pattern, dict) else {}
            for name in _texts(held.get("equals")):
                self._equal.setdefault(name, place)
            if others := {key: value for key, value in held.items() if key != "equals"}:
                self._tests.append((place, _any_of(others)))

    def find(self, name: str) -> int | None:
        """Return the place of the first model that matches; a date without hyphens (`-20251211`) matches one with."""
        place = self._find(name)
        dated = _COMPACT_DATE.sub(r"-\1-\2-\3", name) if place is None else name
        return place if dated == name else self._find(dated)

    def _find(self, name: str) -> int | None:
        equal = self._equal.get(name)
        for place, test in self._tests:
            if equal is not None and equal < place:
                return equal
            if test(name):
                return place
        return equal


_COMPACT_DATE = re.compile(r"-(20\d{2})(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])(?=-|:|$)")


def _any_of(pattern: Mapping[str, JsonValue]) -> _Test:
    """Return whether any pattern of a mapping matches."""
    equal = frozenset(_texts(pattern.get("equals")))
    starts, ends = tuple(_texts(pattern.get("starts_with"))), tuple(_texts(pattern.get("ends_with")))
    contained = _texts(pattern.get("contains"))
    expressions = [re.compile(each) for each in _texts(pattern.get("regex"))]
    every = pattern.get("all")
    groups = [[_any_of(each) for each in every if isinstance(each, dict)]] if isinstance(every, list) else []

    def test(name: str) -> bool:
        return (
            name in equal
            or name.startswith(starts)
            or name.endswith(ends)
            or any(each in name for each in contained)
            or any(each.search(name) for each in expressions)
            or any(all(inner(name) for inner in group) for group in groups)
        )

    return test


def _texts(value: JsonValue) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []
