"""Whether this process takes on another request. Never knows what a request asks for, nor who sends it."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
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
    on its way to become a stream counts as a request, so streams may pass their lid by what was let in as requests."""

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


class Admission:
    """The counts under the lids. Each request that was not refused is begun, and ended once.

    `requests` are those before their commit point, `streams` the committed ones, `body_bytes` what both hold of bodies.
    `sheds` says whether a request has been refused lately.
    """

    def __init__(
        self, lids: Lids, rules: ShedRules, lag: Lag, line: Line, memory: Memory, draw: Callable[[], float]
    ) -> None:
        self.lids = lids
        self.sheds = False
        self.requests = 0
        self.streams = 0
        self.body_bytes = 0
        self._rules = rules
        self._lag = lag
        self._line = line
        self._refused = False
        self._memory = memory
        self._draw = draw

    def refusal(self, length: int) -> Reason | None:
        """Why a request whose body is that long is refused, or None. Asked before the body is read."""
        lids, rules = self.lids, self._rules
        if self.requests >= lids.requests:
            reason = Reason.REQUESTS
        elif self.body_bytes and self.body_bytes + length > lids.body_bytes:
            reason = Reason.BODY_BYTES
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
        """Count a request whose body is that long in."""
        return Admitted(self, length)


class Admitted:
    """A request under the lids, until `end`."""

    __slots__ = ("_admission", "_committed", "_held")

    def __init__(self, admission: Admission, length: int) -> None:
        self._admission = admission
        self._held = length
        self._committed = False
        admission.requests += 1
        admission.body_bytes += length

    def holds(self, length: int) -> bool:
        """So much of the body has come, which of a chunked one nobody announced. False where that is too much together
        with the others."""
        admission = self._admission
        if length <= self._held:
            return True
        admission.body_bytes += length - self._held
        self._held = length
        return length == admission.body_bytes or admission.body_bytes <= admission.lids.body_bytes

    def commit(self) -> None:
        """Its stream begins."""
        self._committed = True
        self._admission.requests -= 1
        self._admission.streams += 1

    def end(self) -> None:
        """It is over."""
        self._admission.body_bytes -= self._held
        if self._committed:
            self._admission.streams -= 1
        else:
            self._admission.requests -= 1
