"""The exchange: one request of a client and its response, from the listener to the ledger; and the time limits of its
attempts.

Each layer takes the exchange, adds its decisions to it, and passes it on. This package needs the fields that are here;
the gateway adds the client's.
"""

from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

from config.sections.section import built_in
from config.table.table_schema import TimeoutsSection
from providers.frozen_record import frozen
from providers.target import Target, Timeouts
from proxy.deadlines import Deadlines, Phase
from proxy.request_record import RequestRecord
from proxy.routing.request_plan import Plan
from proxy.routing.snapshot import Team


class ClientRequest(Protocol):
    """A client's parsed request for any task."""

    @property
    def timeout(self) -> float | None:
        """The seconds in which the client wants the response."""

    @property
    def passes_unknown(self) -> bool:
        """Whether the client passes fields through that may change the form of the response."""


R = TypeVar("R", bound=ClientRequest, covariant=True)

_ANSWER_TIMEOUT: Final = built_in(TimeoutsSection, "answer", float)

_SHORTENED = frozenset({Phase.TOTAL, Phase.ATTEMPT})
"""Limits that follow the client's deadline if that is shorter than the operator's."""


@dataclass(slots=True, eq=False)
class Exchange(Generic[R]):
    """One request of a client and its response. `record` is its record for observers.

    `total` is its deadline in seconds, which `deadlines` enforces. `hurried` is set if the client made it shorter than
    the operator's, `heavy` if the request is so large that it is prepared in a thread.
    """

    plan: Plan
    team: Team
    request: R
    record: RequestRecord
    deadlines: Deadlines
    total: float
    hurried: bool = False
    heavy: bool = False

    def impatient(self, phase: Phase, elapsed: float, target: Target) -> bool:
        """Return whether an attempt that ended after `elapsed` seconds did so only because of the client's shorter
        deadline, which does not count against the deployment."""
        return self.hurried and phase in _SHORTENED and elapsed < target.timeouts.total

    def branch(self, record: RequestRecord, deadlines: Deadlines) -> "Exchange[R]":
        """Return the exchange as a second attempt has it, with a record and deadlines of its own."""
        return Exchange(self.plan, self.team, self.request, record, deadlines, self.total, self.hurried, self.heavy)


@frozen
class AttemptLimits:
    """Seconds that an attempt may take, and until a non-streaming response begins; `None` if the request's deadline
    alone applies."""

    total: float | None
    answer: float | None


UNLIMITED: Final = AttemptLimits(None, None)
"""Of an attempt for which nothing but the request's deadline holds, as for most."""


def attempt_limits(timeouts: Timeouts, total: float, share: float | None = None) -> AttemptLimits:
    """Return the limits of an attempt of a request with `total` seconds. If another target may be called after it,
    it gets a `share` of the time that is left, in seconds."""
    limit = None if timeouts.total >= total else timeouts.total
    if share is None:
        return UNLIMITED if limit is timeouts.answer is None else AttemptLimits(limit, timeouts.answer)
    # A non-streaming response takes at least as long as its first token.
    answer = max(_ANSWER_TIMEOUT, timeouts.first_event) if timeouts.answer is None else timeouts.answer
    return AttemptLimits(share if limit is None else min(limit, share), answer)
