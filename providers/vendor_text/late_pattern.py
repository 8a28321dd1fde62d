"""Regular expressions that are compiled only once the gateway is ready, or earlier if they are used earlier. The
patterns that read vendors' failures are of this kind."""

import re
from collections.abc import Callable
from functools import cached_property
from typing import Any, Final, Generic, TypeVar
from weakref import WeakSet

T = TypeVar("T", str, bytes)

_PATTERNS: Final["WeakSet[LatePattern[Any]]"] = WeakSet()
"""All late patterns of the process."""


class LatePattern(Generic[T]):
    """A pattern with the methods of `re.Pattern`. Compiling a large pattern takes a few ms, which would delay the start
    of the gateway."""

    def __init__(self, pattern: T, flags: int = 0) -> None:
        self.pattern: T = pattern
        self._flags = flags
        _PATTERNS.add(self)

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
    """Compile the late patterns of all modules that have been imported."""
    for each in list(_PATTERNS):
        each.compiled  # noqa: B018 - the property caches its result
