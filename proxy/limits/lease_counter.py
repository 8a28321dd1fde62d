"""Who counts for several processes without Redis: the supervisor of workers. Time is an argument.

The same arithmetic as the script of `proxy/shared_state/redis_leases.py`, step by step: where one changes, the other
does, and a test compares them on a real server.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from proxy.limits.gcra import DEBT
from proxy.shared_state.lease import TRIP, LeaseAsk, LeaseGrant, PlacesAsk, RateAsk, SpentAsk
from proxy.shared_state.lease_keeper import EQUAL_ALONE, GONE

SECOND: Final = 1_000_000
"""Times are in microseconds."""

TURNS_APART: Final = 3 * SECOND
"""The longest time for which a process gets its share of scarce units after it was last heard of."""

FIELDS_HOLD: Final = GONE * SECOND
RATES_HOLD: Final = 60 * SECOND
"""How long the places and the spending of a process count, and what it may have taken of a rate alone; and how long it
is remembered what it gave back of a rate, after it was last heard of. For how long its demand counts it says itself."""

SILENT: Final = 3 * SECOND
"""The time after which a process has read what the ledger had loaded, and told it, unless it has ended."""

KEPT: Final = 60 * SECOND
FIELDS_KEPT: Final = 20 * SECOND
"""How long a key is kept after all that was granted is paid for, and how long one without a rate."""

DIVIDED: Final = 1 - EQUAL_ALONE
"""The part of a limit that is divided by demand for the case that processes go on alone: what one was told is not told
to another as well, so that all parts together are never more than the limit."""

SCARCE: Final = 0.05
"""Seconds of all demand: with fewer units left, each process gets its share only."""

FIRST_TURN: Final = 20_000
"""The time for which a process that was not heard of before gets its share."""

SWEEP: Final = 1024
"""Keys above which those that are over are looked for."""


@dataclass(frozen=True, slots=True)
class _Told:
    """What one process said, and was told: an amount, when, for how long that holds, and what it gave back in its
    lease's life; after how long a silence it goes on alone (0: never), with which part of the limit, and how many units
    were left for all; what it may take beside the amount of spending, or of the amount of places (`claim`); and of
    spending the ledger's sum that it has read. Of spending, requests in flight reserve `total` of the amount."""

    amount: float
    at: float
    holds: float
    life: int = 0
    total: int = 0
    again: float = 0.0
    part: float = 0.0
    level: int = 0
    equal: float = 0.0
    claim: int = 0
    base: int = 0

    def alone(self, now: float, unit: float) -> float:
        """Return the time that pays for what the process may have taken alone: its part of what was left then and came
        since."""
        silent = now - self.at
        if not 0 < self.again <= silent <= FIELDS_HOLD:
            return 0.0
        return self.part * max(0.0, self.level * unit + silent)


@dataclass(slots=True, eq=False)
class CountedKey:
    """What is counted under one key: what processes said, and of a rate when all is paid for, and since when it is
    counted. `ended` are those who have ended and may have taken something of it alone that is not set aside yet."""

    amounts: dict[str, _Told] = field(default_factory=dict)
    paid: float | None = None
    written: float | None = None
    epoch: int = 0
    over: float = math.inf
    ended: list[_Told] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class _SeenAmounts:
    sum: float = 0.0
    count: int = 1
    own: _Told | None = None
    promised: float = 0.0
    silent: float = 0.0


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
            told = kept.amounts.pop(process, None)
            if told is not None and told.again:
                kept.ended.append(told)

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
                return _spent(kept, process, ask, now)

    def _sweep(self, now: float) -> None:
        self._keys = {key: kept for key, kept in self._keys.items() if now <= kept.over}
        self._sweep_at = max(SWEEP, 2 * len(self._keys))


def _read(kept: CountedKey, process: str, now: float, longest: float) -> _SeenAmounts:
    """Add up what the other processes have, and forget what is too old, or from after a clock that was set back."""
    seen = _SeenAmounts()
    for name, told in list(kept.amounts.items()):
        if abs(now - told.at) > longest:
            del kept.amounts[name]
        elif name == process:
            seen.own = told
        else:
            seen.silent = max(seen.silent, abs(now - told.at))
            if told.amount > 0 and abs(now - told.at) <= told.holds:
                seen.sum += told.amount
                seen.count += 1
            if abs(now - told.at) <= max(told.holds, FIELDS_HOLD if told.again else 0.0):
                seen.promised += max(0.0, told.part - told.equal)
    return seen


def _epoch(kept: CountedKey, now: float) -> int:
    """Return since when a key is counted: from now on, if it was not."""
    kept.epoch = kept.epoch or int(now)
    return kept.epoch


def _share(own: float, total: float, count: int) -> float:
    """Return a process's part of all: by demand, with a tenth that all have alike, so that none starts at nothing."""
    # Rounded up, the parts of one of 13 places add up to more than all of them.
    return min(1.0, 0.9 * own / total + 0.1 / count) if total > 0 else 1 / count


def _rate(kept: CountedKey, process: str, ask: RateAsk, now: float) -> LeaseGrant:
    seen = _read(kept, process, now, RATES_HOLD)
    own, unit = seen.own, SECOND / ask.per_second
    ahead = ask.burst * unit
    paid = now if kept.paid is None else kept.paid
    if kept.written is not None and kept.written > now:
        paid -= kept.written - now
    paid = _set_aside(kept, min(paid, now + (1 + DEBT) * ahead), now, unit, ahead)
    back = ask.back * unit
    if own is not None and own.life == ask.life != 0:
        back = (ask.total - own.total) * unit
    elif ask.epoch not in (0, kept.epoch):
        paid = max(paid, now + ask.owed * unit)
        if kept.epoch:  # nobody has set its part aside here
            back -= min(ask.paid * unit, ask.share * max(0.0, min(now - kept.epoch, ahead)))
    if own is not None and 0 <= now - own.at <= FIELDS_HOLD:
        back += own.alone(now, unit) - min(ask.paid * unit, own.part * (now - own.at))
    if back < 0:
        paid = max(paid, now)
    paid -= back
    base = max(paid, now)
    exact = (now + ahead - base) / unit
    left = min(ask.burst, math.floor(exact + TRIP * SECOND / unit + 0.000001))
    total = seen.sum + ask.demand
    granted = max(0, min(ask.want, left))
    if left < SCARCE * total:
        last = now - FIRST_TURN if own is None or abs(now - own.at) > TURNS_APART else own.at
        since = max(0.0, now - last) / SECOND
        turn = _share(ask.demand, total, seen.count) * ask.per_second * since
        granted = min(granted, max(1, ask.least, math.ceil(turn)))
    if granted < ask.least:
        granted = 0
    if granted > 0:
        paid = base + granted * unit
    kept.paid, kept.written = paid, now
    by_demand = ask.demand / total if total > 0 else 1 / seen.count
    part = ask.equal + max(0.0, min(DIVIDED * by_demand, DIVIDED - seen.promised))
    times = ask.holds * SECOND, ask.life, ask.total, ask.again * SECOND
    kept.amounts[process] = _Told(ask.demand, now, *times, max(part, ask.share), left - granted, ask.equal)
    kept.over = now + math.ceil(max(ahead, paid - now) / 1000) * 1000 + KEPT
    return LeaseGrant(granted, exact - granted, min(1.0, part), seen.count, _epoch(kept, now))


def _set_aside(kept: CountedKey, paid: float, now: float, unit: float, ahead: float) -> float:
    """Return when all is paid for, with what processes that fell silent may have taken since this key was last written.
    A part of a burst at once at most is still to be paid."""
    written = now if kept.written is None else min(kept.written, now)
    more = unpaid = 0.0
    for told in (*kept.amounts.values(), *kept.ended):
        if (taken := told.alone(now, unit)) > 0:
            taken -= told.alone(written, unit)
            more += taken
            unpaid += min(taken, told.part * ahead)
    kept.ended.clear()
    return max(max(paid, written) + more, max(paid, now) + unpaid) if more > 0 else paid


def _places(kept: CountedKey, process: str, ask: PlacesAsk, now: float) -> LeaseGrant:
    seen = _read(kept, process, now, FIELDS_HOLD)
    granted = int(max(0, min(ask.want, ask.capacity - seen.sum - ask.held)))
    held = ask.held + granted
    if held:
        kept.amounts[process] = _Told(held, now, FIELDS_HOLD, claim=max(0, held - ask.used))
    else:
        kept.amounts.pop(process, None)
    kept.over = now + FIELDS_KEPT
    share = _share(held, seen.sum + held, seen.count)
    used = ask.used + sum([told.amount - told.claim for name, told in kept.amounts.items() if name != process])
    return LeaseGrant(granted, used, share, seen.count, _epoch(kept, now), seen.silent / SECOND)


def _spent(kept: CountedKey, process: str, ask: SpentAsk, now: float) -> LeaseGrant:
    """Grant a claim on what is left. The ledger's sum is the highest that anybody has read. Who has read less may count
    rows among its own that this sum holds too: counted twice until it reads them, so that nothing is left out. Of one
    that has been silent for longer than that takes, who was killed, they are taken to be in the sum."""
    seen = _read(kept, process, now, FIELDS_HOLD)
    others = [told for name, told in kept.amounts.items() if name != process]
    base = max([ask.base, *[told.base for told in others]])
    claimed, own, reserved, twice = 0, 0.0, 0.0, float(min(ask.amount - ask.reserved, base - ask.base))
    doubtful = twice
    for told in others:
        both = min(told.amount, base - told.base)
        settled = min(told.amount - told.total, both)
        reserved += told.total - (both - settled)  # what was reserved may be settled and in the sum since
        doubtful += settled
        claimed += told.claim
        if abs(now - told.at) < SILENT:
            twice, own = twice + both, own + told.amount
        else:
            own += told.amount - both
    left = ask.most - base - ask.amount - own - claimed - ask.held
    granted = int(max(0, min(ask.want, left)))
    if granted < ask.least:
        granted = 0
    claim = ask.held + granted
    if ask.amount or claim or ask.base:
        counts = {"total": ask.reserved, "claim": claim, "base": ask.base}
        kept.amounts[process] = _Told(ask.amount, now, FIELDS_HOLD, **counts)
    else:
        kept.amounts.pop(process, None)
    kept.over = now + FIELDS_KEPT
    known = base - ask.base + own - twice
    return LeaseGrant(granted, known, 1.0, seen.count, _epoch(kept, now), claimed + twice, reserved, doubtful)
