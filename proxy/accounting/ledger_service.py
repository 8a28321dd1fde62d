"""The ledger in a process that serves: its journal, and what the ledger says that teams have spent.

Reads the ledger's sums of an end user when it is first seen. Its requests wait for that; one reading serves many
users.
"""

import asyncio
import logging
import math
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import Final, TypeVar

from config.load_config import Loaded
from proxy.accounting.ledger_reader import SharedLedgerReader
from proxy.ledger.journal import Journal
from proxy.ledger.journal_files import left_behind, make_spare
from proxy.ledger.ledger_row import TagsJson, written_tags
from proxy.ledger.ledger_settings import LedgerError, LedgerSettings, LedgerState, ledger_settings
from proxy.ledger.ledger_store import Amounts, LedgerReader
from proxy.ledger.spent_totals import SLOT, SpentNews, SpentTotals, UserTotals, recent_slot
from proxy.limits.limit import Period
from proxy.limits.limit_registry import LimitRegistry
from proxy.request_record import UNKNOWN_TEAM, RequestRecord
from proxy.routing.snapshot import Snapshot

AT_ONCE: Final = 500
"""Users that are read together."""

REST: Final = 5.0
"""Seconds after a failed reading in which no request waits for another one."""


class UserSums:
    """Reads by `read`, which raises LedgerError and TimeoutError. `clock` is the loop's."""

    def __init__(self, read: Callable[[Sequence[str]], Awaitable[None]], clock: Callable[[], float]) -> None:
        self._read = read
        self._clock = clock
        self._wanted: dict[str, asyncio.Future[bool]] = {}
        self._wake = asyncio.Event()
        self._rests_until = -math.inf

    async def learn(self, scope: str, longest: float) -> bool:
        """Wait until the sums of a user have been read, and return whether they were: not if the ledger cannot be read,
        or not within `longest` seconds."""
        if self._clock() < self._rests_until:
            return False
        found = self._wanted.get(scope)
        if found is None:
            found = self._wanted[scope] = asyncio.get_running_loop().create_future()
            self._wake.set()
        done, _ = await asyncio.wait((found,), timeout=longest)
        return bool(done) and found.result()

    async def run(self) -> None:
        """Read the users that requests wait for, until cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while some := list(islice(self._wanted, AT_ONCE)):
                await self.read_some(some)

    async def read_some(self, some: Sequence[str]) -> None:
        """Read some users, with or without waiting requests. A failure starts the REST."""
        known = False
        try:
            await self._read(some)
            known = True
        except (LedgerError, TimeoutError):
            self._rests_until = self._clock() + REST
        finally:
            for scope in some:
                if (found := self._wanted.pop(scope, None)) is not None:
                    found.set_result(known)


READ_EVERY: Final = 1.0
"""Seconds between two looks at what has been loaded."""

TICKS: Final = 32
"""Parts of a second by which it is told apart what the ledger holds already of what was settled here: of the part in
between nobody knows which rows it holds until the next look. Each row by itself would be more parts than a counter
keeps (`proxy.limits.spending.MAX_MARKS`) between two looks."""

CATCH_UP: Final = 3.0
"""Seconds for which a process waits at its start until the ledger holds what ended processes have left."""

USERS_WITHIN: Final = 1.0
"""Seconds in which the sums of end users are read, or requests go on without."""

LOOK_EVERY: Final = 0.05

WRITES_WITHIN: Final = 60.0
"""Seconds after its last row for which a process is taken to be there."""

MOST_TICKS: Final = 4096

MAKING: Final = 5.0
"""Seconds for which a database that cannot be read is not spoken of: it may just be being made."""


T = TypeVar("T")


class _OwnFaultError(LedgerError):
    """A fault of ours while reading; its text is the exception's name."""


def settings_of(loaded: Loaded) -> LedgerSettings | None:
    """Return where a table's ledger is, None where it has none."""
    return None if loaded.ledger is None else ledger_settings(loaded.ledger, loaded.config.server.timezone)


class LedgerService:
    """Writes the row of each request whose team is known, and keeps a process's limits up with what all processes
    wrote. What no deployment is asked for (lists of models, usage, stored answers) has no row, answered or refused, and
    no limit counts it."""

    def __init__(
        self,
        settings: LedgerSettings,
        state: LedgerState,
        book: LimitRegistry,
        wall: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.state = state
        self._read = False
        self._settings = settings
        self._book = book
        self._wall = wall
        self._clock = clock
        book.notes.until = -math.inf
        self._mark = self._covered = 0
        self._tick: int | None = None
        self._ticks: deque[tuple[int, int]] = deque(maxlen=MOST_TICKS)
        self._journal = Journal(settings.journals, self.state, spare=make_spare)
        self._tags: dict[str, tuple[Mapping[str, str], TagsJson]] = {}
        self._spends = False
        self._reading = SharedLedgerReader(settings)
        self._totals = SpentTotals[Period]()
        self._user_periods: frozenset[Period] = frozenset()
        self._user_totals = UserTotals[Period]()
        self.users = UserSums(self._read_users, clock)
        self.unknown: Callable[[int], Sequence[str]] = lambda most: ()
        # Appends the requests that have ended and are not reported yet: their usage is settled already.
        self.report_ended: Callable[[], None] = lambda: None
        self._failing: float | None = None
        self._said = ""
        self._log = logging.getLogger("dragoman")

    def use(self, snapshot: Snapshot) -> None:
        """Read what is spent of the limits of a table from now on."""
        self._tags = {}
        quotas = any(limits.quotas for limits in snapshot.scopes.values())
        self._user_periods = frozenset(period for each in snapshot.each_user.values() for period in each.periods)
        self._spends = quotas or bool(snapshot.budgets) or bool(self._user_periods)

    def unread(self) -> bool:
        """Return whether requests of teams with a budget are refused, since nobody knows yet what was spent. What is
        known stays so."""
        return self._settings.refuses_unread and not self._read

    def knows_user(self, scope: str) -> bool:
        """Return whether the spending of an end user has been read."""
        return scope in self._user_totals

    def forget_user(self, scope: str) -> None:
        """Forget the spending of an end user that is not counted any more."""
        self._user_totals.forget((scope,))

    def settling(self) -> None:
        """Mark what is settled next by the tick that it falls into. Called where the notes say that one is over; the
        clock is the one that they are read by."""
        notes, tick = self._book.notes, int(self._clock() * TICKS)
        if tick != self._tick:
            self.report_ended()
            self._ticks.append((notes.mark, self._journal.sequence))
            notes.mark += 1
            self._tick = tick
        notes.until = (tick + 1) / TICKS  # exactly when another tick begins: TICKS is a power of two

    def _marks_of(self, loaded: int) -> tuple[int, int]:
        """Return the last tick whose rows are all among the first `loaded` ones of this process, and the last of which
        any is."""
        self.report_ended()
        if loaded >= self._journal.sequence:
            self._ticks.clear()
            self._mark, self._covered = self._book.notes.mark, loaded
            # What is settled later in this tick is no part of the ledger yet.
            self._tick, self._book.notes.until = None, -math.inf
        while self._ticks and self._ticks[0][1] <= loaded:
            self._mark, self._covered = self._ticks.popleft()
        if loaded <= self._covered:
            return self._mark, self._mark
        return self._mark, self._ticks[0][0] if self._ticks else self._book.notes.mark

    def append(self, record: RequestRecord) -> None:
        """Write a request that has ended."""
        if record.team != UNKNOWN_TEAM and (
            record.attempts or record.from_cache or (record.outcome != "ok" and not record.aside)
        ):
            tags = record.tags
            self._journal.append(record, record.user, self._written(record.team, tags) if tags else None)

    def _written(self, team: str, tags: Mapping[str, str]) -> TagsJson:
        """Return tags as they go into lines, kept for each team: those of its other requests are mostly the same."""
        kept = self._tags.get(team)
        if kept is None or kept[0] is not tags:
            kept = self._tags[team] = tags, written_tags(tags)
        return kept[1]

    def start(self) -> None:
        """Begin to write."""
        self._journal.start()

    async def catch_up(self) -> None:
        """Read what has been spent before the first request, with what processes that were killed have left in their
        journals: for CATCH_UP seconds at most."""
        if not self._spends:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(CATCH_UP):
                left = await asyncio.to_thread(left_behind, self._settings.journals)
                while left:
                    await asyncio.sleep(LOOK_EVERY)
                    left = await asyncio.to_thread(left_behind, self._settings.journals)
                await self._read_spent()

    async def writers(self) -> int | None:
        """Return how many processes write to a ledger that gateways share: this one, and who did within WRITES_WITHIN
        seconds. 0 for a ledger that no other gateway has, None if the database does not answer."""
        if self._settings.kind != "postgresql":
            return 0
        since = round((self._wall() - WRITES_WITHIN) * 1000)
        try:
            return 1 + await self._reading.read(lambda reader: reader.writers(since), CATCH_UP)
        except (LedgerError, TimeoutError):
            return None

    async def aclose(self) -> None:
        """Write every row, which takes as long as the disk does, and let go of the database."""
        await asyncio.to_thread(self._journal.close)
        await self._reading.aclose()

    async def run(self) -> None:
        """Read what has been spent until cancelled."""
        while True:
            if self._spends:
                await self._read_spent()
                await self._read_unknown()
            await asyncio.sleep(READ_EVERY)

    async def _read_spent(self) -> None:
        """Read what has changed, and hand it to the limits."""
        periods = self._book.periods(self._wall())
        self.settling()  # what is settled so far is one tick's, even if nothing follows
        try:
            news = await self._found(lambda reader: self._news(reader, periods))
        except _OwnFaultError as error:
            self._complain(str(error))
            return
        except LedgerError as error:
            self._complain(str(error) if self._failing_long() else "")
            return
        self._complain("")
        self._failing = None
        mark, touched = self._marks_of(news.loaded.get(self._journal.process, 0))
        of_users = self._followed(news, periods)
        for period, sums in news.sums.items():
            every = {**sums, **users} if (users := of_users.get(period)) else sums
            self._book.load(period, periods[period][0], every, mark, touched)
        self._read = True

    def _news(self, reader: LedgerReader, periods: Mapping[Period, tuple[int, int]]) -> SpentNews[Period]:
        """Read the changed sums, of end users only the counted ones. Runs in a thread."""
        known = self._user_totals
        news = self._totals.refresh(reader, periods, int(self._wall()), known.batch if len(known) else None)
        return replace(news, users=[each for each in news.users if each.scope in known])

    def _followed(
        self, news: SpentNews[Period], periods: Mapping[Period, tuple[int, int]]
    ) -> Mapping[Period, Mapping[str, Amounts]]:
        """Return the changed sums of end users. A user that cannot be followed is read anew with its next request."""
        starts = self._user_starts(periods)
        sums, stale = self._user_totals.follow(news.users, news.batch, starts, int(self._wall()))
        self._user_totals.forget(stale)
        return sums

    def _user_starts(self, periods: Mapping[Period, tuple[int, int]]) -> dict[Period, int]:
        """Return the slots in which the periods begin by which users are counted."""
        return {period: begin // SLOT for period, (begin, _) in periods.items() if period in self._user_periods}

    async def _read_unknown(self) -> None:
        """Read the spending of users whose requests were admitted before it was known."""
        if self._read and self._failing is None and (some := self.unknown(AT_ONCE)):
            await self.users.read_some(some)

    async def _read_users(self, scopes: Sequence[str]) -> None:
        """Read the spending of some end users. Raises LedgerError and TimeoutError."""
        periods, now = self._book.periods(self._wall()), int(self._wall())
        starts = self._user_starts(periods)
        self.settling()
        slots, recent = list(starts.values()), recent_slot(now)
        base = await self._found(lambda reader: reader.users_from(scopes, slots, recent), USERS_WITHIN)
        mark, touched = self._marks_of(base.loaded.get(self._journal.process, 0))
        for period, sums in self._user_totals.begin(scopes, base, starts, now).items():
            self._book.load_some(period, periods[period][0], sums, mark, touched)

    async def _found(self, work: Callable[[LedgerReader], T], longest: float | None = None) -> T:
        """Return the result of a reading in a thread. Raises LedgerError, also for a fault of ours, and
        TimeoutError."""
        try:
            return await self._reading.read(work, longest)
        except (LedgerError, TimeoutError):
            raise
        except Exception as error:  # a fault of ours: requests are served without the spending
            if not self._said:
                self._log.exception("ledger: a fault while reading")
            raise _OwnFaultError(type(error).__name__) from None

    def _failing_long(self) -> bool:
        """Return whether the database could not be read for MAKING seconds."""
        now = asyncio.get_running_loop().time()
        if self._failing is None:
            self._failing = now
        return now - self._failing >= MAKING

    def _complain(self, trouble: str) -> None:
        """Log a change of what keeps the ledger from being read."""
        if trouble == self._said:
            return
        self._said = trouble
        if trouble:
            self._log.warning("ledger: what was spent cannot be read: %s", trouble)
        else:
            self._log.info("ledger: what was spent is read")
