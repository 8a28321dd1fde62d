"""How many processes share the limits, and since when all of them have told what they hold. Time is an argument."""

from typing import Final

from proxy.shared_state.lease import LeaseGrant, PlacesAsk
from proxy.shared_state.lease_keeper import GONE, NEVER, RESTING

ROLL_CALL: Final = "processes"
MOST: Final = 1_000_000
"""The key by which processes are counted, and more of them than any number of gateways has."""

SILENT: Final = 2.0
"""Seconds without an answer after which others may have been forgotten that are only as silent as this process was."""


class Membership:
    """A process's place among all. It is always held, so that whoever counts hears of the process before anybody asks
    for anything, and the process of whoever counts. All others have told what they hold since `told_since`: who tells
    that it is `here`, and does not count alone, has told all the rest at the same turn. `guessed` says that neither an
    answer nor a division on disk told how many `processes` there are."""

    __slots__ = (
        "_epoch",
        "_least",
        "_missed",
        "_missed_until",
        "_told_at",
        "_untold",
        "guessed",
        "here",
        "processes",
        "standing",
        "told_since",
    )

    def __init__(self, least: int) -> None:
        self.standing = RESTING
        self.here = True
        self.guessed = self._untold = False
        self.processes = self._least = max(1, least)
        self.told_since = NEVER
        self._epoch = self._missed = 0
        self._missed_until = self._told_at = NEVER

    @property
    def key(self) -> str:
        """What it is counted by."""
        return ROLL_CALL

    def guess(self, processes: int) -> None:
        """Expect so many processes at least, until something tells how many there are."""
        if self._told_at == NEVER:
            self.guessed, self.processes = True, max(self.processes, min(processes, MOST))

    def assume(self, processes: int) -> None:
        """Expect as many as there were before a restart."""
        self.guessed, self.processes = False, max(self._least, processes)

    def ask(self, now: float) -> PlacesAsk:
        """Return what is asked for: nothing but what is held."""
        return PlacesAsk(ROLL_CALL, MOST, 1, 0, int(self.here))

    def tell(self, grant: LeaseGrant | None, now: float) -> None:
        """Take the answer. There are never fewer than this gateway has; and where whoever counts has lost its memory,
        or was lost itself, those who were there before have only not told yet."""
        if grant is None:
            return
        if self._told_at == NEVER and not self._untold:
            self.processes = self._least  # whoever counts was there all the time, and knows all who are
        self.guessed = False
        if grant.epoch != self._epoch or now > self._told_at + SILENT:
            self._missed, self._missed_until = self.processes, now + GONE
        self._epoch, self._told_at = grant.epoch, now
        missed = self._missed if now < self._missed_until else 0
        if grant.level >= max(grant.processes, missed):
            self.told_since = now - grant.claimed
        self.processes = max(self._least, missed, grant.processes)

    def untold(self) -> None:
        """Note that there was no answer: they are as many as before."""
        self._untold = True

    def renew(self, now: float) -> bool:
        """Return that it is to be told every now and then."""
        return True

    def holds(self) -> bool:
        """Return that it never rests."""
        return True

    def rest(self, now: float) -> bool:
        """Forget nothing."""
        return True
