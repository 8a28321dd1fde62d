"""What all requests share that are answered out of the cache: the kept answers, and the requests under way."""

import secrets
import time
from collections.abc import Callable
from typing import Final

from providers.frozen_record import record
from providers.target import Target
from proxy.conversations.owner_memory import OwnerMemory
from proxy.conversations.stored_entries import StoredEntries
from proxy.off_loop.request_threads import RequestThreads
from proxy.request_outcomes import CacheUse
from proxy.response_cache.coalescing import CoalescedRequests
from proxy.response_cache.opened_responses import OpenedResponses
from proxy.response_cache.packed_response import CachedResponse
from proxy.routing.cache_rules import CacheRules
from proxy.telemetry.metrics import Metrics

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
