"""The additions of a batch of rows to the sums: the spending of each scope in each quarter of an hour, and the usage of
each day. Spending of end users has its own database table, which a process reads only for the users that it limits,
because there may be millions.

This module does no I/O. All sums are of integers, so the same rows in other batches give the same sums.

A slot is a quarter of an hour. The offsets of all time zones are multiples of it, so every period of every zone
consists of whole slots (checked against the tz database, 2020 to 2030, November 2026).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, NamedTuple, TypeAlias, TypeVar
from zoneinfo import ZoneInfoNotFoundError

from config.time_zones import zone_named
from proxy.ledger.ledger_row import INCOMPLETE, LedgerRow
from proxy.ledger.ledger_settings import LedgerRefusedError
from proxy.limits.limit import ScopeSide, Subject, scopes_of, user_scope

SLOT_MS: Final = 900_000
"""The length of a slot in ms. The number of a slot is a time in ms since 1970, divided by this length."""

SUCCESS: Final = "ok"
"""The outcome of requests without an error."""

UNPRICED: Final = (
    "(estimated > 1 OR cost IS NULL AND attempts > 0"
    " AND (outcome = 'ok' OR coalesce(tokens_in, 0) + coalesce(tokens_out, 0) > 0))"
)
"""`is_unpriced` in SQL for both databases."""

K = TypeVar("K")

DayKey: TypeAlias = tuple[str, str, str, str, str]
"""Day, team, key, model and deployment."""


class SlotSpend(NamedTuple):
    """The use of a scope in a slot. `cost` is in billionths of a USD. It includes no cost, or only a part of the cost,
    of the `unpriced` requests."""

    scope: str
    slot: int
    requests: int
    tokens: int
    cost: int
    unpriced: int


class UsageSums(NamedTuple):
    """Sums over requests. `errors` are the requests with another outcome than SUCCESS. `unpriced` are the ones for
    which `is_unpriced` is true. `ms` is the total duration of the requests in ms. `cost` is in billionths of a USD,
    without `unpriced` requests."""

    requests: int = 0
    errors: int = 0
    tokens_in: int = 0
    tokens_cached: int = 0
    tokens_out: int = 0
    tokens_reasoning: int = 0
    cost: int = 0
    unpriced: int = 0
    ms: int = 0

    @property
    def known_cost(self) -> int | None:
        """The known cost: `None` if no price is known, a lower bound if some prices are not."""
        return None if self.unpriced and not self.cost else self.cost

    def plus(self, other: "UsageSums") -> "UsageSums":
        """Return the sum of these sums and `other`."""
        return UsageSums(*(mine + its for mine, its in zip(self, other, strict=True)))


@dataclass(slots=True)
class Rollup:
    """The additions of one batch."""

    spend: dict[tuple[str, int], list[int]] = field(default_factory=dict)
    users: dict[tuple[str, int], list[int]] = field(default_factory=dict)
    days: dict[DayKey, list[int]] = field(default_factory=dict)

    def spent(self) -> list[SlotSpend]:
        """The additions to `spend`, in the same order for every batch."""
        return [SlotSpend(scope, slot, *sums) for (scope, slot), sums in sorted(self.spend.items())]

    def spent_by_users(self) -> list[SlotSpend]:
        """The additions to `spend_user`, in the same order for every batch."""
        return [SlotSpend(scope, slot, *sums) for (scope, slot), sums in sorted(self.users.items())]

    def used(self) -> list[tuple[str | int, ...]]:
        """The additions to `usage_day`: keys and sums."""
        return [(*key, *sums) for key, sums in sorted(self.days.items())]


class Days:
    """The day of each slot in a time zone, as YYYY-MM-DD."""

    def __init__(self, zone: str) -> None:
        try:
            self._zone = zone_named(zone)
        except ZoneInfoNotFoundError:
            raise LedgerRefusedError(f"no time zone {zone!r} is known here: install the package tzdata") from None
        self._known: dict[int, str] = {}

    def of(self, slot: int) -> str:
        """Return the day of a slot."""
        day = self._known.get(slot)
        if day is None:
            if len(self._known) >= 4096:
                self._known.clear()
            day = self._known[slot] = self.at(slot * SLOT_MS).date().isoformat()
        return day

    def at(self, ms: int) -> datetime:
        """Return a time in ms as a time of the zone."""
        return datetime.fromtimestamp(ms / 1000, UTC).astimezone(self._zone)

    def midnight(self, day: datetime) -> int:
        """Return the begin of the day of a local time, in ms. If midnight does not exist, it is the next existing
        time."""
        local = datetime(day.year, day.month, day.day, tzinfo=self._zone)
        return round(local.astimezone(UTC).timestamp() * 1000)


def scopes(row: LedgerRow) -> tuple[str, ...]:
    """Return the scopes in which the row counts, under the names that `limits` gives them. There are none if no vendor
    was called."""
    if not row.attempts:
        return ()
    subject = Subject(row.team, row.key_name, row.model, row.deployment or "")
    found = scopes_of(ScopeSide.CLIENT, subject)
    return (*found, *scopes_of(ScopeSide.TARGET, subject)) if subject.target else found


def is_unpriced(row: LedgerRow) -> bool:
    """Return whether the cost of a row is unknown, in full or in part. A call that failed and used no tokens costs
    nothing."""
    if row.estimated & INCOMPLETE:
        return True
    used = row.outcome == SUCCESS or (row.tokens_in or 0) + (row.tokens_out or 0) > 0
    return row.cost is None and row.attempts > 0 and used


def roll_up(rows: Iterable[LedgerRow], day_of: Callable[[int], str]) -> Rollup:
    """Return the additions of the rows. `day_of` returns the day of a slot. Rows of the same group are summed up first,
    because a batch has many of them and each counts in seven sums."""
    made = Rollup()
    groups: dict[tuple[int, str, str, str, str | None, bool], tuple[LedgerRow, list[int]]] = {}
    for row in rows:
        asked = row.attempts > 0
        group = (row.time // SLOT_MS, row.team, row.key_name, row.model, row.deployment, asked)
        found = groups.get(group)
        if found is None:
            found = groups[group] = row, [0] * len(UsageSums._fields)
        sums, unknown = found[1], is_unpriced(row)
        if asked and row.user_name:
            used_by = (1, (row.tokens_in or 0) + (row.tokens_out or 0), row.cost or 0, int(unknown))
            _add(made.users, (user_scope(row.team, row.user_name), row.time // SLOT_MS), used_by)
        sums[0] += 1
        if row.outcome != SUCCESS:
            sums[1] += 1
        sums[2] += row.tokens_in or 0
        sums[3] += row.tokens_cached or 0
        sums[4] += row.tokens_out or 0
        sums[5] += row.tokens_reasoning or 0
        if row.cost is not None:
            sums[6] += row.cost
        if unknown:
            sums[7] += 1
        sums[8] += row.ms
    for row, each in groups.values():
        used, slot = UsageSums(*each), row.time // SLOT_MS
        for scope in scopes(row):
            spent = (used.requests, used.tokens_in + used.tokens_out, used.cost, used.unpriced)
            _add(made.spend, (scope, slot), spent)
        _add(made.days, (day_of(slot), row.team, row.key_name, row.model, row.deployment or ""), used)
    return made


def _add(sums: dict[K, list[int]], key: K, numbers: tuple[int, ...]) -> None:
    found = sums.get(key)
    if found is None:
        sums[key] = list(numbers)
    else:
        for position, number in enumerate(numbers):
            found[position] += number
