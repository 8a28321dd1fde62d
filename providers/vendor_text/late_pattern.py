"""Regular expressions that are compiled once the gateway is ready, or when they are first used before that: those that
read the failures of vendors."""

import re
from collections.abc import Callable
from functools import cached_property
from typing import Any, Final, Generic, TypeVar
from weakref import WeakSet

T = TypeVar("T", str, bytes)

_MADE: Final["WeakSet[LatePattern[Any]]"] = WeakSet()
"""All patterns of the process."""


class LatePattern(Generic[T]):
    """A pattern with the methods of `re.Pattern`. To compile the larger ones takes a few ms each, for which a gateway
    that starts would have to wait."""

    def __init__(self, pattern: T, flags: int = 0) -> None:
        self.pattern: T = pattern
        self._flags = flags
        _MADE.add(self)

    @cached_property
    def compiled(self) -> re.Pattern[T]:
        """The compiled pattern."""
        return re.compile(self.pattern, self._flags)

    def search(self, text: T) -> re.Match[T] | None:
        return self.compiled.search(text)

    def match(self, text: T) -> re.Match[T] | None:
        return self.compiled.match(text)

    def fullmatch(self, text: T) -> re.Match[T] | None:
        return self.compiled.fullmatch(text)

    def sub(self, replacement: T | Callable[[re.Match[T]], T], text: T) -> T:
        return self.compiled.sub(replacement, text)


def compile_late_patterns() -> None:
    """Compile the patterns of all modules that have been imported."""
    for each in list(_MADE):
        each.compiled  # noqa: B018 - the property keeps its result
