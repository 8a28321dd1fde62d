"""The entries of each owner that outlive a request. They are stored in this process and, if they are shared, in a
storage that other processes read too."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from proxy.conversations.stored_entries import StoredEntries
from proxy.request_record import NO_TEAM, RequestRecord

WRITE_WAIT: Final = 0.05
"""Seconds that a response waits until other processes can read its entries, because any of these processes may get the
client's next request."""

DELETE_WAIT: Final = 1.5
"""Seconds that the response to a deletion waits until all other processes can know of the deletion."""


class OtherProcesses(Protocol):
    """Entries that this process shares with others."""

    def put(self, owner: str, entries: Mapping[str, bytes]) -> "asyncio.Future[bool] | None":
        """Write entries soon. Return a future of whether they were written, or `None` if they will not be written. An
        entry without data marks a deleted entry."""

    async def take(self, owner: str, wanted: Sequence[str], held: Sequence[str] = ()) -> dict[str, bytes] | None:
        """Return the stored entries of the `wanted` keys. Also return the deleted ones of the `held` keys, without
        data. Return `None` if no reply comes in time."""


@dataclass(frozen=True, slots=True)
class FoundEntries:
    """The entries that were found, by key. `certain` is true if it is certain that the missing entries do not exist."""

    entries: Mapping[str, bytes]
    certain: bool = True


@dataclass(slots=True, eq=False)
class OwnerMemory:
    """The entries of all owners. An owner can find only its own entries. `now` returns seconds."""

    now: Callable[[], float]
    kept: StoredEntries
    others: OtherProcesses | None = None

    def may_know_any(self, owner: str) -> bool:
        """Return whether an owner may have entries, in this process or from other processes."""
        return self.others is not None or self.kept.has_any_of(owner)

    def put(self, owner: str, entries: Mapping[str, bytes]) -> "asyncio.Future[bool] | None":
        """Store entries. Return a future of whether other processes can read them, or `None` if they cannot."""
        now = self.now()
        for key, data in entries.items():
            self.kept.put(owner, key, data, now)
        return None if self.others is None else self.others.put(owner, entries)

    async def put_and_wait(self, owner: str, entries: Mapping[str, bytes]) -> None:
        """Store entries, and wait at most WRITE_WAIT seconds until other processes can read them."""
        if (written := self.put(owner, entries)) is not None:
            await asyncio.wait((written,), timeout=WRITE_WAIT)

    async def find(self, owner: str, keys: Iterable[str]) -> dict[str, bytes]:
        """Return the known entries of these keys. Only keys without an entry in this process are looked up in the
        shared entries."""
        keys = list(keys)
        found = self.kept.take(owner, keys, self.now())
        if self.others is not None and (unknown := [key for key in keys if key not in found]):
            found |= self._adopt(owner, await self.others.take(owner, unknown) or {})
        return found

    async def find_undeleted(self, owner: str, keys: Iterable[str]) -> FoundEntries:
        """Return the known entries of these keys. An entry that another process deleted is deleted in this process too.
        If the shared entries cannot be read in time, such an entry may still be returned."""
        keys = list(keys)
        found = self.kept.take(owner, keys, self.now())
        if self.others is None or not keys:
            return FoundEntries(found)
        unknown = [key for key in keys if key not in found]
        elsewhere = await self.others.take(owner, unknown, list(found))
        if elsewhere is None:
            return FoundEntries(found, certain=not unknown)
        for key in found.keys() & elsewhere.keys():
            self.kept.drop(owner, key)
        found |= self._adopt(owner, elsewhere)
        return FoundEntries({key: data for key, data in found.items() if data})

    async def delete(self, owner: str, key: str) -> bool:
        """Delete an entry in this process and for all other processes. Return whether it is certain that it was
        deleted."""
        self.kept.drop(owner, key)
        if self.others is None:
            return True
        written = self.others.put(owner, {key: b""})
        if written is None:
            return False
        await asyncio.wait((written,), timeout=DELETE_WAIT)
        return written.done() and written.result()

    def _adopt(self, owner: str, entries: Mapping[str, bytes]) -> Mapping[str, bytes]:
        """Store the entries of another process in this process too, and return them."""
        now = self.now()
        for key, data in entries.items():
            if data:
                self.kept.put(owner, key, data, now)
        return entries


def owner_of(record: RequestRecord) -> str:
    """Return the owner of the stored responses and reasoning that a request may use: its team, or the client's address
    if there are no teams."""
    return f"client {record.client}" if record.team == NO_TEAM else f"team {record.team}"
