"""The cached responses and the requests in flight, which all requests share.

Responses that were read last stay decoded: neither their seal nor their JSON is read again. A decoded response is found
by the identity of its entry, so that it goes unseen once the entry changes or is evicted.
"""

import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from providers.frozen_record import record
from providers.target import Target
from proxy.conversations.owner_memory import OwnerMemory
from proxy.conversations.stored_entries import StoredEntries
from proxy.off_loop.request_threads import RequestThreads
from proxy.request_outcomes import CacheUse
from proxy.response_cache.coalescing import CoalescedRequests
from proxy.response_cache.packed_response import CachedResponse
from proxy.routing.route_settings import CacheRules
from proxy.telemetry.metrics import Metrics

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


ANSWER_BYTES: Final = 64 * 1024 * 1024
ANSWER_SECONDS: Final = 2 * 86400.0
"""What all answers may take in one process, and how long each is kept after it was made or last used at most: as long
as `ttl` and `stale` can be together."""


@record(eq=False)
class FoundResponse:
    """A kept answer, the deployment that gave it, its age in seconds, and how it is used."""

    answer: CachedResponse
    target: Target
    use: CacheUse


class ResponseStore:
    """The kept answers of this process, and of others where they are shared. `now` is the event loop's clock, `wall`
    tells unix seconds. `here` and `there` have the same bytes of this process; `there` also has others'."""

    def __init__(
        self, now: Callable[[], float], metrics: Metrics, threads: RequestThreads, wall: Callable[[], float] = time.time
    ) -> None:
        self.now = now
        self.wall = wall
        self.metrics = metrics
        self.threads = threads
        self.kept = StoredEntries(ANSWER_BYTES, ANSWER_SECONDS)
        self.here = OwnerMemory(now, self.kept)
        self.there = OwnerMemory(now, self.kept)
        self.opened = OpenedResponses()
        self.flights: CoalescedRequests[FoundResponse] = CoalescedRequests()
        self._secret = secrets.token_bytes(32)

    def secret(self, rules: CacheRules) -> bytes:
        """Return what the keys and entries of a name are sealed with."""
        return rules.seal.encode() or self._secret

    def memory(self, rules: CacheRules) -> OwnerMemory:
        """Return where the answers of a name are."""
        return self.there if rules.shared else self.here
