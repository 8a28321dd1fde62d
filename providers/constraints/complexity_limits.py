"""Limits on what one constraint of a client (schema, pattern, choice, grammar) may cost the gateway.

Every limit is far above what vendors take: OpenAI's structured outputs allow 5,000 properties, 10 levels and 120,000
characters of names ("Structured outputs", read in November 2026). A `Budget` counts what shows while a constraint is
read; the time and memory that a native validator takes for one answer are limited where it runs (`CHECK_SECONDS` and
the following).
"""

from dataclasses import dataclass
from typing import Final

MAX_SCHEMAS: Final = 20_000
"""The most schemas within schemas, also those of all tools of a request together."""

MAX_SPREAD: Final = 1_000_000
"""The most schemas that a validator may evaluate for one value, once every reference has been followed."""

MAX_CHAIN: Final = 200
"""The most schemas in a chain that apply to the same value (`anyOf`, `not`, `$ref`, ...): each is a frame on the native
stack."""

MAX_PATTERN: Final = 4096
"""The most characters of a pattern."""

MAX_PATTERNS: Final = 16_384
"""The most characters of all the patterns in one constraint."""

MAX_RANGES: Final = 10_000
"""The most ranges of characters in the bracketed classes of one constraint. A `\\d` counts as 61."""

MAX_GROUPS: Final = 64
"""The deepest nesting of groups in a pattern."""

MAX_ANSWER_DEPTH: Final = 200
"""The deepest nesting of an answer that is checked. Times `MAX_CHAIN`, it is what the native stack has to hold."""

PROGRAM_BYTES: Final = 2 << 20
"""The most bytes of one compiled pattern; compiling and matching take time in proportion to it."""

BACKTRACKS: Final = 10_000
"""The most steps that a pattern with look-around may backtrack on one text. Patterns without it need none."""

CHECK_SECONDS: Final = 0.5
"""CPU time for compiling a constraint, and for checking one answer."""

CHECK_SECONDS_PER_MEBIBYTE: Final = 0.25
"""Additional CPU time for each MiB of the answer and of the constraint, of which ordinary ones need a tenth."""

CHECK_BYTES: Final = 768 << 20
"""Address space of the process that compiles and checks."""


class OverBudget(ValueError):
    """A constraint that would cost too much; the message continues its name: "has more than ...", "is ..."."""


@dataclass(slots=True)
class Budget:
    """What one constraint has used so far. Its methods raise OverBudget beyond the limit."""

    schemas: int = 0
    characters: int = 0
    ranges: int = 0

    def count_schema(self) -> None:
        """Count one schema within the constraint."""
        self.schemas += 1
        if self.schemas > MAX_SCHEMAS:
            raise OverBudget(f"brings it to more than {MAX_SCHEMAS} schemas")

    def count_pattern(self, length: int) -> None:
        """Count a pattern of `length` characters."""
        if length > MAX_PATTERN:
            raise OverBudget(f"is longer than {MAX_PATTERN} characters")
        self.characters += length
        if self.characters > MAX_PATTERNS:
            raise OverBudget(f"brings the patterns to more than {MAX_PATTERNS} characters together")

    def count_ranges(self, amount: int) -> None:
        """Count a bracketed class of so many ranges of characters."""
        self.ranges += amount
        if self.ranges > MAX_RANGES:
            raise OverBudget(f"has bracketed classes of more than {MAX_RANGES} ranges of characters together")
