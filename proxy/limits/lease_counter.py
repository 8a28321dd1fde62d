"""Who counts for several processes without Redis: the supervisor of workers. Time is an argument.

The same arithmetic as the script of `proxy/shared_state/redis_leases.py`, step by step: where one changes, the other
does, and a test compares them on a real server.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from proxy.limits.gcra import DEBT
from proxy.shared_state.lease import LeaseAsk, LeaseGrant, PlacesAsk, RateAsk, SpentAsk

SECOND: Final = 1_000_000
"""Times are in microseconds."""

DEMAND_HOLDS: Final = 3 * SECOND
FIELDS_HOLD: Final = 10 * SECOND
"""How long the demand of a process counts, and its places and spending, after it was last heard of."""

KEPT: Final = 60 * SECOND
FIELDS_KEPT: Final = 20 * SECOND
"""How long a key is kept after all that was granted is paid for, and how long one without a rate."""

SCARCE: Final = 0.05
"""Seconds of all demand: with fewer units left, each process gets its share only."""

FIRST_TURN: Final = 20_000
"""The time for which a process that was not heard of before gets its share."""

SWEEP: Final = 1024
"""Keys above which those that are over are looked for."""


@dataclass(slots=True, eq=False)
class CountedKey:
    """What is counted under one key: amounts of processes with their times, and of a rate when all is paid for."""

    amounts: dict[str, tuple[float, float]] = field(default_factory=dict)
    paid: float | None = None
    written: float | None = None
    over: float = math.inf


@dataclass(slots=True, eq=False)
class _SeenAmounts:
    sum: float = 0.0
    count: int = 1
    last: float | None = None


@dataclass(slots=True, eq=False)
class LeaseCounter:
    """Counts for all processes that ask it."""

    _keys: dict[str, CountedKey] = field(default_factory=dict)
    _sweep_at: int = SWEEP

    def exchange(self, process: str, asks: Sequence[LeaseAsk], now: float) -> list[LeaseGrant]:
        """Answer the entries of a process, in order. `now` is in microseconds from any point."""
        if len(self._keys) > self._sweep_at:
            self._sweep(now)
        return [self._answer(process, ask, now) for ask in asks]

    def forget(self, process: str) -> None:
        """Drop the demand, the places and the spending of a process that has ended. What was granted of a rate stays
        granted."""
        for kept in self._keys.values():
            kept.amounts.pop(process, None)

    def _answer(self, process: str, ask: LeaseAsk, now: float) -> LeaseGrant:
        kept = self._keys.get(ask.key)
        if kept is None or now > kept.over:
            kept = self._keys[ask.key] = CountedKey()
        match ask:
            case RateAsk():
                return _rate(kept, process, ask, now)
            case PlacesAsk():
                return _places(kept, process, ask, now)
            case SpentAsk():
                seen = _read(kept, process, now, FIELDS_HOLD)
                _write(kept, process, ask.amount, now, FIELDS_KEPT)
                return LeaseGrant(0, seen.sum, 1.0, seen.count)

    def _sweep(self, now: float) -> None:
        self._keys = {key: kept for key, kept in self._keys.items() if now <= kept.over}
        self._sweep_at = max(SWEEP, 2 * len(self._keys))


def _read(kept: CountedKey, process: str, now: float, longest: float) -> _SeenAmounts:
    """Add up what the other processes have, and forget what is too old, or from after a clock that was set back."""
    seen = _SeenAmounts()
    for name, (amount, at) in list(kept.amounts.items()):
        if abs(now - at) > longest:
            del kept.amounts[name]
        elif name == process:
            seen.last = at
        else:
            seen.sum += amount
            seen.count += 1
    return seen


def _write(kept: CountedKey, process: str, amount: float, now: float, holds: float) -> None:
    if amount == 0:
        kept.amounts.pop(process, None)
    else:
        kept.amounts[process] = (amount, now)
    kept.over = now + holds


def _share(own: float, total: float, count: int) -> float:
    """Return a process's part of all: by demand, with a tenth that all have alike, so that none starts at nothing."""
    return 0.9 * own / total + 0.1 / count if total > 0 else 1 / count


def _rate(kept: CountedKey, process: str, ask: RateAsk, now: float) -> LeaseGrant:
    seen = _read(kept, process, now, DEMAND_HOLDS)
    unit = SECOND / ask.per_second
    ahead = ask.burst * unit
    paid = now if kept.paid is None else kept.paid
    if kept.written is not None and kept.written > now:
        paid -= kept.written - now
    paid = min(paid, now + (1 + DEBT) * ahead)
    if ask.back < 0:
        paid = max(paid, now)
    paid -= ask.back * unit
    base = max(paid, now)
    left = math.floor((now + ahead - base) / unit + 0.000001)
    total = seen.sum + ask.demand
    share = _share(ask.demand, total, seen.count)
    granted = max(0, min(ask.want, left))
    if left < SCARCE * total:
        since = max(0.0, now - (now - FIRST_TURN if seen.last is None else seen.last)) / SECOND
        granted = min(granted, max(1, ask.least, math.ceil(share * ask.per_second * since)))
    if granted < ask.least:
        granted = 0
    if granted > 0:
        paid = base + granted * unit
    kept.paid, kept.written = paid, now
    _write(kept, process, ask.demand, now, math.ceil(max(ahead, paid - now) / 1000) * 1000 + KEPT)
    return LeaseGrant(granted, left - granted, share, seen.count)


def _places(kept: CountedKey, process: str, ask: PlacesAsk, now: float) -> LeaseGrant:
    seen = _read(kept, process, now, FIELDS_HOLD)
    granted = int(max(0, min(ask.want, ask.capacity - seen.sum - ask.held)))
    held = ask.held + granted
    _write(kept, process, held, now, FIELDS_KEPT)
    total = seen.sum + held
    return LeaseGrant(granted, total, _share(held, total, seen.count), seen.count)
