"""Entries that outlive their requests, such as reasoning and stored responses: bounded in bytes and time, with a fair
share for each owner. They outlive reloads of the configuration too.

Pure: time is an argument, in seconds.
"""

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import Final

OVERHEAD: Final = 512
"""Bytes that an entry takes besides its data."""

Name = tuple[str, str]
"""The owner and the key of an entry. The owner is a team or, if there are no teams, a client's address."""


@dataclass(frozen=True, slots=True)
class StoredEntry:
    """The data of an entry, and the time until which it is stored."""

    data: bytes
    until: float

    @property
    def size(self) -> int:
        """The bytes for which the entry counts."""
        return OVERHEAD + len(self.data)


@dataclass(slots=True, eq=False)
class OwnedKeys:
    """The entries of one owner, the least recently used first, and their bytes together."""

    keys: OrderedDict[str, None] = field(default_factory=OrderedDict)
    size: int = 0


class StoredEntries:
    """The entries of all owners: at most `most` bytes, each for `seconds` after it was put or last used. If there are
    too many bytes, the owner with the most bytes loses its oldest entry. So no owner loses an entry while it has less
    than an equal share. `evicted` counts the lost entries."""

    __slots__ = ("_entries", "_largest", "_owners", "_seconds", "evicted", "most", "size")

    def __init__(self, most: int, seconds: float) -> None:
        self.most = most
        self._seconds = seconds
        # In the order in which they expire. This is no plain dict, because a dict finds its first entry only after
        # passing all deleted ones.
        self._entries: OrderedDict[Name, StoredEntry] = OrderedDict()
        self._owners: dict[str, OwnedKeys] = {}
        self._largest: list[tuple[int, str]] = []  # a heap of owners by size, with outdated sizes too
        self.size = 0
        self.evicted = 0

    def __len__(self) -> int:
        return len(self._entries)

    def has_any_of(self, owner: str) -> bool:
        """Return whether any entry of an owner is stored."""
        return owner in self._owners

    def has_room_for(self, entries: Mapping[str, bytes]) -> bool:
        """Return whether these entries can be stored at the same time, if necessary by evicting all others."""
        return sum([OVERHEAD + len(data) for data in entries.values()]) <= self.most

    def put(self, owner: str, key: str, data: bytes, now: float) -> None:
        """Store an entry. It replaces an entry with the same key."""
        self.forget_ended(now)
        self.drop(owner, key)
        entry = StoredEntry(data, now + self._seconds)
        if entry.size > self.most:
            return
        self._entries[owner, key] = entry
        owned = self._owners.setdefault(owner, OwnedKeys())
        owned.keys[key] = None
        owned.size += entry.size
        self.size += entry.size
        self._note(owner, owned)
        while self.size > self.most:
            self._drop_oldest_of_largest()

    def take(self, owner: str, keys: Iterable[str], now: float) -> dict[str, bytes]:
        """Return the stored entries of these keys, and renew their lifetime."""
        self.forget_ended(now)
        found: dict[str, bytes] = {}
        owned = self._owners.get(owner)
        if owned is None:
            return found
        for key in keys:
            entry = self._entries.pop((owner, key), None)
            if entry is not None:
                found[key] = entry.data
                self._entries[owner, key] = StoredEntry(entry.data, now + self._seconds)
                del owned.keys[key]
                owned.keys[key] = None
        return found

    def forget_ended(self, now: float) -> None:
        """Forget the entries whose time is over."""
        while self._entries:
            owner, key = name = next(iter(self._entries))
            if self._entries[name].until > now:
                return
            self.drop(owner, key)

    def drop(self, owner: str, key: str) -> None:
        """Forget an entry, if there is one."""
        entry = self._entries.pop((owner, key), None)
        if entry is None:
            return
        owned = self._owners[owner]
        del owned.keys[key]
        owned.size -= entry.size
        self.size -= entry.size
        if owned.keys:
            self._note(owner, owned)
        else:
            del self._owners[owner]

    def _note(self, owner: str, owned: OwnedKeys) -> None:
        """Push an owner's size onto the heap, which is rebuilt if most of it is outdated."""
        heappush(self._largest, (-owned.size, owner))
        if len(self._largest) > 64 + 4 * len(self._owners):
            self._largest = [(-each.size, name) for name, each in self._owners.items()]
            heapify(self._largest)

    def _drop_oldest_of_largest(self) -> None:
        while True:
            size, owner = self._largest[0]
            owned = self._owners.get(owner)
            if owned is not None and owned.size == -size:
                self.drop(owner, next(iter(owned.keys)))
                self.evicted += 1
                return
            heappop(self._largest)
