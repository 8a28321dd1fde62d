"""Regular expressions that are compiled when they are first used: those that read the failures of vendors."""

import re
from collections.abc import Callable
from functools import cached_property
from typing import Generic, TypeVar

T = TypeVar("T", str, bytes)


class LatePattern(Generic[T]):
    """A pattern with the methods of `re.Pattern`. To compile the larger ones takes a few ms each, for which a gateway
    that starts would have to wait."""

    def __init__(self, pattern: T, flags: int = 0) -> None:
        self.pattern: T = pattern
        self._flags = flags

    @cached_property
    def compiled(self) -> re.Pattern[T]:
        """The compiled pattern."""
        return re.compile(self.pattern, self._flags)

    def search(self, text: T) -> re.Match[T] | None:
        """See re.Pattern."""
        return self.compiled.search(text)

    def match(self, text: T) -> re.Match[T] | None:
        """See re.Pattern."""
        return self.compiled.match(text)

    def fullmatch(self, text: T) -> re.Match[T] | None:
        """See re.Pattern."""
        return self.compiled.fullmatch(text)

    def sub(self, replacement: T | Callable[[re.Match[T]], T], text: T) -> T:
        """See re.Pattern."""
        return self.compiled.sub(replacement, text)
