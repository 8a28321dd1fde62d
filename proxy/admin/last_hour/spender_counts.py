"""The spending of teams, keys or models in each of the last sixty minutes, for a bounded number of names.

A name takes 2 KB as long as it has spent something within the hour. If there are more than MOST names, the names with
the lowest spending are counted as `other` from the next minute on, so that a name that begins to spend much soon gets
its own count.
"""

from array import array
from collections.abc import Iterator, Mapping, Sequence
from heapq import nlargest
from operator import add
from typing import Final

from proxy.admin.last_hour.hour_figures import MINUTES, Spent
from proxy.request_record import OTHER

MOST_NAMES: Final = 200
"""The most names that have their own count."""

NAMES_LEFT: Final = 150
"""Names that remain at the end of a minute if there are too many, so that there is space for new ones."""

_FIELDS: Final = 4
_NOTHING: Final = array("d", bytes(8 * _FIELDS))
_EMPTY: Final = bytes(8 * _FIELDS * MINUTES)


class SpentRing:
    """The spending of one name by minute, in an array whose slots are reused after MINUTES."""

    __slots__ = ("_amounts", "newest")

    def __init__(self, newest: int) -> None:
        self._amounts = array("d", _EMPTY)
        self.newest = newest

    def add(self, minute: int, sums: Sequence[float]) -> None:
        """Add requests, tokens, cost, and requests of unknown cost to a minute that is not before the newest one."""
        if minute > self.newest:
            self.advance(minute)
        start, amounts = minute % MINUTES * _FIELDS, self._amounts
        amounts[start] += sums[0]
        amounts[start + 1] += sums[1]
        amounts[start + 2] += sums[2]
        amounts[start + 3] += sums[3]

    def advance(self, minute: int) -> None:
        """Move the end of the window to a minute, unless it already ends later."""
        for begun in range(max(self.newest + 1, minute - MINUTES + 1), minute + 1):
            start = begun % MINUTES * _FIELDS
            self._amounts[start : start + _FIELDS] = _NOTHING
        self.newest = max(self.newest, minute)

    def add_all(self, other: "SpentRing") -> None:
        """Add all counts of another ring."""
        newest = max(self.newest, other.newest)
        self.advance(newest)
        other.advance(newest)
        self._amounts = array("d", map(add, self._amounts, other._amounts))

    def copy(self) -> "SpentRing":
        """Return a copy that does not change."""
        copied = SpentRing(self.newest)
        copied._amounts = self._amounts[:]
        return copied

    def total(self) -> Spent:
        """Return the spending in the window."""
        requests, tokens, cost, unpriced = (sum(self._amounts[number::_FIELDS]) for number in range(_FIELDS))
        return Spent(int(requests), int(tokens), cost, int(unpriced))

    def minutes(self) -> Iterator[tuple[int, Spent]]:
        """Yield each minute of the window that has requests, with its spending."""
        for minute in range(self.newest - MINUTES + 1, self.newest + 1):
            start = minute % MINUTES * _FIELDS
            requests, tokens, cost, unpriced = self._amounts[start : start + _FIELDS]
            if requests:
                yield minute, Spent(int(requests), int(tokens), cost, int(unpriced))


class SpenderCounts:
    """Counts spending by name. All calls must be on one thread."""

    __slots__ = ("_rings",)

    def __init__(self) -> None:
        self._rings: dict[str, SpentRing] = {}

    def add(self, name: str, minute: int, sums: Sequence[float]) -> None:
        """Add to a minute of a name, like `SpentRing.add`."""
        ring = self._rings.get(name)
        if ring is None:
            known = name if len(self._rings) < MOST_NAMES else OTHER
            ring = self._rings.setdefault(known, SpentRing(minute))
        ring.add(minute, sums)

    def begin(self, minute: int) -> None:
        """Remove the names that spent nothing in the hour that ends with `minute`. If there are too many, also move the
        names with the lowest spending to OTHER."""
        for name in [name for name, ring in self._rings.items() if ring.newest <= minute - MINUTES]:
            del self._rings[name]
        if len(self._rings) < MOST_NAMES:
            return
        ranks = {name: ring.total().rank for name, ring in self._rings.items() if name != OTHER}
        named = nlargest(NAMES_LEFT, ranks, key=ranks.__getitem__)
        rest = [self._rings.pop(name) for name in ranks.keys() - named]
        others = self._rings.setdefault(OTHER, SpentRing(minute))
        for ring in rest:
            others.add_all(ring)

    def taken(self, newest: int) -> Mapping[str, SpentRing]:
        """Return a copy of the spending of each name in the hour that ends with `newest`."""
        copies = {name: ring.copy() for name, ring in self._rings.items()}
        for ring in copies.values():
            ring.advance(newest)
        return copies
