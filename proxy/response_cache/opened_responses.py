"""Kept answers as they were opened last: of those that are asked for often neither the seal nor the JSON is read again.

An answer is found by the very object that its entry is, so that nothing has to be told when an entry changes or goes.
Pure.
"""

from collections import OrderedDict
from typing import Final

from providers.frozen_record import record
from proxy.response_cache.packed_response import CachedResponse

MOST_BYTES: Final = 2 * 1024 * 1024
LARGEST: Final = 64 * 1024
"""Bytes of all entries that are remembered as opened, and of one of them. As Python's values an answer takes up to ten
times as much, where it is a stream of single letters or has log probabilities."""


@record(eq=False)
class OpenedResponse:
    """The entry that was opened, when it was made in unix seconds, and its answer."""

    entry: bytes
    made: float
    answer: CachedResponse


class OpenedResponses:
    """The answers opened last, by key; those not asked for longest go first."""

    __slots__ = ("_by_key", "size")

    def __init__(self) -> None:
        self._by_key: OrderedDict[str, OpenedResponse] = OrderedDict()
        self.size = 0

    def find(self, key: str, entry: bytes) -> OpenedResponse | None:
        """Return what an entry was opened as, if that is known."""
        found = self._by_key.pop(key, None)
        if found is None:
            return None
        if found.entry is not entry:
            self.size -= len(found.entry)
            return None
        self._by_key[key] = found
        return found

    def put(self, key: str, opened: OpenedResponse) -> None:
        """Remember an answer, unless it is large."""
        size = len(opened.entry)
        if size > LARGEST:
            return
        before = self._by_key.pop(key, None)
        self.size += size - (0 if before is None else len(before.entry))
        self._by_key[key] = opened
        while self.size > MOST_BYTES:
            _, oldest = self._by_key.popitem(last=False)
            self.size -= len(oldest.entry)
