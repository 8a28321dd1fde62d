"""The number of processes that share the limits, and the time since which all of them have reported the units that they
hold. The methods get the current time as an argument."""

from typing import Final

from proxy.shared_state.lease import LeaseGrant, SlotsRequest
from proxy.shared_state.lease_keeper import GONE_SECONDS, NEVER, RESTING

MEMBERSHIP_KEY: Final = "processes"
MAX_PROCESSES: Final = 1_000_000
"""The key under which processes are counted, and a number that is larger than any real number of processes."""

LONGEST_SILENCE: Final = 2.0
"""If this process had no reply for this many seconds, the coordinator may have forgotten other processes that were
silent for the same time."""


class Membership:
    """The membership of this process among all processes. The membership is always exchanged, so the coordinator knows
    the process before its first lease, and the process knows the coordinator.

    Since the time `all_reported_since`, all other processes have reported the units that they hold. A process that does
    not count alone reports to be `here`, and reports all its leases in the same round. `guessed` means that neither a
    reply nor a division on disk has given the number of `processes`.
    """

    __slots__ = (
        "_epoch",
        "_failed_first",
        "_least",
        "_missed",
        "_missed_until",
        "_replied_at",
        "all_reported_since",
        "guessed",
        "here",
        "processes",
        "standing",
    )

    def __init__(self, least: int) -> None:
        self.standing = RESTING
        self.here = True
        self.guessed = self._failed_first = False
        self.processes = self._least = max(1, least)
        self.all_reported_since = NEVER
        self._epoch = self._missed = 0
        self._missed_until = self._replied_at = NEVER

    @property
    def key(self) -> str:
        """The key under which this process is counted."""
        return MEMBERSHIP_KEY

    def guess(self, processes: int) -> None:
        """Expect at least this number of processes, until a reply gives the number."""
        if self._replied_at == NEVER:
            self.guessed, self.processes = True, max(self.processes, min(processes, MAX_PROCESSES))

    def assume(self, processes: int) -> None:
        """Expect the number of processes that was known before a restart."""
        self.guessed, self.processes = False, max(self._least, processes)

    def next_request(self, now: float) -> SlotsRequest:
        """Return a report that the process is there. The report requests no slots."""
        return SlotsRequest(MEMBERSHIP_KEY, MAX_PROCESSES, 1, 0, int(self.here))

    def apply_grant(self, grant: LeaseGrant | None, now: float) -> None:
        """Apply the reply. There are never fewer processes than this gateway has. If the coordinator lost its memory,
        or was lost itself, the former processes still count, because they may not have reported again yet."""
        if grant is None:
            return
        if self._replied_at == NEVER and not self._failed_first:
            self.processes = self._least  # The coordinator was reachable all the time, so it knows all processes.
        self.guessed = False
        if grant.epoch != self._epoch or now > self._replied_at + LONGEST_SILENCE:
            self._missed, self._missed_until = self.processes, now + GONE_SECONDS
        self._epoch, self._replied_at = grant.epoch, now
        missed = self._missed if now < self._missed_until else 0
        if grant.level >= max(grant.processes, missed):
            self.all_reported_since = now - grant.claimed
        self.processes = max(self._least, missed, grant.processes)

    def exchange_failed(self) -> None:
        """Note a failed exchange. The number of processes does not change."""
        self._failed_first = True

    def needs_renewal(self, now: float) -> bool:
        """Return true, because the membership must be exchanged regularly."""
        return True

    def may_need_renewal(self) -> bool:
        """Return true, because the membership is always exchanged."""
        return True

    def forget_if_idle(self, now: float) -> bool:
        """Return whether nothing is left to drop. The membership has no state to drop."""
        return True
