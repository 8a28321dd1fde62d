"""Finds the model that a name refers to, among models that each have patterns of their names.

The patterns are the patterns of genai-prices 0.2.3: `equals`, `starts_with`, `ends_with`, `contains` and `regex`, one
of which must match, and `all`, a list of patterns all of which must match. The first model that matches is the result.
"""

import re
from collections.abc import Callable, Mapping, Sequence

from providers.json_types import JsonValue

_Test = Callable[[str], bool]


class ModelNames:
    """The patterns of a vendor's models, by their positions in the list. Names are in lower case."""

    def __init__(self, patterns: Sequence[JsonValue]) -> None:
        self._position_by_name: dict[str, int] = {}
        self._tests: list[tuple[int, _Test]] = []
        for position, pattern in enumerate(patterns):
            patterns_of_model = pattern if isinstance(pattern, dict) else {}
            for name in _texts(patterns_of_model.get("equals")):
                self._position_by_name.setdefault(name, position)
            if others := {key: value for key, value in patterns_of_model.items() if key != "equals"}:
                self._tests.append((position, _any_of(others)))

    def find(self, name: str) -> int | None:
        """Return the position of the first model that matches, otherwise `None`. A date without hyphens (`-20251211`)
        also matches a date with hyphens."""
        position = self._find(name)
        dated = _COMPACT_DATE.sub(r"-\1-\2-\3", name) if position is None else name
        return position if dated == name else self._find(dated)

    def _find(self, name: str) -> int | None:
        equal = self._position_by_name.get(name)
        for position, test in self._tests:
            if equal is not None and equal < position:
                return equal
            if test(name):
                return position
        return equal


_COMPACT_DATE = re.compile(r"-(20\d{2})(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])(?=-|:|$)")


def _any_of(pattern: Mapping[str, JsonValue]) -> _Test:
    """Return a function that returns whether any pattern of a mapping matches a name."""
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
