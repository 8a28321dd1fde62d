"""The leases of one process. This module decides when they are exchanged, and handles the loss of the coordinator.

No request waits for an exchange while units are at hand. Without the coordinator the process continues with its last
share: it neither admits everything nor stops the traffic.
"""

import asyncio
import logging
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from proxy.limits.leased_rate import LeasedRate
from proxy.limits.shared_spending import SharedSpending
from proxy.shared_state.lease import MAX_ENTRIES, LeaseRequest, LeaseSource
from proxy.shared_state.lease_keeper import (
    DROPPED,
    LIVE,
    LONGEST_PROBE,
    REJOIN_SECONDS,
    RESTING,
    Lease,
    equal_share,
    in_doubt,
)
from proxy.shared_state.membership import Membership

TICK: Final = 0.1
"""The most seconds until lapsed units go back, and until a lease that promised another exchange is exchanged."""

RENEW_EVERY: Final = 1.0
"""Seconds after which slots and spending are reported again. A report is valid for ten seconds."""

FORGET_EVERY: Final = 5.0
"""Seconds after which leases at rest drop the state that no longer matters."""

FIRST_PROBE: Final = 0.5
"""Seconds until a lost coordinator is tried again. Each failure doubles this time, up to LONGEST_PROBE."""

MISSES: Final = 2
"""The number of consecutive failed exchanges after which the process counts alone. This process may itself have caused
a single failure."""

FIRST_ANSWER_WAIT: Final = 1.0
FIRST_RETRY_PAUSE: Final = 0.05
"""Seconds for which a process that never had a reply waits for one before it counts alone, and the pause between two
tries. At its start the process knows no other process that shares the limits, and may be too busy to exchange in
time."""

COORDINATOR: Final = "the coordinator (Redis, or the supervisor of the workers without it)"
"""The name of the component that divides limits between processes, in the log."""

LOG_PAUSE: Final = 60.0
"""The least seconds between two log lines, so that an unstable link does not fill the log."""


class LeaseRegistry:
    """The leases of a process. `least` is the number of processes before any reply reports one. `clock` is the event
    loop's. `on_exchange` is called after each exchange, when waiting requests may have received their units."""

    def __init__(self, source: LeaseSource, least: int, clock: Callable[[], float]) -> None:
        self.alone = False
        self.lost_at = self.back_at = -math.inf
        self.rejoining = False
        self.has_answered = self.other_gateways = False
        self.clock = clock
        self.on_exchange: Callable[[], None] = _ignore_exchange
        self.rounds = 0
        self._source = source
        self._due: dict[Lease, None] = {}
        self._to_exchange: dict[Lease, None] = {}
        self._membership = Membership(least)
        self._live: list[Lease] = []
        self._idle: dict[Lease, None] = {}
        self._wake = asyncio.Event()
        self._misses = 0
        self._missed_at = math.inf
        self._tick_at = self._renew_at = self._rest_at = -math.inf
        self._foreign_until = -math.inf
        self._logged_foreign_at = -LOG_PAUSE
        self._logged_alone = False
        self._logged_at = -LOG_PAUSE
        self._log = logging.getLogger("dragoman")

    @property
    def expected(self) -> int:
        """The number of processes that share the limits."""
        return self._membership.processes

    @property
    def guessed(self) -> bool:
        """Whether the number in `expected` is a guess, because neither a reply nor a division on disk has reported
        it."""
        return self._membership.guessed

    @property
    def division(self) -> tuple[float, int] | None:
        """An equal share and the number of processes, to be used after a restart, `None` if the number is guessed. Safe
        to read from any thread."""
        return None if self.guessed else (equal_share(self.expected), self.expected)

    @property
    def all_reported_since(self) -> float:
        """The time since which all other processes have reported the units that they hold."""
        return self._membership.all_reported_since

    @property
    def divided(self) -> bool:
        """Whether all or some limits are divided by the last known shares, because the coordinator is lost or holds
        foreign data in their place. Safe to read from any thread."""
        return self.alone or self.clock() < self._foreign_until

    def expect_other_gateways(self) -> None:
        """Share with processes of other gateways as well. One of them is expected until a reply or a division on disk
        gives their number."""
        self.other_gateways = True
        self._membership.guess(self.expected + 1)

    def expect(self, processes: int) -> None:
        """Expect this total number of processes, if the number is still guessed."""
        if self.guessed:
            self._membership.guess(processes)

    def assume(self, processes: int) -> None:
        """Expect the number of processes from before a restart."""
        self._membership.assume(processes)

    def join(self) -> None:
        """Take part in exchanges from now on, because there are limits, even if no limit is used yet."""
        self.wake(self._membership)

    def drop(self, leases: Iterable[Lease]) -> None:
        """Stop exchanging leases. The coordinator forgets the units that they hold within seconds."""
        for lease in leases:
            lease.standing = DROPPED
            self._due.pop(lease, None)
            self._to_exchange.pop(lease, None)
            self._idle.pop(lease, None)

    def mark_due(self, lease: Lease) -> None:
        """Exchange a lease in the next round."""
        if lease.standing == LIVE:
            self._due[lease] = None
        elif lease.standing != DROPPED:
            self._due[lease] = None
            self.watch(lease)

    def wake(self, lease: Lease) -> None:
        """Exchange a lease at once."""
        if lease.standing != DROPPED:
            self._due[lease] = None
            self.watch(lease)
            self._wake.set()

    def watch(self, lease: Lease) -> None:
        """Check a lease regularly as long as it holds any units."""
        if lease.standing == RESTING:
            lease.standing = LIVE
            self._live.append(lease)

    async def run(self) -> None:
        """Exchange leases until cancelled."""
        while True:
            await self._pause()
            await self.exchange_due()

    async def exchange_due(self) -> None:
        """Exchange the leases that are due, and notify the waiting requests."""
        self._wake.clear()
        self.rounds += 1
        self.rejoining = self.rejoining and in_doubt(self, self.back_at, self.clock())
        self._membership.here = not self.alone
        self._renew()
        self._to_exchange, self._due = self._due, {}
        first = True
        while (some := self._next()) or (first and self.alone):
            first = False
            if not await self._exchange(some):
                self._due = {**dict.fromkeys(lease for lease, _ in some), **self._to_exchange, **self._due}
                self._to_exchange = {}
                if not self.alone:
                    self._wake.set()
                    return
            self.on_exchange()
        self.on_exchange()

    def pending(self, lease: Lease) -> bool:
        """Return whether a lease is still to be exchanged."""
        return lease in self._due or lease in self._to_exchange

    def _next(self) -> list[tuple[Lease, LeaseRequest]]:
        """Return the entries of the next call of this round."""
        some: list[tuple[Lease, LeaseRequest]] = []
        while self._to_exchange and len(some) < MAX_ENTRIES:
            lease, _ = self._to_exchange.popitem()
            if (request := lease.next_request(self.clock())) is not None:
                some.append((lease, request))
        return some

    async def _exchange(self, entries: list[tuple[Lease, LeaseRequest]]) -> bool:
        """Exchange the entries of one call, and return whether there was a reply."""
        try:
            grants = await self._source.exchange([request for _, request in entries])
        except ConnectionError:
            for lease, _ in entries:
                lease.exchange_failed()
            now = self.clock()
            self._missed_at = min(self._missed_at, now)
            self._misses += 1
            enough = self._misses >= MISSES and (self.has_answered or now >= self._missed_at + FIRST_ANSWER_WAIT)
            if enough and not self.alone:
                self.alone, self.lost_at, self._misses = True, now, MISSES
            self._log_change()
            return False
        # Use the time at which the reply arrived. Otherwise units of a short period could lapse during a slow reply,
        # before any request could take them.
        now = self.clock()
        self._misses = 0
        self.has_answered = True
        if self.alone:
            self.alone = False
            self.rejoining, self.back_at = True, now
            self._tick_at = -math.inf
            self._wake.set()
        self._log_change()
        for (lease, _), grant in zip(entries, grants, strict=True):
            lease.apply_grant(grant, now)
        if foreign := [request.key for (_, request), grant in zip(entries, grants, strict=True) if grant is None]:
            self._note_foreign(foreign, now)
        return True

    def _renew(self) -> None:
        """Mark the leases as due that must report although they are not used. Leases that no longer hold anything are
        no longer checked."""
        now = self.clock()
        if now < self._tick_at:
            return
        self._tick_at = now + TICK
        full = now >= self._renew_at
        if full:
            self._renew_at = now + RENEW_EVERY
        live, self._live = self._live, []
        for lease in live:
            if lease.standing == DROPPED:
                continue
            if lease.needs_renewal(now):
                if full or self._cannot_wait(lease):
                    self._due[lease] = None
            elif lease not in self._due and not lease.may_need_renewal():
                lease.standing = RESTING
                self._idle[lease] = None
                continue
            self._live.append(lease)
        if now >= self._rest_at:
            self._rest_at = now + FORGET_EVERY
            self._idle = {
                each: None for each in self._idle if each.standing == RESTING and not each.forget_if_idle(now)
            }

    def _cannot_wait(self, lease: Lease) -> bool:
        """Return whether a lease must be exchanged before the next renewal of all leases."""
        if isinstance(lease, Membership):
            return self.rejoining
        return isinstance(lease, LeasedRate) or (isinstance(lease, SharedSpending) and lease.is_urgent())

    async def _pause(self) -> None:
        """Wait until a lease is woken, or until the next round."""
        if self.alone:
            await asyncio.sleep(min(LONGEST_PROBE, FIRST_PROBE * 2.0 ** min(self._misses - MISSES, 10)))
            return
        if self._misses and not self.has_answered:
            await asyncio.sleep(FIRST_RETRY_PAUSE)
            return
        try:
            async with asyncio.timeout(TICK):
                await self._wake.wait()
        except TimeoutError:
            return

    def _note_foreign(self, keys: Sequence[str], now: float) -> None:
        """Note that Redis holds foreign data under these keys, and log it from time to time."""
        self._foreign_until = now + REJOIN_SECONDS
        if now < self._logged_foreign_at + LOG_PAUSE:
            return
        self._logged_foreign_at = now
        named = f"'{keys[0]}'" if len(keys) == 1 else f"'{keys[0]}' and {len(keys) - 1} more"
        self._log.warning(
            "limits: Redis holds foreign data in place of %s; continuing with this process's share", named
        )

    def _log_change(self) -> None:
        """Log a change of the link, unless a line was logged within LOG_PAUSE."""
        now = self.clock()
        if self.alone is self._logged_alone or now < self._logged_at + LOG_PAUSE:
            return
        self._logged_alone, self._logged_at = self.alone, now
        if self.alone and self.guessed:
            self._log.warning(
                "limits: Redis has not answered since the start, and no file records how limits were divided; using "
                "the part of each limit that an idle one of %d processes has",
                self.expected,
            )
        elif self.alone:
            self._log.warning("limits: %s does not answer; continuing with this process's share", COORDINATOR)
        else:
            self._log.info("limits: counting together again")


def _ignore_exchange() -> None:
    """Do nothing: the default if no request can wait."""
