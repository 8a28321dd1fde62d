"""Admission control: decides whether this process accepts another request, and divides its limits fairly among owners.
Owners are teams by name, or clients by address if the configuration has no teams."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Protocol

from proxy.errors import OverloadReason


@dataclass(frozen=True, slots=True)
class AdmissionLimits:
    """The limits at any time: the number of `requests` whose responses have not begun, of `streams` that have begun,
    and the `body_bytes` of both. A stream counts as a request until it begins, so streams may exceed their limit by the
    requests that were admitted before.

    Only received bytes count. An owner may hold all of `body_bytes` while no other owner holds any bytes. The fair
    share is the limit divided by the number of owners that hold bytes. At the limit, an owner above its fair share gets
    no more; an owner below it does, up to twice the limit in total. Requests whose bodies are still arriving have a
    separate limit, as high as `requests`, with the same rule.
    """

    requests: int = 2000
    streams: int = 4000
    body_bytes: int = 256 * 2**20


@dataclass(frozen=True, slots=True)
class ShedRules:
    """From an event loop lag of `lag_from` seconds on, the share `least` of the requests is refused, rising to `most`
    at `lag_to`. From the share `memory_streams` of the memory on, no new stream begins. From `memory_all` on, no new
    request is admitted."""

    lag_from: float = 0.1
    lag_to: float = 0.5
    least: float = 0.1
    most: float = 0.8
    memory_streams: float = 0.85
    memory_all: float = 0.95

    def share(self, lag: float) -> float:
        """Return the share of new requests that is refused at this lag."""
        if lag <= self.lag_from:
            return 0.0
        return min(
            self.most, self.least + (self.most - self.least) * (lag - self.lag_from) / (self.lag_to - self.lag_from)
        )


class Lag(Protocol):
    """The lag of the event loop."""

    @property
    def steady(self) -> float:
        """The lag in seconds that has persisted. A single late iteration does not count."""


class Queue(Protocol):
    """The queue of admitted requests that wait to start."""

    @property
    def too_long(self) -> bool:
        """Whether the queue is too long for another request to join."""


class Memory(Protocol):
    """The memory usage of the process."""

    @property
    def share(self) -> float:
        """The share of the memory limit that is in use."""


@dataclass(slots=True, eq=False)
class FairCounts:
    """The amount of a limited resource that each owner holds."""

    _limit: int
    total: int = 0
    _by_owner: dict[str, int] = field(default_factory=dict)

    def add(self, owner: str, amount: int) -> None:
        """Add to an owner's amount. `amount` may be negative."""
        held = self._by_owner.get(owner, 0) + amount
        if held:
            self._by_owner[owner] = held
        else:
            self._by_owner.pop(owner, None)
        self.total += amount

    def move(self, before: str, owner: str, amount: int) -> None:
        """Move an amount from one owner to another."""
        amounts = self._by_owner
        if left := amounts.get(before, 0) - amount:
            amounts[before] = left
        else:
            amounts.pop(before, None)
        amounts[owner] = amounts.get(owner, 0) + amount

    def fits(self, owner: str) -> bool:
        """Return whether an owner may hold its amount."""
        if self.total <= self._limit:
            return True
        return self.total <= 2 * self._limit and self._by_owner.get(owner, 0) * len(self._by_owner) <= self._limit


@dataclass(slots=True, eq=False)
class Admission:
    """Counts requests against the limits. Each request that is not refused is begun or expected, and ended once.

    `requests` counts requests with complete bodies whose responses have not begun, `streams` counts streams that have
    begun, `bodies` the bytes of their bodies, `arriving` requests with incomplete bodies. `sheds` says whether a
    request has been refused lately. `_draw` returns a random number in [0, 1).
    """

    limits: AdmissionLimits
    _rules: ShedRules
    _lag: Lag
    _queue: Queue
    _memory: Memory
    _draw: Callable[[], float]
    sheds: bool = False
    requests: int = 0
    streams: int = 0
    bodies: FairCounts = field(init=False)
    arriving: FairCounts = field(init=False)
    _refused: bool = False

    def __post_init__(self) -> None:
        self.bodies = FairCounts(self.limits.body_bytes)
        self.arriving = FairCounts(self.limits.requests)

    def refusal(self) -> OverloadReason | None:
        """Return why another request is refused; `None` if it is admitted. Called before its body is read."""
        rules = self._rules
        if self.requests >= self.limits.requests:
            reason = OverloadReason.REQUESTS
        elif self._memory.share >= rules.memory_all:
            reason = OverloadReason.MEMORY
        elif self._queue.too_long:
            reason = OverloadReason.QUEUE
        elif self._lag.steady > rules.lag_from and self._draw() < rules.share(self._lag.steady):
            reason = OverloadReason.LOOP_LAG
        else:
            return None
        self.sheds = self._refused = True
        return reason

    def look(self) -> bool:
        """Set `sheds` to whether a request has been refused since the last call, and return it. Called every second."""
        self.sheds, self._refused = self._refused, False
        return self.sheds

    def refuses_streams(self) -> OverloadReason | None:
        """Return why a request that has begun may not stream; `None` if it may."""
        if self.streams >= self.limits.streams:
            return OverloadReason.STREAMS
        if self._memory.share >= self._rules.memory_streams:
            return OverloadReason.MEMORY
        return None

    def begin(self, length: int) -> "Admitted":
        """Count a request with a complete body of `length` bytes."""
        self.requests += 1
        if length:
            self.bodies.add("", length)
        return Admitted(self, _REQUEST, length)

    def expect(self) -> "Admitted":
        """Count a request with an incomplete body."""
        self.arriving.add("", 1)
        return Admitted(self)


class Stage(Enum):
    """The stage of a request."""

    ARRIVING = auto()
    REQUEST = auto()
    STREAM = auto()


# Looking an enum value up in its class costs 0.1 us more (CPython 3.11), and is needed five times a request.
_ARRIVING, _REQUEST, _STREAM = Stage


@dataclass(slots=True, eq=False)
class Admitted:
    """An admitted request, which is counted until `end`. `starts` says that it need not wait in the queue."""

    _admission: Admission
    stage: Stage = _ARRIVING
    _held: int = 0
    _owner: str = ""
    starts: bool = True

    def assign(self, owner: str) -> OverloadReason | None:
        """Count the request for its owner from now on. Return why it is refused; `None` if it is not. It is refused if
        the owner has too many requests whose bodies are still arriving."""
        admission, before, self._owner = self._admission, self._owner, owner
        if self._held:
            admission.bodies.move(before, owner, self._held)
        if self.stage is not _ARRIVING:
            return None
        admission.arriving.move(before, owner, 1)
        return None if admission.arriving.fits(owner) else OverloadReason.REQUESTS

    def hold_body(self, length: int) -> bool:
        """Count the received bytes of the body. Return whether all bodies together are within the limit."""
        grown = length - self._held
        if grown <= 0:
            return True
        bodies = self._admission.bodies
        bodies.add(self._owner, grown)
        self._held = length
        return length == bodies.total or bodies.fits(self._owner)

    def hold_more(self, length: int) -> bool:
        """Count bytes that the request needs besides its body. Return whether all bodies together are within the
        limit."""
        return self.hold_body(self._held + length)

    def hold_whole(self, length: int) -> OverloadReason | None:
        """Count the bytes of a complete body, and the request as complete. Return why it is refused; `None` if it is
        not."""
        if not self.hold_body(length):
            return OverloadReason.BODY_BYTES
        return self.complete() if self.stage is _ARRIVING else None

    def complete(self) -> OverloadReason | None:
        """Count the request as complete. Return why it is refused; `None` if it is not."""
        if self.stage is not _ARRIVING:
            return None
        admission = self._admission
        admission.arriving.add(self._owner, -1)
        admission.requests += 1
        self.stage = _REQUEST
        return OverloadReason.REQUESTS if admission.requests > admission.limits.requests else None

    def commit(self) -> None:
        """Count the request as a stream that has begun."""
        self.stage = _STREAM
        self._admission.requests -= 1
        self._admission.streams += 1

    def end(self) -> None:
        """Stop counting the request."""
        admission = self._admission
        if self._held:
            admission.bodies.add(self._owner, -self._held)
        if self.stage is _REQUEST:
            admission.requests -= 1
        elif self.stage is _STREAM:
            admission.streams -= 1
        else:
            admission.arriving.add(self._owner, -1)
