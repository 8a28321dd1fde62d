"""What one constraint of a client (schema, pattern, choice, grammar) may cost the gateway. Never reads any of them.

Every limit is far above what vendors take: OpenAI's structured outputs allow 5,000 properties, 10 levels and 120,000
characters of names ("Structured outputs", read in November 2026). Static limits are counted by a `Budget` while a
constraint is read; what they cannot foresee, the time and memory that a native validator takes for a certain answer,
is limited where it runs (`CHECK_SECONDS` and the following).
"""

from dataclasses import dataclass
from typing import Final

MAX_SCHEMAS: Final = 20_000
"""Schemas within schemas, those of all tools of a request together too."""

MAX_SPREAD: Final = 1_000_000
"""Schemas that a validator may come past for one value, once every reference has been followed."""

MAX_CHAIN: Final = 200
"""Schemas in a row that apply to the same value (`anyOf`, `not`, `$ref`, ...): each is a frame on the native stack."""

MAX_PATTERN: Final = 4096
"""Characters of a pattern."""

MAX_PATTERNS: Final = 16_384
"""Characters of all the patterns in one constraint."""

MAX_RANGES: Final = 10_000
"""Ranges of characters that the bracketed classes of one constraint are made of. A `\\d` stands for 61 of them."""

MAX_GROUPS: Final = 64
"""Groups within groups of a pattern."""

MAX_ANSWER_DEPTH: Final = 200
"""Levels of an answer that is held against a schema. Times `MAX_CHAIN`, it is what the native stack has to hold."""

PROGRAM_BYTES: Final = 2 << 20
"""Of one compiled pattern; compiling and matching take time in proportion to it."""

BACKTRACKS: Final = 10_000
"""Steps that a pattern with look-around may take back on one text. Patterns without it need none."""

CHECK_SECONDS: Final = 0.5
"""CPU time for compiling a constraint, and for holding one answer against it."""

CHECK_SECONDS_PER_MEBIBYTE: Final = 0.25
"""More CPU time for each MiB of the answer and of the constraint, of which ordinary ones need a tenth."""

CHECK_BYTES: Final = 768 << 20
"""Address space of the process that does both."""


class OverBudget(ValueError):
    """A constraint that would cost too much; the message continues its name: "has more than ...", "is ..."."""


@dataclass(slots=True)
class Budget:
    """What one constraint has used so far. Each method adds to it. Raises OverBudget beyond the limit."""

    schemas: int = 0
    characters: int = 0
    ranges: int = 0

    def count_schema(self) -> None:
        """One schema within the constraint."""
        self.schemas += 1
        if self.schemas > MAX_SCHEMAS:
            raise OverBudget(f"brings it to more than {MAX_SCHEMAS} schemas")

    def count_pattern(self, length: int) -> None:
        """A pattern of so many characters."""
        if length > MAX_PATTERN:
            raise OverBudget(f"is longer than {MAX_PATTERN} characters")
        self.characters += length
        if self.characters > MAX_PATTERNS:
            raise OverBudget(f"brings the patterns to more than {MAX_PATTERNS} characters together")

    def count_ranges(self, amount: int) -> None:
        """A bracketed class made of so many ranges of characters."""
        self.ranges += amount
        if self.ranges > MAX_RANGES:
            raise OverBudget(f"has bracketed classes of more than {MAX_RANGES} ranges of characters together")
