"""Whether this process takes on another request, and whose requests leave room for others'. Never knows what a request
asks for, or what a tenant is: teams have names, and without teams clients have addresses."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, StrEnum, auto
from typing import Protocol


class Reason(StrEnum):
    """Why a request is refused; the value is the `reason` label of the sheds."""

    REQUESTS = "requests"
    STREAMS = "streams"
    BODY_BYTES = "body_bytes"
    QUEUE = "queue"
    LOOP_LAG = "loop_lag"
    MEMORY = "memory"


@dataclass(frozen=True, slots=True)
class Lids:
    """The most at once: requests that have not begun to answer, streams that have, bytes of the bodies of both. What is
    on its way to become a stream counts as a request, so streams may pass their lid by what was let in as requests.

    Only bytes that have arrived count. A tenant may have all of `body_bytes` while no other holds any. Where they are
    full, a tenant with more than its share, the limit divided by the tenants that hold some, gets no more, and one
    with less does, up to twice the limit in all. Requests whose bodies are still arriving count apart, as many as
    `requests`, by the same rule.
    """

    requests: int = 2000
    streams: int = 4000
    body_bytes: int = 256 * 2**20


@dataclass(frozen=True, slots=True)
class ShedRules:
    """From a loop lag of `lag_from` seconds the share `least` of the requests is refused, rising to `most` at `lag_to`.
    Above the share `memory_streams` of the memory no new stream begins, above `memory_all` nothing does."""

    lag_from: float = 0.1
    lag_to: float = 0.5
    least: float = 0.1
    most: float = 0.8
    memory_streams: float = 0.85
    memory_all: float = 0.95

    def share(self, lag: float) -> float:
        """The share of new requests that is refused at this lag."""
        if lag <= self.lag_from:
            return 0.0
        return min(
            self.most, self.least + (self.most - self.least) * (lag - self.lag_from) / (self.lag_to - self.lag_from)
        )


class Lag(Protocol):
    """How late the event loop is."""

    @property
    def steady(self) -> float:
        """Seconds; what has lasted only a moment does not count."""


class Line(Protocol):
    """Those who have been let in and wait for their turn."""

    @property
    def too_long(self) -> bool:
        """Whether nobody else should join."""


class Memory(Protocol):
    """How full the memory is."""

    @property
    def share(self) -> float:
        """The share of what this process may have that is in use."""


class Held:
    """What each tenant holds of something that has a limit."""

    __slots__ = ("_by", "_limit", "total")

    def __init__(self, limit: int) -> None:
        self.total = 0
        self._limit = limit
        self._by: dict[str, int] = {}

    def add(self, tenant: str, amount: int) -> None:
        """A tenant holds so much more, or less where that is negative."""
        held = self._by.get(tenant, 0) + amount
        if held:
            self._by[tenant] = held
        else:
            self._by.pop(tenant, None)
        self.total += amount

    def fits(self, tenant: str) -> bool:
        """Whether a tenant may hold what it does."""
        if self.total <= self._limit:
            return True
        return self.total <= 2 * self._limit and self._by.get(tenant, 0) * len(self._by) <= self._limit


class Admission:
    """The counts under the lids. Each request that was not refused is begun or expected, and ended once.

    `requests` are those before their commit point whose bodies are whole, `streams` the committed ones, `bodies` the
    bytes that all of them hold, `arriving` the requests whose bodies are still to come. `sheds` says whether a request
    has been refused lately.
    """

    def __init__(
        self, lids: Lids, rules: ShedRules, lag: Lag, line: Line, memory: Memory, draw: Callable[[], float]
    ) -> None:
        self.lids = lids
        self.sheds = False
        self.requests = 0
        self.streams = 0
        self.bodies = Held(lids.body_bytes)
        self.arriving = Held(lids.requests)
        self._rules = rules
        self._lag = lag
        self._line = line
        self._refused = False
        self._memory = memory
        self._draw = draw

    def refusal(self) -> Reason | None:
        """Why another request is refused, or None. Asked before its body is read."""
        lids, rules = self.lids, self._rules
        if self.requests >= lids.requests:
            reason = Reason.REQUESTS
        elif self._memory.share >= rules.memory_all:
            reason = Reason.MEMORY
        elif self._line.too_long:
            reason = Reason.QUEUE
        elif self._lag.steady > rules.lag_from and self._draw() < rules.share(self._lag.steady):
            reason = Reason.LOOP_LAG
        else:
            return None
        self.sheds = self._refused = True
        return reason

    def look(self) -> bool:
        """Called every second; whether anything has been refused since, which is what `sheds` says from then on."""
        self.sheds, self._refused = self._refused, False
        return self.sheds

    def refuses_streams(self) -> Reason | None:
        """Why a request that has been begun may not stream, or None. Asked once it is known that it wants to."""
        if self.streams >= self.lids.streams:
            return Reason.STREAMS
        if self._memory.share >= self._rules.memory_streams:
            return Reason.MEMORY
        return None

    def begin(self, length: int) -> "Admitted":
        """Count a request in of which everything is here, so many bytes of its body included."""
        admitted = Admitted(self)
        self.requests += 1
        admitted.stage = Stage.REQUEST
        admitted.holds(length)
        return admitted

    def expect(self) -> "Admitted":
        """Count a request in whose body is still to come."""
        self.arriving.add("", 1)
        return Admitted(self)


class Stage(Enum):
    """How far a request is."""

    ARRIVING = auto()
    REQUEST = auto()
    STREAM = auto()


class Admitted:
    """A request under the lids, until `end`."""

    __slots__ = ("_admission", "_held", "_tenant", "stage")

    def __init__(self, admission: Admission) -> None:
        self._admission = admission
        self._held = 0
        self._tenant = ""
        self.stage = Stage.ARRIVING

    def belongs(self, tenant: str) -> Reason | None:
        """It is known whose request this is; why that tenant has too many under way that have not arrived, or None."""
        admission, before, self._tenant = self._admission, self._tenant, tenant
        if self._held:
            admission.bodies.add(before, -self._held)
            admission.bodies.add(tenant, self._held)
        if self.stage is not Stage.ARRIVING:
            return None
        admission.arriving.add(before, -1)
        admission.arriving.add(tenant, 1)
        return None if admission.arriving.fits(tenant) else Reason.REQUESTS

    def holds(self, length: int) -> bool:
        """So much of the body has come. False where that is too much together with the others."""
        grown = length - self._held
        if grown <= 0:
            return True
        bodies = self._admission.bodies
        bodies.add(self._tenant, grown)
        self._held = length
        return length == bodies.total or bodies.fits(self._tenant)

    def arrived(self) -> Reason | None:
        """The whole body is here; why the request is refused all the same, or None."""
        admission = self._admission
        if self.stage is not Stage.ARRIVING:
            return None
        admission.arriving.add(self._tenant, -1)
        admission.requests += 1
        self.stage = Stage.REQUEST
        return Reason.REQUESTS if admission.requests > admission.lids.requests else None

    def commit(self) -> None:
        """Its stream begins."""
        self.stage = Stage.STREAM
        self._admission.requests -= 1
        self._admission.streams += 1

    def end(self) -> None:
        """It is over."""
        admission = self._admission
        if self._held:
            admission.bodies.add(self._tenant, -self._held)
        if self.stage is Stage.ARRIVING:
            admission.arriving.add(self._tenant, -1)
        elif self.stage is Stage.STREAM:
            admission.streams -= 1
        else:
            admission.requests -= 1
