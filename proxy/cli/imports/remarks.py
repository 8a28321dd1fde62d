"""The remarks on files that are imported: all in order, and those by which something is left out of the table."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Literal

from config.problem import Problem

KNOWN_NOUNS: Final = ("model", "team", "key", "virtual key")
"""What is counted, in the order of the summary."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a key is not in the table: `lost` if its effect is, `note` if nothing is lost without it."""

    text: str
    kind: Literal["lost", "note"] = "lost"


@dataclass(slots=True)
class Remarks:
    """All remarks. `settings` are those on keys that the table has not, `wholes` those on whole sections that it has
    not; by any other remark nothing is lost. `counts` has how many of each noun the table has, and of how many; `hints`
    are on no place of the files."""

    problems: list[Problem] = field(default_factory=list)
    settings: set[Problem] = field(default_factory=set)
    wholes: set[Problem] = field(default_factory=set)
    counts: dict[str, tuple[int, int]] = field(default_factory=dict)
    hints: list[str] = field(default_factory=list)

    def count(self, noun: str, taken: int, every: int) -> None:
        """Count things of a noun."""
        had, of = self.counts.get(noun, (0, 0))
        self.counts[noun] = had + taken, of + every

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left out of the table."""
        return not self.settings and not self.wholes and all(had == of for had, of in self.counts.values())

    def summary(self) -> str:
        """Return in one line how much of the files the table has."""
        return ", ".join(self._parts())

    def _parts(self) -> Iterator[str]:
        for noun in sorted(self.counts, key=KNOWN_NOUNS.index):
            had, of = self.counts[noun]
            yield f"{had} of {of} {noun}{'' if of == 1 else 's'}"
        lost = len(self.settings)
        if lost:
            yield f"{lost} setting{'' if lost == 1 else 's'} without counterpart"
        elif self.is_complete:
            yield "nothing left out"
