"""Request coalescing: the first of several equal requests in flight calls a deployment, and the others get its
response.

A follower waits within its own deadline. If the leader fails or its client leaves, one of the followers leads.
"""

import asyncio
from collections import deque
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

A = TypeVar("A")

MOST_FOLLOWERS: Final = 1024
"""The most followers of one leader; further equal requests call a deployment by themselves."""

AT_ONCE: Final = 16
"""The most followers that resume in one iteration of the event loop. Each renders its response, and other requests run
between the iterations."""


@dataclass(slots=True, eq=False)
class CoalescedRequest(Generic[A]):
    """A leading request that others follow. `alone` is set if its response is only for its own client."""

    _flights: "CoalescedRequests[A]"
    _key: str
    alone: bool = False
    _answer: A | None = None
    _over: bool = False
    _waiting: "deque[asyncio.Future[None]]" = field(default_factory=deque)

    @property
    def followed(self) -> bool:
        """Whether another request waits for this one."""
        return bool(self._waiting)

    @property
    def full(self) -> bool:
        """Whether this request has MOST_FOLLOWERS followers."""
        return len(self._waiting) >= MOST_FOLLOWERS

    async def follow(self, most: float | None) -> A | None:
        """Wait for the response for at most `most` seconds. Return `None` if the response does not arrive in time, or
        is only for the leader's client."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        try:
            async with asyncio.timeout(most):
                await waiter
        except TimeoutError:
            return None
        return self._answer

    @property
    def over(self) -> bool:
        """Whether the leading request has ended."""
        return self._over

    def land(self, answer: A | None) -> None:
        """End with a response for the followers; `None` if there is no response for them."""
        self._answer, self.alone = answer, answer is None
        self.close()

    def close(self) -> None:
        """End, if this request has not ended. Without a call of `land` the leader has failed, and the first follower
        that resumes becomes the leader."""
        if not self._over:
            self._over = True
            self._flights.end(self._key, self)
            self._wake()

    def _wake(self) -> None:
        woken = 0
        while self._waiting and woken < AT_ONCE:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                woken += 1
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._wake)


class CoalescedRequests(Generic[A]):
    """The leading requests that others may follow, by key."""

    __slots__ = ("_under_way",)

    def __init__(self) -> None:
        self._under_way: dict[str, CoalescedRequest[A]] = {}

    def __len__(self) -> int:
        return len(self._under_way)

    def of(self, key: str) -> CoalescedRequest[A] | None:
        """Return the leading request with this key, if there is one."""
        return self._under_way.get(key)

    def lead(self, key: str) -> CoalescedRequest[A]:
        """Return a new leading request, which others follow until it ends."""
        self._under_way[key] = flight = CoalescedRequest(self, key)
        return flight

    def end(self, key: str, flight: CoalescedRequest[A]) -> None:
        """Forget a leading request that has ended."""
        if self._under_way.get(key) is flight:
            del self._under_way[key]
