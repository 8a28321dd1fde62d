"""The cached responses and the requests in flight, which all requests share.

The most recently read responses stay decoded, so their seal and their JSON are not read again. A decoded response is
found by the identity of its entry. So it is not found once the entry has changed or was evicted.
"""

import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from providers.frozen_record import frozen
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
"""The most bytes of all entries that stay decoded, and of one of them. A decoded response takes up to ten times the
bytes of its entry, if it is a stream of single letters or has log probabilities."""


@frozen(eq=False)
class OpenedResponse:
    """An opened entry, the unix time in seconds at which it was made, and its response."""

    entry: bytes
    made: float
    answer: CachedResponse


class OpenedResponses:
    """The most recently opened responses, by key. The least recently used ones are dropped first."""

    __slots__ = ("_by_key", "size")

    def __init__(self) -> None:
        self._by_key: OrderedDict[str, OpenedResponse] = OrderedDict()
        self.size = 0

    def find(self, key: str, entry: bytes) -> OpenedResponse | None:
        """Return the opened response of an entry, if it is known."""
        found = self._by_key.pop(key, None)
        if found is None:
            return None
        if found.entry is not entry:
            self.size -= len(found.entry)
            return None
        self._by_key[key] = found
        return found

    def put(self, key: str, opened: OpenedResponse) -> None:
        """Remember a response, unless it is large."""
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
"""The most bytes of all responses in one process, and the most seconds for which a response is cached after it was made
or last used: the largest sum of `ttl` and `stale`."""


@frozen(eq=False)
class FoundResponse:
    """A cached response, the deployment that gave it, and the use of the cache, with the response's age in seconds."""

    answer: CachedResponse
    target: Target
    use: CacheUse


class ResponseStore:
    """The cached responses of this process, and of others if they are shared. `now` is the event loop's clock, `wall`
    returns unix seconds. `here` and `there` use the same stored entries of this process. `there` also finds entries of
    other processes."""

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
        """Return the secret that seals the keys and entries of a name."""
        return rules.seal.encode() or self._secret

    def memory(self, rules: CacheRules) -> OwnerMemory:
        """Return the memory with the responses of a name."""
        return self.there if rules.shared else self.here
