"""The exchange: one request of a client and its response, from the listener to the ledger; and the time limits of its
attempts.

Each layer takes the exchange, adds its decisions to it, and passes it on. This module has the fields that dispatch
needs; the gateway adds the fields of the client's connection.
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
        """The seconds within which the client wants the response."""

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

    `total` is the deadline in seconds, which `deadlines` enforces. `hurried` is set if the client's deadline is shorter
    than the operator's, `heavy` if the request is so large that it is prepared in a thread.
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
        """Return the exchange for a second attempt, with its own record and deadlines."""
        return Exchange(self.plan, self.team, self.request, record, deadlines, self.total, self.hurried, self.heavy)


@frozen
class AttemptLimits:
    """The most seconds that an attempt may take, and the most seconds until a non-streaming response begins; `None` if
    only the request's deadline applies."""

    total: float | None
    answer: float | None


UNLIMITED: Final = AttemptLimits(None, None)
"""The limits of most attempts: only the request's deadline applies."""


def attempt_limits(timeouts: Timeouts, total: float, share: float | None = None) -> AttemptLimits:
    """Return the limits of an attempt of a request with `total` seconds. If another target may be called after the
    attempt, the attempt may take at most `share` seconds, its share of the remaining time."""
    limit = None if timeouts.total >= total else timeouts.total
    if share is None:
        return UNLIMITED if limit is timeouts.answer is None else AttemptLimits(limit, timeouts.answer)
    # A non-streaming response takes at least as long as its first token.
    answer = max(_ANSWER_TIMEOUT, timeouts.first_event) if timeouts.answer is None else timeouts.answer
    return AttemptLimits(share if limit is None else min(limit, share), answer)
