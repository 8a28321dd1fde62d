"""The ledger in a serving process: its journal, and the sums of spending that it reads from the database.

The sums of an end user are read when the user is first seen, and the user's requests wait for them. One reading covers
many users.
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
from proxy.ledger.journal_files import has_finished_file, make_spare
from proxy.ledger.ledger_row import TagsJson, tags_fragment
from proxy.ledger.ledger_settings import LedgerError, LedgerSettings, LedgerState, ledger_settings
from proxy.ledger.ledger_store import Amounts, LedgerReader
from proxy.ledger.spent_totals import SLOT_SECONDS, SpentTotals, TotalsUpdate, UserTotals, recent_slot
from proxy.limits.limit import Period
from proxy.limits.limit_registry import LimitRegistry
from proxy.request_record import UNKNOWN_TEAM, RequestRecord
from proxy.routing.snapshot import Snapshot

USERS_PER_READ: Final = 500
"""The most end users whose sums one reading reads."""

FAILURE_PAUSE: Final = 5.0
"""Seconds after a failed reading in which no request waits for a new reading."""


class UserSums:
    """The reader of end users' sums. `read` reads them and raises LedgerError and TimeoutError. `clock` returns the
    event loop's time in seconds."""

    def __init__(self, read: Callable[[Sequence[str]], Awaitable[None]], clock: Callable[[], float]) -> None:
        self._read = read
        self._clock = clock
        self._wanted: dict[str, asyncio.Future[bool]] = {}
        self._wake = asyncio.Event()
        self._rests_until = -math.inf

    async def learn(self, scope: str, longest: float) -> bool:
        """Wait until the sums of a user have been read, and return whether they were. Return False if the ledger cannot
        be read within `longest` seconds."""
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
            while some := list(islice(self._wanted, USERS_PER_READ)):
                await self.read_some(some)

    async def read_some(self, some: Sequence[str]) -> None:
        """Read some users, with or without waiting requests. A failure starts the FAILURE_PAUSE."""
        known = False
        try:
            await self._read(some)
            known = True
        except (LedgerError, TimeoutError):
            self._rests_until = self._clock() + FAILURE_PAUSE
        finally:
            for scope in some:
                if (found := self._wanted.pop(scope, None)) is not None:
                    found.set_result(known)


READ_EVERY: Final = 1.0
"""Seconds between two readings of the changed sums."""

TICKS_PER_SECOND: Final = 32
"""The ticks in a second. Settled units are marked by their tick, so the process knows which ticks the ledger includes.
The rows of the tick in which a reading falls may or may not be included until the next reading. With one mark for each
row, there would be more marks between two readings than a counter stores (`proxy.limits.spending.MAX_MARKS`)."""

CATCH_UP: Final = 3.0
"""The most seconds that a starting process waits until the ledger includes the rows that ended processes left."""

USERS_WITHIN: Final = 1.0
"""Seconds within which the sums of end users must be read. After that, requests continue without the sums."""

CHECK_EVERY: Final = 0.05

WRITES_WITHIN: Final = 60.0
"""Seconds for which a process counts as a writer of the ledger after its last row."""

MAX_TICKS: Final = 4096

MAKING_SECONDS: Final = 5.0
"""Seconds for which a database that cannot be read is not reported, because it may just be being created."""


T = TypeVar("T")


class _InternalReadError(LedgerError):
    """A bug of the gateway during a reading. The message is the name of the exception."""


def settings_of(loaded: Loaded) -> LedgerSettings | None:
    """Return the settings of the configured ledger, `None` if there is no ledger."""
    return None if loaded.ledger is None else ledger_settings(loaded.ledger, loaded.config.server.timezone)


class LedgerService:
    """Writes the row of each request whose team is known, and updates the limits of this process by the rows of all
    processes. A request that calls no deployment (lists of models, usage, stored responses) has no row and counts for
    no limit, whether it succeeds or is refused."""

    def __init__(
        self,
        settings: LedgerSettings,
        state: LedgerState,
        registry: LimitRegistry,
        wall: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.state = state
        self._read = False
        self._settings = settings
        self._registry = registry
        self._wall = wall
        self._clock = clock
        registry.notes.until = -math.inf
        self._mark = self._covered = 0
        self._tick: int | None = None
        self._ticks: deque[tuple[int, int]] = deque(maxlen=MAX_TICKS)
        self._journal = Journal(settings.journals, self.state, spare=make_spare)
        self._tags: dict[str, tuple[Mapping[str, str], TagsJson]] = {}
        self._spends = False
        self._reading = SharedLedgerReader(settings)
        self._totals = SpentTotals[Period]()
        self._user_periods: frozenset[Period] = frozenset()
        self._user_totals = UserTotals[Period]()
        self.users = UserSums(self._read_users, clock)
        self.unknown: Callable[[int], Sequence[str]] = lambda most: ()
        # Appends the requests that have ended and are not reported yet. Their usage is already settled.
        self.report_ended: Callable[[], None] = lambda: None
        self._failing: float | None = None
        self._logged = ""
        self._log = logging.getLogger("dragoman")

    def use(self, snapshot: Snapshot) -> None:
        """Read the spending for the limits of this configuration from now on."""
        self._tags = {}
        quotas = any(limits.quotas for limits in snapshot.scopes.values())
        self._user_periods = frozenset(period for each in snapshot.each_user.values() for period in each.periods)
        self._spends = quotas or bool(snapshot.budgets) or bool(self._user_periods)

    def unread(self) -> bool:
        """Return whether requests of teams with a budget are refused because the spending has not been read yet. After
        the first reading this is always False."""
        return self._settings.refuses_unread and not self._read

    def knows_user(self, scope: str) -> bool:
        """Return whether the spending of an end user has been read."""
        return scope in self._user_totals

    def forget_user(self, scope: str) -> None:
        """Forget the spending of an end user that is no longer counted."""
        self._user_totals.forget((scope,))

    def settling(self) -> None:
        """Mark the units that are settled from now on with the current tick. Called when the tick of the last mark has
        ended by the same clock."""
        notes, tick = self._registry.notes, int(self._clock() * TICKS_PER_SECOND)
        if tick != self._tick:
            self.report_ended()
            self._ticks.append((notes.mark, self._journal.sequence))
            notes.mark += 1
            self._tick = tick
        notes.until = (
            tick + 1
        ) / TICKS_PER_SECOND  # Exactly when the next tick begins, because TICKS_PER_SECOND is a power of two.

    def _marks_of(self, loaded: int) -> tuple[int, int]:
        """Return the last tick whose rows are all among the first `loaded` rows of this process, and the last tick with
        any row among them."""
        self.report_ended()
        if loaded >= self._journal.sequence:
            self._ticks.clear()
            self._mark, self._covered = self._registry.notes.mark, loaded
            # Units settled later in this tick are not in the ledger yet.
            self._tick, self._registry.notes.until = None, -math.inf
        while self._ticks and self._ticks[0][1] <= loaded:
            self._mark, self._covered = self._ticks.popleft()
        if loaded <= self._covered:
            return self._mark, self._mark
        return self._mark, self._ticks[0][0] if self._ticks else self._registry.notes.mark

    def append(self, record: RequestRecord) -> None:
        """Write a request that has ended."""
        if record.team != UNKNOWN_TEAM and (
            record.attempts or record.from_cache or (record.outcome != "ok" and not record.aside)
        ):
            tags = record.tags
            self._journal.append(record, record.user, self._tags_json(record.team, tags) if tags else None)

    def _tags_json(self, team: str, tags: Mapping[str, str]) -> TagsJson:
        """Return tags in the form for journal lines. The result is cached for each team, because most requests of a
        team have the same tags."""
        cached = self._tags.get(team)
        if cached is None or cached[0] is not tags:
            cached = self._tags[team] = tags, tags_fragment(tags)
        return cached[1]

    def start(self) -> None:
        """Begin to write the journal."""
        self._journal.start()

    async def catch_up(self) -> None:
        """Read the spending before the first request, including the rows that killed processes left in their journals.
        Takes at most CATCH_UP seconds."""
        if not self._spends:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(CATCH_UP):
                left = await asyncio.to_thread(has_finished_file, self._settings.journals)
                while left:
                    await asyncio.sleep(CHECK_EVERY)
                    left = await asyncio.to_thread(has_finished_file, self._settings.journals)
                await self._read_spent()

    async def writers(self) -> int | None:
        """Return how many processes write to a ledger that gateways share: this one, and the ones with a row within
        WRITES_WITHIN seconds. Return 0 if no other gateway can use the ledger, `None` if the database does not
        respond."""
        if self._settings.kind != "postgresql":
            return 0
        since = round((self._wall() - WRITES_WITHIN) * 1000)
        try:
            return 1 + await self._reading.read(lambda reader: reader.writers(since), CATCH_UP)
        except (LedgerError, TimeoutError):
            return None

    async def aclose(self) -> None:
        """Write every row, which takes as long as the disk does, and close the database."""
        await asyncio.to_thread(self._journal.close)
        await self._reading.aclose()

    async def run(self) -> None:
        """Read the spending until cancelled."""
        while True:
            if self._spends:
                await self._read_spent()
                await self._read_unknown()
            await asyncio.sleep(READ_EVERY)

    async def _read_spent(self) -> None:
        """Read the changes, and pass them to the limits."""
        periods = self._registry.periods(self._wall())
        self.settling()  # The units settled so far belong to one tick, even if none follows.
        try:
            update = await self._read_in_thread(lambda reader: self._read_changes(reader, periods))
        except _InternalReadError as error:
            self._log_trouble(str(error))
            return
        except LedgerError as error:
            self._log_trouble(str(error) if self._failing_long() else "")
            return
        self._log_trouble("")
        self._failing = None
        mark, touched = self._marks_of(update.loaded.get(self._journal.process, 0))
        of_users = self._user_changes(update, periods)
        for period, sums in update.sums.items():
            every = {**sums, **users} if (users := of_users.get(period)) else sums
            self._registry.load(period, periods[period][0], every, mark, touched)
        self._read = True

    def _read_changes(self, reader: LedgerReader, periods: Mapping[Period, tuple[int, int]]) -> TotalsUpdate[Period]:
        """Read the changed sums, including the counted end users. Runs in a thread."""
        known = self._user_totals
        update = self._totals.refresh(reader, periods, int(self._wall()), known.batch if len(known) else None)
        return replace(update, users=[each for each in update.users if each.scope in known])

    def _user_changes(
        self, update: TotalsUpdate[Period], periods: Mapping[Period, tuple[int, int]]
    ) -> Mapping[Period, Mapping[str, Amounts]]:
        """Return the changed sums of end users. A user whose sums cannot be updated is read again at its next
        request."""
        starts = self._user_starts(periods)
        sums, stale = self._user_totals.follow(update.users, update.batch, starts, int(self._wall()))
        self._user_totals.forget(stale)
        return sums

    def _user_starts(self, periods: Mapping[Period, tuple[int, int]]) -> dict[Period, int]:
        """Return the first slots of the periods by which users are counted."""
        return {period: begin // SLOT_SECONDS for period, (begin, _) in periods.items() if period in self._user_periods}

    async def _read_unknown(self) -> None:
        """Read the spending of users whose requests were admitted before it was known."""
        if self._read and self._failing is None and (some := self.unknown(USERS_PER_READ)):
            await self.users.read_some(some)

    async def _read_users(self, scopes: Sequence[str]) -> None:
        """Read the spending of some end users. Raises LedgerError and TimeoutError."""
        periods, now = self._registry.periods(self._wall()), int(self._wall())
        starts = self._user_starts(periods)
        self.settling()
        slots, recent = list(starts.values()), recent_slot(now)
        base = await self._read_in_thread(lambda reader: reader.users_from(scopes, slots, recent), USERS_WITHIN)
        mark, touched = self._marks_of(base.loaded.get(self._journal.process, 0))
        for period, sums in self._user_totals.begin(scopes, base, starts, now).items():
            self._registry.load_some(period, periods[period][0], sums, mark, touched)

    async def _read_in_thread(self, work: Callable[[LedgerReader], T], longest: float | None = None) -> T:
        """Return the result of a reading in a thread. Raises LedgerError, also for a bug of the gateway, and
        TimeoutError."""
        try:
            return await self._reading.read(work, longest)
        except (LedgerError, TimeoutError):
            raise
        except Exception as error:  # A bug of the gateway: requests are served without the spending.
            if not self._logged:
                self._log.exception("ledger: a fault while reading")
            raise _InternalReadError(type(error).__name__) from None

    def _failing_long(self) -> bool:
        """Return whether the database could not be read for MAKING_SECONDS."""
        now = asyncio.get_running_loop().time()
        if self._failing is None:
            self._failing = now
        return now - self._failing >= MAKING_SECONDS

    def _log_trouble(self, trouble: str) -> None:
        """Log a change of the reason why the ledger cannot be read."""
        if trouble == self._logged:
            return
        self._logged = trouble
        if trouble:
            self._log.warning("ledger: the spending cannot be read: %s", trouble)
        else:
            self._log.info("ledger: the spending is read again")
