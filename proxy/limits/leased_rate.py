"""A rate that several processes share. Units are leased ahead in small blocks, so that few requests wait for them. Time
is an argument.

Unused units go back within half a second. So at most `burst + rate * (t + HOLD_SECONDS)` units pass in any `t` seconds.
A process that counts alone has the part that it was last granted, and all parts together are at most the whole. The
coordinator sets that part aside while a process that used the limit is silent, so the bound holds if one or all are cut
off. There are two exceptions. Units taken in the first SILENCE_LIMIT seconds are counted late. A process that is silent
for longer than GONE_SECONDS may exceed the bound by its part.

After a reconnect the process reports its use once. It stays within its part until all others have reported theirs or
count as gone, because the coordinator may have lost its memory. It does the same if it finds that memory lost. A
process that ends before its report has exceeded the bound by up to its part.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from proxy.limits.gcra import GcraRule, rate_exceeded, rate_used, rule_of
from proxy.limits.leased_units import SILENCE_LIMIT, LeasedUnits
from proxy.limits.limit import SECONDS, Rate
from proxy.limits.limit_views import Exceeded, HeaderLimit, LimitView, rate_view
from proxy.shared_state.lease import GRANT_EARLY, LeaseGrant, RateRequest
from proxy.shared_state.lease_keeper import NEVER, REFUSAL_PAUSE, RESTING, LeaseKeeper, idle_share, still_known

AHEAD_SECONDS: Final = 0.05
"""The seconds of the process's own demand for which units are leased ahead."""

HOLD_SECONDS: Final = 0.5
"""The most seconds for which leased units are valid. For short periods it is a hundredth of the period."""

MAX_AHEAD: Final = 0.01
"""The largest part of a limit that all processes together lease ahead. Each process may always lease ahead the units of
two requests."""

FOREIGN_RETRY: Final = 1.0
"""Seconds until a Redis key is tried again that holds foreign data."""


class LeasedRate:
    """A rate of which this process holds units. Its `_held` state exists only while it is used. At rest a lease stores
    nothing but the time at which all units are paid for."""

    __slots__ = ("_arrival", "_held", "_keeper", "rule", "scope", "standing")

    def __init__(self, scope: str, rate: Rate, keeper: LeaseKeeper) -> None:
        self.scope = scope
        self.rule: GcraRule = rule_of(rate)
        self.standing = RESTING
        self._arrival = NEVER
        self._held: LeasedUnits | None = None
        self._keeper = keeper

    @property
    def key(self) -> str:
        """The key under which the rate is counted. It is built on demand, because a configuration may have ten thousand
        teams."""
        rate = self.rule.rate
        return f"{self.scope} {rate.unit} {rate.period}"

    @property
    def demand(self) -> float:
        """The units a second that this process would use."""
        return 0.0 if self._held is None else self._held.demand

    @property
    def waiting(self) -> int:
        """The units that requests wait for."""
        return 0 if self._held is None else self._held.waiting

    @property
    def balance(self) -> int:
        """The units that this process holds."""
        return 0 if self._held is None else self._held.balance

    def lacks(self, units: int, now: float, wall: float) -> bool:
        """Return whether this process holds too few units now."""
        held = self._held or self._begin()
        if held.local is not None or held.foreign or self._keeper.alone:
            counts_alone, local = self._follow_link(held, now), held.local
            if local is not None and local.lacks(units, now, wall):
                return True
            if counts_alone:
                return False
        if now >= held.expires:
            self._lapse(held)
        burst = self.rule.burst
        return (units if units < burst else burst) > held.balance

    def take(self, units: int, now: float, wall: float) -> None:
        """Take units after a test at the same `now`."""
        held = self._held or self._begin()
        held.demanded += units
        held.size += 0.1 * (units - held.size)
        units = min(units, self.rule.most)
        if held.local is not None:
            held.local.take(units, now, wall)
            if held.counts_alone:
                held.taken_alone += units
                return
        held.balance -= units
        if held.balance < held.refill_below and now >= held.quiet_until:
            self._keeper.wake(self)
        elif held.balance < 0:
            self._keeper.mark_due(self)

    def attempt(self, units: int, now: float, wall: float) -> bool:
        """Test and take units, and return whether there were enough. In the common case only the held units are
        tested."""
        held = self._held
        if (
            held is None
            or (units if units < self.rule.burst else self.rule.burst) > held.balance
            or now >= held.expires
            or held.local is not None
            or held.foreign
            or self._keeper.alone
        ) and self.lacks(units, now, wall):
            return False
        self.take(units, now, wall)
        return True

    def undo(self, units: int) -> None:
        """Give back the units of an attempt at the same `now`. `refused` counts them as demand, once."""
        held = self._held or self._begin()
        held.demanded -= units
        units = min(units, self.rule.most)
        if held.local is not None:
            held.local.undo(units)
        if held.counts_alone:
            held.taken_alone -= units
        else:
            held.balance += units

    def settle(self, reserved: int, used: int) -> None:
        """Replace the reserved units by the used ones. The unused rest goes back to all processes."""
        if used == reserved:
            return
        held, rule = self._held or self._begin(), self.rule
        more = used - reserved if reserved < rule.most > used else rule.correction(reserved, used)
        if held.local is not None:
            held.local.settle(reserved, used)
        if held.counts_alone:
            held.taken_alone += more
        else:
            held.total -= more
            self._keeper.mark_due(self)

    def refused(self, units: int, now: float) -> None:
        """Count a refused request as demand. During a shortage, units are fetched for later requests, because nothing
        else triggers an exchange then."""
        held = self._held or self._begin()
        held.demanded += units
        held.size += 0.1 * (units - held.size)
        if held.quiet_until <= now < held.short_until and not held.counts_alone:
            self._keeper.wake(self)

    def fetchable(self, units: int, now: float) -> bool:
        """Return whether to wait for more units. Do not wait if a recent reply reported that fewer units were left for
        all, during a shortage in which no units are leased ahead, or if this process's own part is used up."""
        held = self._held or self._begin()
        if held.counts_alone or (held.local is not None and held.local.left(now) < 1):
            return False
        if now < held.left_for_all_until and min(units, self.rule.rate.burst) > held.balance + held.left_for_all:
            return False
        return not (now < held.short_until and held.refill_below)

    def add_waiting(self, units: int) -> None:
        """Add a request that waits for these units."""
        held = self._held or self._begin()
        held.least_waiting = min(held.least_waiting, units) if held.waiting else units
        held.waiting += units

    def remove_waiting(self, units: int) -> None:
        """Remove a request that waited for these units."""
        (self._held or self._begin()).waiting -= units

    def wait(self, units: int, now: float, wall: float) -> float:
        """Return about how many seconds it takes until these units pass."""
        held, rule = self._held or self._begin(), self.rule
        alone = 0.0 if held.local is None else held.local.wait(units, now, wall)
        if held.counts_alone:
            return alone
        short = min(units, rule.rate.burst) - self.left(now)
        return max(short * rule.interval, held.quiet_until - now, alone)

    def left(self, now: float) -> float:
        """Return about how many units are left in this process and for all processes. A negative number is a debt."""
        held = self._held
        if held is None:
            return self._common(now)
        if held.counts_alone and held.local is not None:
            return held.local.left(now)
        return min(self.rule.burst, self._common(now) + held.balance)

    def remaining(self, now: float, wall: float) -> int:
        """Return about how many whole units are left."""
        return max(0, math.floor(self.left(now)))

    def for_headers(self, now: float, wall: float) -> HeaderLimit:
        """Return the approximate values for headers."""
        rule, held = self.rule, self._held
        burst = rule.rate.burst
        if self._arrival <= now and (held is None or (held.balance >= 0 and not held.counts_alone)):
            return rule.full
        left = self.left(now)
        if left >= burst:
            return rule.full
        return int(left) if left > 0 else 0, rule.rate.amount, (burst - left) * rule.interval

    def full_in(self, now: float, wall: float) -> float:
        """Return about how many seconds it takes until the whole burst is available again."""
        held = self._held
        if held is not None and held.counts_alone and held.local is not None:
            return held.local.full_in(now, wall)
        return max(0.0, (self.rule.burst - self.left(now)) * self.rule.interval)

    def views(self, scope: str, now: float, wall: float) -> Iterator[LimitView]:
        """Yield the approximate view of the limit."""
        yield rate_view(scope, self.rule.rate, rate_used(self.rule.rate, self.left(now)))

    def exceeded(self, scope: str, units: int, now: float, wall: float) -> Exceeded:
        """Return the details of a refusal. They describe this process's own part if that part lacks the units."""
        exceeded = rate_exceeded(scope, self.rule.rate, self.left(now), units, self.wait(units, now, wall))
        local = None if self._held is None else self._held.local
        if local is None or not local.lacks(units, now, wall):
            return exceeded
        left = local.left(now)
        return replace(exceeded, used=max(0, math.ceil(local.rule.burst - left)), alone=max(0, math.floor(left)))

    def follow(self, rate: Rate, now: float) -> None:
        """Count by another rate from now on. Used units stay used. A shortage of the former rate, and a reply that is
        in flight for it, are not applied to the new one."""
        used = max(0.0, self._arrival - now) / self.rule.interval
        self.rule = rule_of(rate)
        self._arrival = now + used * self.rule.interval
        if self._held is not None:
            self._held.follow(self.rule, self._keeper, now)

    def next_request(self, now: float) -> RateRequest | None:
        """Return the next request to the coordinator: the block of units for the demand, the units that requests wait
        for, and the units that go back."""
        held = self._held
        if held is None or (self._follow_link(held, now) and not held.foreign):
            return None
        held.count(now)
        if now >= held.expires:
            self._lapse(held)
        block = self._block(held)
        held.refill_below = (block + 1) // 2
        want = block + held.waiting - held.balance
        surplus = max(0, -want - block)
        if held.balance < 0:
            surplus = held.balance
            want = block + held.waiting
        want = max(0, want) if now >= held.quiet_until or held.waiting else 0
        least = max(1, held.least_waiting - max(0, held.balance)) if held.waiting else math.ceil(held.size)
        if not want and held.total + surplus == held.acked and not held.foreign and not held.promised:
            return None
        held.balance -= surplus
        held.total += surplus
        held.wanted, held.reported, held.sent_at = want, held.total, now
        held.promised = held.is_busy()
        rate = self.rule.rate
        least, per_second = min(least, want, rate.burst), rate.amount / SECONDS[rate.period]
        owed = math.ceil(max(0.0, self._arrival - now) / self.rule.interval)
        counts = held.life, held.total, held.epoch, owed, held.paid
        back, believed = held.total - held.acked, held.believed()
        speaks, equal = SILENCE_LIMIT if held.promised else 0.0, idle_share(self._keeper.expected)
        alone = speaks, held.believed_part(self.rule), equal
        return RateRequest(self.key, per_second, rate.burst, want, least, back, held.demand, believed, *counts, *alone)

    def apply_grant(self, grant: LeaseGrant | None, now: float) -> None:
        """Apply the coordinator's reply."""
        held, keeper = self._held or self._begin(), self._keeper
        lost = held.foreign or grant is None or held.epoch not in (0, grant.epoch)
        held.foreign = grant is None
        if lost:
            held.doubt_since = now
        if grant is None:
            held.quiet_until = now + FOREIGN_RETRY
            if held.known_until == NEVER:
                held.known_until = math.inf  # Without a division here, no other process knows one either.
            return
        if lost and held.local is None:
            held.keep_to_part(self.rule, self._common(now), keeper, now)
            keeper.watch(self)
        held.acked, held.paid, held.epoch = held.reported, 0, grant.epoch
        if grant.granted:
            held.balance += grant.granted
            held.expires = now + _holds(self.rule)
        self._note_shortage(held, grant, now)
        self._arrival = now + (self.rule.burst - grant.level) * self.rule.interval
        if grant.share < held.share or not held.cautious(keeper, now):
            held.share, held.processes = grant.share, grant.processes
        held.known_until = held.sent_at + held.believed()

    def exchange_failed(self) -> None:
        """Ignore a failed exchange. `total` is absolute, so sending it again counts nothing twice."""

    def needs_renewal(self, now: float) -> bool:
        """Return whether the lease has something to report, or a foreign key should be tried again. Old units lapse
        first."""
        held = self._held
        if held is None:
            return False
        if now >= held.expires:
            self._lapse(held)
        if held.local is not None or held.foreign:
            self._follow_link(held, now)
        due = held.total != held.acked or held.balance < 0 or (held.foreign and now >= held.quiet_until)
        due = due or (held.promised and now >= held.sent_at + SILENCE_LIMIT / 2)
        return due and (held.foreign or not held.counts_alone)

    def may_need_renewal(self) -> bool:
        """Return whether the lease may need a renewal later without being used."""
        held = self._held
        return held is not None and (held.balance != 0 or held.foreign or held.local is not None or held.promised)

    def forget_if_idle(self, now: float) -> bool:
        """Drop the state if it no longer matters, and return whether the lease has no state now."""
        held = self._held
        if held is None:
            return True
        if self.may_need_renewal() or held.waiting or held.total != held.acked or now < held.known_until:
            return False
        self._held = None
        return True

    def division(self, now: float) -> tuple[float, int] | None:
        """Return this process's part of the limit and the number of processes that use it, `None` if no reply reported
        them recently. Safe to call from any thread."""
        held, keeper = self._held, self._keeper
        if held is None or not still_known(keeper, held.known_until, keeper.lost_at if keeper.alone else now):
            return None
        return held.share, held.processes

    def assume(self, share: float, processes: int) -> None:
        """Use the share and the number of processes that were known before a restart."""
        held = self._held or self._begin()
        held.share, held.processes, held.known_until = share, processes, math.inf

    def _begin(self) -> LeasedUnits:
        held = self._held = LeasedUnits(self._keeper)
        return held

    def _common(self, now: float) -> float:
        """Return about how many units are left for all processes."""
        return self.rule.burst - max(0.0, self._arrival - now) / self.rule.interval

    def _block(self, held: LeasedUnits) -> int:
        """Return the units to lease ahead. It is 0 if they would lapse before the next request."""
        if held.demand * _holds(self.rule) < held.size:
            return 0
        most = max(1, int(MAX_AHEAD * self.rule.rate.amount / held.processes), math.ceil(2 * held.size))
        return min(max(1, math.ceil(held.demand * AHEAD_SECONDS)), most)

    def _note_shortage(self, held: LeasedUnits, grant: LeaseGrant, now: float) -> None:
        """Note until when there are too few units for the demand: until half a burst is available again, or GRANT_EARLY
        before that, when the coordinator would grant it. Until then no units are leased ahead at once: with a small
        burst, units that flow in that time would be lost."""
        if not held.wanted:
            return
        enough = now + (max(1.0, self.rule.burst / 2) - grant.level) * self.rule.interval - GRANT_EARLY
        held.short_until = enough if grant.granted < held.wanted or grant.level < held.wanted else NEVER
        if grant.granted < held.wanted:
            held.left_for_all, held.left_for_all_until = grant.level, min(now + REFUSAL_PAUSE, held.short_until)
        if not grant.granted:
            held.quiet_until = held.left_for_all_until

    def _lapse(self, held: LeasedUnits) -> None:
        held.expires = math.inf
        if held.balance > 0:
            held.total += held.balance
            held.balance = 0
            self._keeper.mark_due(self)

    def _follow_link(self, held: LeasedUnits, now: float) -> bool:
        """Return whether this process counts alone now. When it begins to count alone, it has the units that are left;
        when it ends, it reports its use."""
        keeper = self._keeper
        if keeper.alone or held.foreign:
            if not held.counts_alone:
                held.keep_to_part(self.rule, self._common(now), keeper, now)
                held.leave()
                keeper.watch(self)
            return True
        if held.counts_alone:
            held.rejoin(now)
            keeper.mark_due(self)
        if held.local is not None and not held.cautious(keeper, now):
            held.local = None
        return False


def _holds(rule: GcraRule) -> float:
    """Return for how many seconds leased units are valid."""
    return min(HOLD_SECONDS, SECONDS[rule.rate.period] / 100)
