"""A process's side of all leases: when they are exchanged, and what happens when whoever counts is lost.

No request waits for an exchange as long as units are at hand. Lost, the process goes on with its last share: it never
opens the gates and never stops the traffic.
"""

import asyncio
import logging
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from proxy.limits.leased_rate import LeasedRate
from proxy.limits.shared_spending import SharedSpending
from proxy.shared_state.lease import AT_ONCE, LeaseAsk, LeaseSource
from proxy.shared_state.lease_keeper import DROPPED, LIVE, LONGEST_PROBE, REJOIN, RESTING, Lease, equal_share, in_doubt
from proxy.shared_state.membership import Membership

TICK: Final = 0.1
"""Seconds after which what lapsed goes back, and who promised to speak again does, at the latest."""

RENEW: Final = 1.0
"""Seconds after which places and spending are told again; they hold for ten."""

IDLE: Final = 5.0
"""Seconds after which leases at rest are asked to forget what matters no more."""

PROBE: Final = 0.5
"""Seconds until who was lost is asked again; each miss doubles them, up to LONGEST_PROBE."""

MISSES: Final = 2
"""Exchanges in a row without an answer after which the process goes on alone: one may be its own fault."""

FIRST: Final = 1.0
PAUSE: Final = 0.05
"""Seconds for which a process that never had an answer waits for one before it goes on alone, and between two tries:
it knows of nobody who shares the limits, and at its start it is busy itself."""

COORDINATOR: Final = "the coordinator (Redis, or the supervisor of the workers without it)"
"""What divides limits between processes, in the log."""

LINES_APART: Final = 60.0
"""Seconds between two lines of the log: a link that comes and goes must not fill it."""


class LeaseRegistry:
    """The leases of a process. `least` is how many processes share where nobody has said it yet. `clock` is the
    loop's; `answered` is called after each exchange, when requests that wait may have got what they need."""

    def __init__(self, source: LeaseSource, least: int, clock: Callable[[], float]) -> None:
        self.alone = False
        self.lost_at = self.back_at = -math.inf
        self.rejoining = False
        self.met = self.strangers = False
        self.clock = clock
        self.answered: Callable[[], None] = _nothing
        self.turns = 0
        self._source = source
        self._due: dict[Lease, None] = {}
        self._asking: dict[Lease, None] = {}
        self._roll_call = Membership(least)
        self._live: list[Lease] = []
        self._idle: dict[Lease, None] = {}
        self._wake = asyncio.Event()
        self._misses = 0
        self._missed_at = math.inf
        self._tick_at = self._renew_at = self._rest_at = -math.inf
        self._foreign_until = -math.inf
        self._said_foreign_at = -LINES_APART
        self._said_alone = False
        self._said_at = -LINES_APART
        self._log = logging.getLogger("dragoman")

    @property
    def expected(self) -> int:
        """How many processes share."""
        return self._roll_call.processes

    @property
    def guessed(self) -> bool:
        """Whether neither an answer nor a division on disk told how many share."""
        return self._roll_call.guessed

    @property
    def division(self) -> tuple[float, int] | None:
        """An equal part, and how many processes share, to be assumed after a restart; None if that is guessed. May be
        asked from any thread."""
        return None if self.guessed else (equal_share(self.expected), self.expected)

    @property
    def told_since(self) -> float:
        """Since when all other processes have told what they hold."""
        return self._roll_call.told_since

    @property
    def divided(self) -> bool:
        """Whether limits are divided as was last known, all of them or some, since who counts is lost or was found not
        to know them. May be asked from any thread."""
        return self.alone or self.clock() < self._foreign_until

    def expect_strangers(self) -> None:
        """Share with the processes of other gateways as well. Nobody told yet that there are any: one is expected until
        an answer or a division on disk tells how many."""
        self.strangers = True
        self._roll_call.guess(self.expected + 1)

    def expect(self, processes: int) -> None:
        """Expect so many processes in all, if that is still guessed."""
        if self.guessed:
            self._roll_call.guess(processes)

    def assume(self, processes: int) -> None:
        """Expect as many processes as there were before a restart."""
        self._roll_call.assume(processes)

    def join(self) -> None:
        """Be counted among those who share from now on: there are limits, of which nothing may be used yet."""
        self.wake(self._roll_call)

    def drop(self, leases: Iterable[Lease]) -> None:
        """Exchange leases no longer; what they hold is forgotten by the others within seconds."""
        for lease in leases:
            lease.standing = DROPPED
            self._due.pop(lease, None)
            self._asking.pop(lease, None)
            self._idle.pop(lease, None)

    def due(self, lease: Lease) -> None:
        """Exchange a lease at the next turn."""
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
        """Look at a lease every now and then, as long as it holds anything."""
        if lease.standing == RESTING:
            lease.standing = LIVE
            self._live.append(lease)

    async def run(self) -> None:
        """Exchange leases until cancelled."""
        while True:
            await self._pause()
            await self.turn()

    async def turn(self) -> None:
        """Exchange what is due, and tell who waits."""
        self._wake.clear()
        self.turns += 1
        self.rejoining = self.rejoining and in_doubt(self, self.back_at, self.clock())
        self._roll_call.here = not self.alone
        self._renew()
        self._asking, self._due = self._due, {}
        first = True
        while (some := self._next()) or (first and self.alone):
            first = False
            if not await self._exchange(some):
                self._due = {**dict.fromkeys(lease for lease, _ in some), **self._asking, **self._due}
                self._asking = {}
                if not self.alone:
                    self._wake.set()
                    return
            self.answered()
        self.answered()

    def pending(self, lease: Lease) -> bool:
        """Return whether a lease is still to be exchanged."""
        return lease in self._due or lease in self._asking

    def _next(self) -> list[tuple[Lease, LeaseAsk]]:
        """Return what to ask for in the next call of this turn."""
        some: list[tuple[Lease, LeaseAsk]] = []
        while self._asking and len(some) < AT_ONCE:
            lease, _ = self._asking.popitem()
            if (ask := lease.ask(self.clock())) is not None:
                some.append((lease, ask))
        return some

    async def _exchange(self, asked: list[tuple[Lease, LeaseAsk]]) -> bool:
        """Exchange entries of one call, and return whether there was an answer."""
        try:
            grants = await self._source.exchange([ask for _, ask in asked])
        except ConnectionError:
            for lease, _ in asked:
                lease.untold()
            now = self.clock()
            self._missed_at = min(self._missed_at, now)
            self._misses += 1
            enough = self._misses >= MISSES and (self.met or now >= self._missed_at + FIRST)
            if enough and not self.alone:
                self.alone, self.lost_at, self._misses = True, now, MISSES
            self._say()
            return False
        # Not as of the question: units of a short period would lapse on a slow way back, before anybody had them.
        now = self.clock()
        self._misses = 0
        self.met = True
        if self.alone:
            self.alone = False
            self.rejoining, self.back_at = True, now
            self._tick_at = -math.inf
            self._wake.set()
        self._say()
        for (lease, _), grant in zip(asked, grants, strict=True):
            lease.tell(grant, now)
        if foreign := [ask.key for (_, ask), grant in zip(asked, grants, strict=True) if grant is None]:
            self._note_foreign(foreign, now)
        return True

    def _renew(self) -> None:
        """Make due what has to be told without being asked. What holds nothing any more is not looked at again."""
        now = self.clock()
        if now < self._tick_at:
            return
        self._tick_at = now + TICK
        full = now >= self._renew_at
        if full:
            self._renew_at = now + RENEW
        live, self._live = self._live, []
        for lease in live:
            if lease.standing == DROPPED:
                continue
            if lease.renew(now):
                if full or self._hastens(lease):
                    self._due[lease] = None
            elif lease not in self._due and not lease.holds():
                lease.standing = RESTING
                self._idle[lease] = None
                continue
            self._live.append(lease)
        if now >= self._rest_at:
            self._rest_at = now + IDLE
            self._idle = {each: None for each in self._idle if each.standing == RESTING and not each.rest(now)}

    def _hastens(self, lease: Lease) -> bool:
        """Return whether what a lease has to tell, or to hear, does not wait for all to be told again."""
        if isinstance(lease, Membership):
            return self.rejoining
        return isinstance(lease, LeasedRate) or (isinstance(lease, SharedSpending) and lease.hasty())

    async def _pause(self) -> None:
        """Wait until something is due at once, or until it is time."""
        if self.alone:
            await asyncio.sleep(min(LONGEST_PROBE, PROBE * 2.0 ** min(self._misses - MISSES, 10)))
            return
        if self._misses and not self.met:
            await asyncio.sleep(PAUSE)
            return
        try:
            async with asyncio.timeout(TICK):
                await self._wake.wait()
        except TimeoutError:
            return

    def _note_foreign(self, keys: Sequence[str], now: float) -> None:
        """Note, and log now and then, that something else is kept in the place of what is counted by these keys."""
        self._foreign_until = now + REJOIN
        if now < self._said_foreign_at + LINES_APART:
            return
        self._said_foreign_at = now
        named = f"'{keys[0]}'" if len(keys) == 1 else f"'{keys[0]}' and {len(keys) - 1} more"
        self._log.warning(
            "limits: Redis holds something else in place of %s; going on with this process's share", named
        )

    def _say(self) -> None:
        """Log a change, unless the last one was only just logged."""
        now = self.clock()
        if self.alone is self._said_alone or now < self._said_at + LINES_APART:
            return
        self._said_alone, self._said_at = self.alone, now
        if self.alone and self.guessed:
            self._log.warning(
                "limits: Redis has not answered since the start, and no file tells how limits were divided; taking the "
                "part of each limit that one of %d processes has who used nothing",
                self.expected,
            )
        elif self.alone:
            self._log.warning("limits: %s does not answer; going on with this process's share", COORDINATOR)
        else:
            self._log.info("limits: counting together again")


def _nothing() -> None:
    """Called where nobody waits."""
