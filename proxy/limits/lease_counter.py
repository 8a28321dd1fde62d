"""The coordinator of several processes without Redis, in the supervisor of workers. Time is an argument.

Its arithmetic equals the script of `proxy/shared_state/redis_leases.py`, step by step. Change both together: a test
compares them on a real server.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from proxy.limits.gcra import MAX_DEBT_BURSTS
from proxy.shared_state.lease import GRANT_EARLY, LeaseGrant, LeaseRequest, RateRequest, SlotsRequest, SpendingRequest
from proxy.shared_state.lease_keeper import EQUAL_PART_ALONE, GONE_SECONDS

SECOND: Final = 1_000_000
"""A second in microseconds, the unit of all times here."""

LONGEST_SHARE_TIME: Final = 3 * SECOND
"""If units are scarce, a process gets its share for the time since its last report. If that time is longer than
LONGEST_SHARE_TIME, it counts as FIRST_SHARE_TIME."""

REPORT_HOLDS: Final = GONE_SECONDS * SECOND
RATE_REPORT_HOLDS: Final = 60 * SECOND
"""REPORT_HOLDS is how long after its last report the slots and the spending of a process count, and the units of a rate
that it may have taken while it counted alone. RATE_REPORT_HOLDS is how long the units of a rate that a process gave
back are remembered. Each report contains the time for which its demand counts."""

LEDGER_READ_WITHIN: Final = 3 * SECOND
"""The time within which a live process reads the rows that the ledger has loaded, and reports that it has read them."""

RATE_KEY_HOLDS: Final = 60 * SECOND
KEY_HOLDS: Final = 20 * SECOND
"""RATE_KEY_HOLDS is how long the key of a rate is stored after all granted units are paid for. KEY_HOLDS is how long a
key of slots or spending is stored after the last exchange."""

DIVIDED_BY_DEMAND: Final = 1 - EQUAL_PART_ALONE
"""The part of a limit that is divided in proportion to demand among processes that count alone. A part that is reported
to one process is not reported to another, so all parts together are at most the limit."""

SCARCE_SECONDS: Final = 0.05
"""If the units that are left cover less than this many seconds of the demand of all processes, each process gets only
its share."""

FIRST_SHARE_TIME: Final = 20_000
"""The time for which a process gets its share of scarce units if it has no recent report."""

SWEEP_ABOVE: Final = 1024
"""The number of keys above which expired keys are removed."""


@dataclass(frozen=True, slots=True)
class _ProcessReport:
    """The last report of one process, and the reply to it.

    - `amount` is the process's demand of a rate, its slots, or its spending. `at` is the time of the report, and
      `holds` is how long the report counts.
    - Rates: `total` is all units that the process gave back in the `life` of its lease. After a silence of `silence` it
      counts alone (0: never), with the part `part` of the limit. `equal` is the part of an idle process. `level` is the
      units left for all.
    - `claim` is the spending that the process may take besides `amount`, or the number of its slots that no request
      uses.
    - Spending: `base` is the ledger's sum that the process has read. Its requests in flight reserve `total` of
      `amount`.
    """

    amount: float
    at: float
    holds: float
    life: int = 0
    total: int = 0
    silence: float = 0.0
    part: float = 0.0
    level: int = 0
    equal: float = 0.0
    claim: int = 0
    base: int = 0

    def alone(self, now: float, unit: float) -> float:
        """Return the time that pays for the units that the process may have taken while it counted alone. These units
        are its part of the units that were left at its report, and of all units since then."""
        silent = now - self.at
        if not 0 < self.silence <= silent <= REPORT_HOLDS:
            return 0.0
        return self.part * max(0.0, self.level * unit + silent)


@dataclass(slots=True, eq=False)
class CountedKey:
    """The state of one key: the reports of processes, and for a rate the time when all granted units are paid for.
    `epoch` is the time since which the key is counted. `ended` are reports of processes that have ended. The units that
    they took while they counted alone may not be set aside yet."""

    amounts: dict[str, _ProcessReport] = field(default_factory=dict)
    paid: float | None = None
    written: float | None = None
    epoch: int = 0
    over: float = math.inf
    ended: list[_ProcessReport] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class _OtherProcesses:
    sum: float = 0.0
    count: int = 1
    own: _ProcessReport | None = None
    promised: float = 0.0
    silent: float = 0.0


@dataclass(slots=True, eq=False)
class LeaseCounter:
    """Grants the units of all limits to the processes that exchange reports with it."""

    _keys: dict[str, CountedKey] = field(default_factory=dict)
    _sweep_at: int = SWEEP_ABOVE

    def exchange(self, process: str, requests: Sequence[LeaseRequest], now: float) -> list[LeaseGrant]:
        """Return a grant for each request of a process, in order. `now` is in microseconds since any fixed moment."""
        if len(self._keys) > self._sweep_at:
            self._sweep(now)
        return [self._grant(process, request, now) for request in requests]

    def forget(self, process: str) -> None:
        """Remove the demand, the slots and the spending of a process that has ended. Granted units of a rate stay
        granted."""
        for counted in self._keys.values():
            report = counted.amounts.pop(process, None)
            if report is not None and report.silence:
                counted.ended.append(report)

    def _grant(self, process: str, request: LeaseRequest, now: float) -> LeaseGrant:
        counted = self._keys.get(request.key)
        if counted is None or now > counted.over:
            counted = self._keys[request.key] = CountedKey()
        match request:
            case RateRequest():
                return _grant_rate(counted, process, request, now)
            case SlotsRequest():
                return _grant_slots(counted, process, request, now)
            case SpendingRequest():
                return _grant_spending(counted, process, request, now)

    def _sweep(self, now: float) -> None:
        self._keys = {key: counted for key, counted in self._keys.items() if now <= counted.over}
        self._sweep_at = max(SWEEP_ABOVE, 2 * len(self._keys))


def _read(counted: CountedKey, process: str, now: float, longest: float) -> _OtherProcesses:
    """Sum up the reports of the other processes. Remove the reports that are too old, and the reports that are dated
    later than now because the clock was set back."""
    others = _OtherProcesses()
    for name, report in list(counted.amounts.items()):
        if abs(now - report.at) > longest:
            del counted.amounts[name]
        elif name == process:
            others.own = report
        else:
            others.silent = max(others.silent, abs(now - report.at))
            if report.amount > 0 and abs(now - report.at) <= report.holds:
                others.sum += report.amount
                others.count += 1
            if abs(now - report.at) <= max(report.holds, REPORT_HOLDS if report.silence else 0.0):
                others.promised += max(0.0, report.part - report.equal)
    return others


def _epoch(counted: CountedKey, now: float) -> int:
    """Return the time since when a key is counted, and set it to now for a new key."""
    counted.epoch = counted.epoch or int(now)
    return counted.epoch


def _share_of(own: float, total: float, count: int) -> float:
    """Return a process's share by demand. A tenth is divided equally, so that every process has a share before it has
    any demand."""
    # The share is not rounded up: the rounded parts of 13 slots, for example, would add up to more than 13.
    return min(1.0, 0.9 * own / total + 0.1 / count) if total > 0 else 1 / count


def _grant_rate(counted: CountedKey, process: str, request: RateRequest, now: float) -> LeaseGrant:
    others = _read(counted, process, now, RATE_REPORT_HOLDS)
    own, unit = others.own, SECOND / request.per_second
    burst_time = request.burst * unit
    paid = now if counted.paid is None else counted.paid
    if counted.written is not None and counted.written > now:
        paid -= counted.written - now
    paid = _set_aside(counted, min(paid, now + (1 + MAX_DEBT_BURSTS) * burst_time), now, unit, burst_time)
    back = request.back * unit
    if own is not None and own.life == request.life != 0:
        back = (request.total - own.total) * unit
    elif request.epoch not in (0, counted.epoch):
        paid = max(paid, now + request.owed * unit)
        if counted.epoch:  # This newer key has not set the process's part aside.
            back -= min(request.paid * unit, request.share * max(0.0, min(now - counted.epoch, burst_time)))
    if own is not None and 0 <= now - own.at <= REPORT_HOLDS:
        back += own.alone(now, unit) - min(request.paid * unit, own.part * (now - own.at))
    if back < 0:
        paid = max(paid, now)
    paid -= back
    base = max(paid, now)
    exact_level = (now + burst_time - base) / unit
    left = min(request.burst, math.floor(exact_level + GRANT_EARLY * SECOND / unit + 0.000001))
    total = others.sum + request.demand
    granted = max(0, min(request.want, left))
    if left < SCARCE_SECONDS * total:
        last = now - FIRST_SHARE_TIME if own is None or abs(now - own.at) > LONGEST_SHARE_TIME else own.at
        since = max(0.0, now - last) / SECOND
        fair_share = _share_of(request.demand, total, others.count) * request.per_second * since
        granted = min(granted, max(1, request.least, math.ceil(fair_share)))
    if granted < request.least:
        granted = 0
    if granted > 0:
        paid = base + granted * unit
    counted.paid, counted.written = paid, now
    by_demand = request.demand / total if total > 0 else 1 / others.count
    part = request.equal + max(0.0, min(DIVIDED_BY_DEMAND * by_demand, DIVIDED_BY_DEMAND - others.promised))
    times = request.holds * SECOND, request.life, request.total, request.silence * SECOND
    counted.amounts[process] = _ProcessReport(
        request.demand, now, *times, max(part, request.share), left - granted, request.equal
    )
    counted.over = now + math.ceil(max(burst_time, paid - now) / 1000) * 1000 + RATE_KEY_HOLDS
    return LeaseGrant(granted, exact_level - granted, min(1.0, part), others.count, _epoch(counted, now))


def _set_aside(counted: CountedKey, paid: float, now: float, unit: float, burst_time: float) -> float:
    """Return when all units are paid for, including the units that silent processes may have taken since the key was
    last written. Of these units at most their part of one burst is still to be paid."""
    written = now if counted.written is None else min(counted.written, now)
    more = unpaid = 0.0
    for report in (*counted.amounts.values(), *counted.ended):
        if (taken := report.alone(now, unit)) > 0:
            taken -= report.alone(written, unit)
            more += taken
            unpaid += min(taken, report.part * burst_time)
    counted.ended.clear()
    return max(max(paid, written) + more, max(paid, now) + unpaid) if more > 0 else paid


def _grant_slots(counted: CountedKey, process: str, request: SlotsRequest, now: float) -> LeaseGrant:
    others = _read(counted, process, now, REPORT_HOLDS)
    granted = int(max(0, min(request.want, request.capacity - others.sum - request.held)))
    held = request.held + granted
    if held:
        counted.amounts[process] = _ProcessReport(held, now, REPORT_HOLDS, claim=max(0, held - request.used))
    else:
        counted.amounts.pop(process, None)
    counted.over = now + KEY_HOLDS
    share = _share_of(held, others.sum + held, others.count)
    used = request.used + sum(
        [report.amount - report.claim for name, report in counted.amounts.items() if name != process]
    )
    return LeaseGrant(granted, used, share, others.count, _epoch(counted, now), others.silent / SECOND)


def _grant_spending(counted: CountedKey, process: str, request: SpendingRequest, now: float) -> LeaseGrant:
    """Grant a claim on the remaining units. The ledger's sum is the highest one that any process has read. A process
    that has read a lower sum may count rows as its own that the higher sum includes. These rows count twice until the
    process reads the higher sum, so that none is left out. If a process has been silent for LEDGER_READ_WITHIN, it was
    killed, and its rows count as included in the sum."""
    others = _read(counted, process, now, REPORT_HOLDS)
    reports = [report for name, report in counted.amounts.items() if name != process]
    base = max([request.base, *[report.base for report in reports]])
    claimed, own, reserved = 0, 0.0, 0.0
    doubtful = counted_twice = float(min(request.amount - request.reserved, base - request.base))
    for report in reports:
        both = min(report.amount, base - report.base)
        settled = min(report.amount - report.total, both)
        reserved += report.total - (both - settled)  # The reserved units may have been settled since and be in the sum.
        doubtful += settled
        claimed += report.claim
        if abs(now - report.at) < LEDGER_READ_WITHIN:
            counted_twice, own = counted_twice + both, own + report.amount
        else:
            own += report.amount - both
    left = request.most - base - request.amount - own - claimed - request.held
    granted = int(max(0, min(request.want, left)))
    if granted < request.least:
        granted = 0
    claim = request.held + granted
    if request.amount or claim or request.base:
        counts = {"total": request.reserved, "claim": claim, "base": request.base}
        counted.amounts[process] = _ProcessReport(request.amount, now, REPORT_HOLDS, **counts)
    else:
        counted.amounts.pop(process, None)
    counted.over = now + KEY_HOLDS
    known = base - request.base + own - counted_twice
    return LeaseGrant(
        granted, known, 1.0, others.count, _epoch(counted, now), claimed + counted_twice, reserved, doubtful
    )
