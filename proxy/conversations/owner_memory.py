"""The entries of each owner that outlive a request: in this process, and at others if they are shared."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from proxy.conversations.stored_entries import StoredEntries
from proxy.request_record import NO_TEAM, RequestRecord

WRITE_WAIT: Final = 0.05
"""Seconds for which a response waits until other processes can know its entries: its client's next request may come
to any of them at once."""

DELETE_WAIT: Final = 1.5
"""Seconds for which the response to a deletion waits until it is known everywhere."""


class OtherProcesses(Protocol):
    """Entries that this process shares with others."""

    def put(self, owner: str, entries: Mapping[str, bytes]) -> "asyncio.Future[bool] | None":
        """Write entries soon, and return a future of whether they were; `None` if they are not written. One without
        data stands for one that was deleted."""

    async def take(self, owner: str, wanted: Sequence[str], held: Sequence[str] = ()) -> dict[str, bytes] | None:
        """Return the entries of the wanted keys that are there, and the ones held here that were deleted, without data;
        `None` if that cannot be found out in a short time."""


@dataclass(frozen=True, slots=True)
class FoundEntries:
    """The entries found by their keys. `certain` is set if the absent ones are nowhere."""

    entries: Mapping[str, bytes]
    certain: bool = True


@dataclass(slots=True, eq=False)
class OwnerMemory:
    """Entries of owners, each of which finds its own alone. `now` returns seconds."""

    now: Callable[[], float]
    kept: StoredEntries
    others: OtherProcesses | None = None

    def may_know_any(self, owner: str) -> bool:
        """Return whether an owner may have entries, here or at other processes."""
        return self.others is not None or self.kept.has_any_of(owner)

    def put(self, owner: str, entries: Mapping[str, bytes]) -> "asyncio.Future[bool] | None":
        """Store entries, and return a future of whether other processes know them; `None` if they will not."""
        now = self.now()
        for key, data in entries.items():
            self.kept.put(owner, key, data, now)
        return None if self.others is None else self.others.put(owner, entries)

    async def put_and_wait(self, owner: str, entries: Mapping[str, bytes]) -> None:
        """Keep entries, and wait briefly until other processes know them."""
        if (written := self.put(owner, entries)) is not None:
            await asyncio.wait((written,), timeout=WRITE_WAIT)

    async def find(self, owner: str, keys: Iterable[str]) -> dict[str, bytes]:
        """Return the known entries of these keys; only keys without an entry here are looked up at other processes."""
        keys = list(keys)
        found = self.kept.take(owner, keys, self.now())
        if self.others is not None and (unknown := [key for key in keys if key not in found]):
            found |= self._adopt(owner, await self.others.take(owner, unknown) or {})
        return found

    async def find_undeleted(self, owner: str, keys: Iterable[str]) -> FoundEntries:
        """Return the known entries of these keys. An entry that another process deleted is gone here too, as long as
        that can be found out in a short time."""
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
        """Forget an entry everywhere. Return whether that is certain."""
        self.kept.drop(owner, key)
        if self.others is None:
            return True
        written = self.others.put(owner, {key: b""})
        if written is None:
            return False
        await asyncio.wait((written,), timeout=DELETE_WAIT)
        return written.done() and written.result()

    def _adopt(self, owner: str, entries: Mapping[str, bytes]) -> Mapping[str, bytes]:
        """Store the entries of another process here too, and return them."""
        now = self.now()
        for key, data in entries.items():
            if data:
                self.kept.put(owner, key, data, now)
        return entries


def owner_of(record: RequestRecord) -> str:
    """Return the owner of the stored responses and reasoning that a request may use: its team, or the client's address
    if there are no teams."""
    return f"client {record.client}" if record.team == NO_TEAM else f"team {record.team}"
