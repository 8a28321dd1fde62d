"""What is kept of turns that called tools, for clients that do not send their thinking back: bounded in bytes and time,
with a fair share for each owner. It outlives the table.

Pure: time is an argument, in seconds.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import Final

BYTES: Final = 64 * 1024 * 1024
"""What all turns together may take in one process."""

SECONDS: Final = 3600.0
"""How long a turn is kept after it was made or last used; a person may have to approve what a tool does."""

OVERHEAD: Final = 512
"""Bytes that a turn takes besides its data."""

Name = tuple[str, str]
"""An owner, which is a team or, where there are no teams, a client's address, and the key of a turn."""


@dataclass(frozen=True, slots=True)
class KeptTurn:
    """The data of a turn, and until when it is kept."""

    data: bytes
    until: float

    @property
    def size(self) -> int:
        """The bytes that it counts."""
        return OVERHEAD + len(self.data)


@dataclass(slots=True, eq=False)
class OwnedTurns:
    """The turns of one owner, the one not used for longest first, and what they take together."""

    keys: dict[str, None] = field(default_factory=dict)
    size: int = 0


class KeptThinking:
    """The turns of all owners. Where there are too many, the owner with the most bytes loses its oldest: nobody loses
    any while it has less than an equal share."""

    __slots__ = ("_largest", "_most", "_owners", "_seconds", "_turns", "size")

    def __init__(self, most: int = BYTES, seconds: float = SECONDS) -> None:
        self._most = most
        self._seconds = seconds
        self._turns: dict[Name, KeptTurn] = {}  # in the order of their ends
        self._owners: dict[str, OwnedTurns] = {}
        self._largest: list[tuple[int, str]] = []  # a heap of owners by size, which also has sizes that were
        self.size = 0

    def __len__(self) -> int:
        return len(self._turns)

    def put(self, owner: str, key: str, data: bytes, now: float) -> None:
        """Keep a turn, in place of one of the same key."""
        self.forget_ended(now)
        self._drop((owner, key))
        turn = KeptTurn(data, now + self._seconds)
        if turn.size > self._most:
            return
        self._turns[owner, key] = turn
        owned = self._owners.setdefault(owner, OwnedTurns())
        owned.keys[key] = None
        owned.size += turn.size
        self.size += turn.size
        self._note(owner, owned)
        while self.size > self._most:
            self._drop_oldest_of_largest()

    def take(self, owner: str, keys: Iterable[str], now: float) -> dict[str, bytes]:
        """Return the turns that are kept of these keys, and keep them on from now."""
        self.forget_ended(now)
        found: dict[str, bytes] = {}
        owned = self._owners.get(owner)
        if owned is None:
            return found
        for key in keys:
            turn = self._turns.pop((owner, key), None)
            if turn is not None:
                found[key] = turn.data
                self._turns[owner, key] = KeptTurn(turn.data, now + self._seconds)
                del owned.keys[key]
                owned.keys[key] = None
        return found

    def forget_ended(self, now: float) -> None:
        """Forget the turns whose time is over."""
        while self._turns:
            name = next(iter(self._turns))
            if self._turns[name].until > now:
                return
            self._drop(name)

    def _drop(self, name: Name) -> None:
        turn = self._turns.pop(name, None)
        if turn is None:
            return
        owner, key = name
        owned = self._owners[owner]
        del owned.keys[key]
        owned.size -= turn.size
        self.size -= turn.size
        if owned.keys:
            self._note(owner, owned)
        else:
            del self._owners[owner]

    def _note(self, owner: str, owned: OwnedTurns) -> None:
        """Put an owner's size into the heap, which is made anew where most of it is of the past."""
        heappush(self._largest, (-owned.size, owner))
        if len(self._largest) > 64 + 4 * len(self._owners):
            self._largest = [(-each.size, name) for name, each in self._owners.items()]
            heapify(self._largest)

    def _drop_oldest_of_largest(self) -> None:
        while True:
            size, owner = self._largest[0]
            owned = self._owners.get(owner)
            if owned is not None and owned.size == -size:
                self._drop((owner, next(iter(owned.keys))))
                return
            heappop(self._largest)
