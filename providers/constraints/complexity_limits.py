"""Limits on the cost of one constraint of a client (schema, pattern, choice, grammar) for the gateway.

Every limit is far above the vendors' limits: OpenAI's structured outputs allow 5,000 properties, 10 levels and 120,000
characters of names ("Structured outputs", read in November 2026). A `Budget` counts costs that are visible while a
constraint is read. The process that runs a native validator limits its time and memory for one response
(`CHECK_SECONDS` and the following).
"""

from dataclasses import dataclass
from typing import Final

MAX_SCHEMAS: Final = 20_000
"""The most schemas within the schema of a constraint, and also within all tools of a request together."""

MAX_SPREAD: Final = 1_000_000
"""The most schemas that a validator may evaluate for one value, after every reference has been followed."""

MAX_CHAIN: Final = 200
"""The most schemas in a chain that apply to the same value (`anyOf`, `not`, `$ref`, ...). Each is a frame on the native
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
"""The deepest nesting of a response that is checked. This number times `MAX_CHAIN` is the depth that the native stack
must hold."""

PROGRAM_BYTES: Final = 2 << 20
"""The most bytes of one compiled pattern. The time of compiling and matching is proportional to it."""

BACKTRACKS: Final = 10_000
"""The most steps that a pattern with look-around may backtrack on one text. Patterns without look-around need none."""

CHECK_SECONDS: Final = 0.5
"""The most seconds of CPU time for compiling a constraint, and for checking one response."""

CHECK_SECONDS_PER_MEBIBYTE: Final = 0.25
"""Additional seconds of CPU time for each MiB of the response and of the constraint. Ordinary responses and constraints
need a tenth of this time."""

CHECK_BYTES: Final = 768 << 20
"""The most bytes of address space of the process that compiles and checks."""


class OverBudget(ValueError):
    """A constraint that would cost too much. The message is the rest of a sentence that begins with the name of the
    constraint: "has more than ...", "is ..."."""


@dataclass(slots=True)
class Budget:
    """The amounts that one constraint has used so far. The methods raise OverBudget beyond the limit."""

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
        """Count a bracketed class of `amount` ranges of characters."""
        self.ranges += amount
        if self.ranges > MAX_RANGES:
            raise OverBudget(f"has bracketed classes of more than {MAX_RANGES} ranges of characters together")
