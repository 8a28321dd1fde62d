"""The remarks on imported files: all of them in order, and the remarks that report a loss."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Literal

from config.problem import Problem

KNOWN_NOUNS: Final = ("model", "team", "key", "virtual key")
"""The nouns that are counted, in the order of the summary."""


@dataclass(frozen=True, slots=True)
class Reason:
    """The reason why a key is missing in the new configuration. `kind` is `lost` if the key's effect is lost, else
    `note`."""

    text: str
    kind: Literal["lost", "note"] = "lost"


@dataclass(slots=True)
class Remarks:
    """All remarks. `settings` report missing keys, `lost_sections` missing sections; the other remarks report no loss.
    `counts` has, by noun, the number that was converted and the total. `hints` have no position in the files."""

    problems: list[Problem] = field(default_factory=list)
    settings: set[Problem] = field(default_factory=set)
    lost_sections: set[Problem] = field(default_factory=set)
    counts: dict[str, tuple[int, int]] = field(default_factory=dict)
    hints: list[str] = field(default_factory=list)

    def count(self, noun: str, taken: int, every: int) -> None:
        """Add to the counts of a noun."""
        had, of = self.counts.get(noun, (0, 0))
        self.counts[noun] = had + taken, of + every

    @property
    def is_complete(self) -> bool:
        """Whether the new configuration is complete."""
        return not self.settings and not self.lost_sections and all(had == of for had, of in self.counts.values())

    def summary(self) -> str:
        """Return a one-line summary of the parts of the files that were converted."""
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
