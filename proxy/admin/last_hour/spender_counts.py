"""What teams, keys or models spent in each of the last sixty minutes: a bounded number by name, the rest as `other`.

A name takes 2 KB as long as it has spent something within the hour. With more than MOST names, those that spent least
are counted as `other` from the next minute on, so that one that begins to spend much is soon named.
"""

from array import array
from collections.abc import Iterator, Mapping, Sequence
from heapq import nlargest
from operator import add
from typing import Final

from proxy.admin.last_hour.hour_figures import MINUTES, Spent
from proxy.request_record import OTHER

MOST: Final = 200
"""Names that are counted apart."""

LEFT: Final = 150
"""Names that stay at the end of a minute if there are too many, so that others may come in."""

_FIELDS: Final = 4
_NOTHING: Final = array("d", bytes(8 * _FIELDS))
_EMPTY: Final = bytes(8 * _FIELDS * MINUTES)


class SpentRing:
    """What one name spent in each minute, in an array that is used again every MINUTES."""

    __slots__ = ("_amounts", "newest")

    def __init__(self, newest: int) -> None:
        self._amounts = array("d", _EMPTY)
        self.newest = newest

    def add(self, minute: int, sums: Sequence[float]) -> None:
        """Add to a minute that is not before the newest one: requests, tokens, cost, and requests of unknown cost."""
        if minute > self.newest:
            self.advance(minute)
        place, amounts = minute % MINUTES * _FIELDS, self._amounts
        amounts[place] += sums[0]
        amounts[place + 1] += sums[1]
        amounts[place + 2] += sums[2]
        amounts[place + 3] += sums[3]

    def advance(self, minute: int) -> None:
        """Let the window end with a minute, if it does not end later."""
        for begun in range(max(self.newest + 1, minute - MINUTES + 1), minute + 1):
            place = begun % MINUTES * _FIELDS
            self._amounts[place : place + _FIELDS] = _NOTHING
        self.newest = max(self.newest, minute)

    def add_all(self, other: "SpentRing") -> None:
        """Add all that another one has counted."""
        newest = max(self.newest, other.newest)
        self.advance(newest)
        other.advance(newest)
        self._amounts = array("d", map(add, self._amounts, other._amounts))

    def copy(self) -> "SpentRing":
        """Return a ring that nobody adds to."""
        copied = SpentRing(self.newest)
        copied._amounts = self._amounts[:]
        return copied

    def total(self) -> Spent:
        """Return what was spent in the window."""
        requests, tokens, cost, unpriced = (sum(self._amounts[number::_FIELDS]) for number in range(_FIELDS))
        return Spent(int(requests), int(tokens), cost, int(unpriced))

    def minutes(self) -> Iterator[tuple[int, Spent]]:
        """Yield each minute of the window in which something was spent."""
        for minute in range(self.newest - MINUTES + 1, self.newest + 1):
            place = minute % MINUTES * _FIELDS
            requests, tokens, cost, unpriced = self._amounts[place : place + _FIELDS]
            if requests:
                yield minute, Spent(int(requests), int(tokens), cost, int(unpriced))


class SpenderCounts:
    """Counts what names spent. To be called on one thread."""

    __slots__ = ("_rings",)

    def __init__(self) -> None:
        self._rings: dict[str, SpentRing] = {}

    def add(self, name: str, minute: int, sums: Sequence[float]) -> None:
        """Add to a name's minute, as `SpentRing.add` does."""
        ring = self._rings.get(name)
        if ring is None:
            known = name if len(self._rings) < MOST else OTHER
            ring = self._rings.setdefault(known, SpentRing(minute))
        ring.add(minute, sums)

    def begin(self, minute: int) -> None:
        """Forget names that spent nothing in the hour which ends with `minute`, and the names of those that spent least
        if there are too many."""
        for name in [name for name, ring in self._rings.items() if ring.newest <= minute - MINUTES]:
            del self._rings[name]
        if len(self._rings) < MOST:
            return
        ranks = {name: ring.total().rank for name, ring in self._rings.items() if name != OTHER}
        named = nlargest(LEFT, ranks, key=ranks.__getitem__)
        rest = [self._rings.pop(name) for name in ranks.keys() - named]
        others = self._rings.setdefault(OTHER, SpentRing(minute))
        for ring in rest:
            others.add_all(ring)

    def taken(self, newest: int) -> Mapping[str, SpentRing]:
        """Return a copy of what each name spent in the hour that ends with `newest`."""
        copies = {name: ring.copy() for name, ring in self._rings.items()}
        for ring in copies.values():
            ring.advance(newest)
        return copies
