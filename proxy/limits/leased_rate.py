"""A rate that several processes share: units are leased ahead in small blocks, so that hardly a request waits for them.
Time is an argument.

Units that are not used within half a second go back, which bounds what passes in any `t` seconds by
`burst + rate * (t + HOLDS)`. Alone, the process counts by itself with the part that it was told last; no two processes
are told more than the whole. Whoever counts sets that part aside as long as a process that used the limit is silent, so
that the bound holds whether one is cut off or all are: but for what is taken in the SPEAKS before silence says
anything, which is then counted, and by one that is cut off for longer than GONE, whose part comes on top. Back among
others it tells what it took, once, and keeps to its part as well until all others have told the same, or count as gone:
whoever counts for all may have lost its memory. So does who finds that memory lost without having been cut off. One
that ends before it told has taken its part on top of the limit.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from proxy.limits.gcra import GcraRule, rate_exceeded, rate_used, rule_of
from proxy.limits.leased_units import SPEAKS, LeasedUnits
from proxy.limits.limit import SECONDS, Rate
from proxy.limits.limit_views import Exceeded, LimitView, Shown, rate_view
from proxy.shared_state.lease import TRIP, LeaseGrant, RateAsk
from proxy.shared_state.lease_keeper import NEVER, REFUSED_FOR, RESTING, LeaseKeeper, idle_share, still_known

AHEAD: Final = 0.05
"""Seconds of the process's own demand that are leased ahead."""

HOLDS: Final = 0.5
"""Seconds for which leased units hold, or a hundredth of the limit's period where that is less."""

PART: Final = 0.01
"""The most of a limit that all processes together lease ahead, unless it is less than two requests for each."""

AGAIN: Final = 1.0
"""Seconds until a key is tried again in whose place something else is kept."""


class LeasedRate:
    """A rate of which this process holds units. What it holds is kept as long as it is used: at rest, a lease knows
    no more than when all will be paid for."""

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
        """What it is counted by. Made when it is asked for: a table may have ten thousand teams."""
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
            away, local = self._follow_link(held, now), held.local
            if local is not None and local.lacks(units, now, wall):
                return True
            if away:
                return False
        if now >= held.expires:
            self._lapse(held)
        burst = self.rule.burst
        return (units if units < burst else burst) > held.balance

    def take(self, units: int, now: float, wall: float) -> None:
        """Take units, after a test at the same time."""
        held = self._held or self._begin()
        held.asked += units
        held.size += 0.1 * (units - held.size)
        units = min(units, self.rule.most)
        if held.local is not None:
            held.local.take(units, now, wall)
            if held.away:
                held.spent += units
                return
        held.balance -= units
        if held.balance < held.low and now >= held.quiet_until:
            self._keeper.wake(self)
        elif held.balance < 0:
            self._keeper.due(self)

    def attempt(self, units: int, now: float, wall: float) -> bool:
        """Test and take at once, and return whether the units were there: of what is held, ordinarily, where there is
        nothing else to look at."""
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
        """Put back what an attempt took, at the same time. What is refused is demand by `refused`, once."""
        held = self._held or self._begin()
        held.asked -= units
        units = min(units, self.rule.most)
        if held.local is not None:
            held.local.undo(units)
        if held.away:
            held.spent -= units
        else:
            held.balance += units

    def settle(self, reserved: int, used: int) -> None:
        """Correct what was taken to what was used: the rest goes back to all."""
        if used == reserved:
            return
        held, rule = self._held or self._begin(), self.rule
        more = used - reserved if reserved < rule.most > used else rule.correction(reserved, used)
        if held.local is not None:
            held.local.settle(reserved, used)
        if held.away:
            held.spent += more
        else:
            held.total -= more
            self._keeper.due(self)

    def refused(self, units: int, now: float) -> None:
        """Note a request that was refused: it is demand as well. While there is less than is asked for, units are
        fetched for those that come later, since a refusal waits for nobody."""
        held = self._held or self._begin()
        held.asked += units
        held.size += 0.1 * (units - held.size)
        if held.quiet_until <= now < held.short_until and not held.away:
            self._keeper.wake(self)

    def fetchable(self, units: int, now: float) -> bool:
        """Return whether to wait for more units: not right after fewer were left for all, not as long as there are too
        few for units to be leased ahead, and not where this process's own share is used up."""
        held = self._held or self._begin()
        if held.away or (held.local is not None and held.local.left(now) < 1):
            return False
        if now < held.said_until and min(units, self.rule.rate.burst) > held.balance + held.said:
            return False
        return not (now < held.short_until and held.low)

    def wait_for(self, units: int) -> None:
        """Note a request that waits for so many units more."""
        held = self._held or self._begin()
        held.least = min(held.least, units) if held.waiting else units
        held.waiting += units

    def wait_no_more(self, units: int) -> None:
        """Note that such a request waits no longer."""
        (self._held or self._begin()).waiting -= units

    def wait(self, units: int, now: float, wall: float) -> float:
        """Return about how many seconds it takes until so many units pass."""
        held, rule = self._held or self._begin(), self.rule
        alone = 0.0 if held.local is None else held.local.wait(units, now, wall)
        if held.away:
            return alone
        short = min(units, rule.rate.burst) - self.left(now)
        return max(short * rule.interval, held.quiet_until - now, alone)

    def left(self, now: float) -> float:
        """Return about how many units are left, here and for all; less than 0 is a debt."""
        held = self._held
        if held is None:
            return self._common(now)
        if held.away and held.local is not None:
            return held.local.left(now)
        return min(self.rule.burst, self._common(now) + held.balance)

    def remaining(self, now: float, wall: float) -> int:
        """Return about how many whole units are left."""
        return max(0, math.floor(self.left(now)))

    def shown(self, now: float, wall: float) -> Shown:
        """Return about what headers show."""
        rule, held = self.rule, self._held
        burst = rule.rate.burst
        if self._arrival <= now and (held is None or (held.balance >= 0 and not held.away)):
            return rule.full
        left = self.left(now)
        if left >= burst:
            return rule.full
        return int(left) if left > 0 else 0, rule.rate.amount, (burst - left) * rule.interval

    def full_in(self, now: float, wall: float) -> float:
        """Return about how many seconds it takes until nothing is used any more."""
        held = self._held
        if held is not None and held.away and held.local is not None:
            return held.local.full_in(now, wall)
        return max(0.0, (self.rule.burst - self.left(now)) * self.rule.interval)

    def views(self, scope: str, now: float, wall: float) -> Iterator[LimitView]:
        """Yield the limit as it stands, about."""
        yield rate_view(scope, self.rule.rate, rate_used(self.rule.rate, self.left(now)))

    def exceeded(self, scope: str, units: int, now: float, wall: float) -> Exceeded:
        """Return what is told of lacking so many units: of the part that it keeps to, if that has too few."""
        told = rate_exceeded(scope, self.rule.rate, self.left(now), units, self.wait(units, now, wall))
        local = None if self._held is None else self._held.local
        if local is None or not local.lacks(units, now, wall):
            return told
        left = local.left(now)
        return replace(told, used=max(0, math.ceil(local.rule.burst - left)), alone=max(0, math.floor(left)))

    def follow(self, rate: Rate, now: float) -> None:
        """Count by another rate from now on. The units that are used stay used; that there were too few says nothing
        about this rate, nor does an answer that is under way."""
        used = max(0.0, self._arrival - now) / self.rule.interval
        self.rule = rule_of(rate)
        self._arrival = now + used * self.rule.interval
        if self._held is not None:
            self._held.follow(self.rule, self._keeper, now)

    def ask(self, now: float) -> RateAsk | None:
        """Return what to ask for now: a block by the demand, what is waited for, and what goes back."""
        held = self._held
        if held is None or (self._follow_link(held, now) and not held.foreign):
            return None
        held.count(now)
        if now >= held.expires:
            self._lapse(held)
        block = self._block(held)
        held.low = (block + 1) // 2
        want = block + held.waiting - held.balance
        surplus = max(0, -want - block)
        if held.balance < 0:
            surplus = held.balance
            want = block + held.waiting
        want = max(0, want) if now >= held.quiet_until or held.waiting else 0
        least = max(1, held.least - max(0, held.balance)) if held.waiting else math.ceil(held.size)
        if not want and held.total + surplus == held.acked and not held.foreign and not held.speaks:
            return None
        held.balance -= surplus
        held.total += surplus
        held.wanted, held.told, held.asked_at = want, held.total, now
        held.speaks = held.is_busy()
        rate = self.rule.rate
        least, per_second = min(least, want, rate.burst), rate.amount / SECONDS[rate.period]
        owed = math.ceil(max(0.0, self._arrival - now) / self.rule.interval)
        counts = held.life, held.total, held.epoch, owed, held.paid
        back, believed = held.total - held.acked, held.believed()
        speaks, equal = SPEAKS if held.speaks else 0.0, idle_share(self._keeper.expected)
        alone = speaks, held.believed_part(self.rule), equal
        return RateAsk(self.key, per_second, rate.burst, want, least, back, held.demand, believed, *counts, *alone)

    def tell(self, grant: LeaseGrant | None, now: float) -> None:
        """Take the answer."""
        held, keeper = self._held or self._begin(), self._keeper
        lost = held.foreign or grant is None or held.epoch not in (0, grant.epoch)
        held.foreign = grant is None
        if lost:
            held.doubt_since = now
        if grant is None:
            held.quiet_until = now + AGAIN
            if held.known_until == NEVER:
                held.known_until = math.inf  # nor does anybody else know a division
            return
        if lost and held.local is None:
            held.keep_to_part(self.rule, self._common(now), keeper, now)
            keeper.watch(self)
        held.acked, held.paid, held.epoch = held.told, 0, grant.epoch
        if grant.granted:
            held.balance += grant.granted
            held.expires = now + _holds(self.rule)
        self._note_shortage(held, grant, now)
        self._arrival = now + (self.rule.burst - grant.level) * self.rule.interval
        if grant.share < held.share or not held.cautious(keeper, now):
            held.share, held.processes = grant.share, grant.processes
        held.known_until = held.asked_at + held.believed()

    def untold(self) -> None:
        """Note that there was no answer. What goes back is told as a total again, and so counts once."""

    def renew(self, now: float) -> bool:
        """Return whether units have lapsed, there is something to tell, or a foreign key is to be tried again."""
        held = self._held
        if held is None:
            return False
        if now >= held.expires:
            self._lapse(held)
        if held.local is not None or held.foreign:
            self._follow_link(held, now)
        tell = held.total != held.acked or held.balance < 0 or (held.foreign and now >= held.quiet_until)
        tell = tell or (held.speaks and now >= held.asked_at + SPEAKS / 2)
        return tell and (held.foreign or not held.away)

    def holds(self) -> bool:
        """Return whether there may be later."""
        held = self._held
        return held is not None and (held.balance != 0 or held.foreign or held.local is not None or held.speaks)

    def rest(self, now: float) -> bool:
        """Forget what was held and known where it matters no more, and return whether it does not."""
        held = self._held
        if held is None:
            return True
        if self.holds() or held.waiting or held.total != held.acked or now < held.known_until:
            return False
        self._held = None
        return True

    def division(self, now: float) -> tuple[float, int] | None:
        """Return this process's part of the limit, and the processes that use it; None if nobody told it of late. May
        be asked from any thread."""
        held, keeper = self._held, self._keeper
        if held is None or not still_known(keeper, held.known_until, keeper.lost_at if keeper.alone else now):
            return None
        return held.share, held.processes

    def assume(self, share: float, processes: int) -> None:
        """Take the share that was known before a restart."""
        held = self._held or self._begin()
        held.share, held.processes, held.known_until = share, processes, math.inf

    def _begin(self) -> LeasedUnits:
        held = self._held = LeasedUnits(self._keeper)
        return held

    def _common(self, now: float) -> float:
        """Return about how many units are left for all."""
        return self.rule.burst - max(0.0, self._arrival - now) / self.rule.interval

    def _block(self, held: LeasedUnits) -> int:
        """Return the units to lease ahead: none where they would lapse before the next request."""
        if held.demand * _holds(self.rule) < held.size:
            return 0
        most = max(1, int(PART * self.rule.rate.amount / held.processes), math.ceil(2 * held.size))
        return min(max(1, math.ceil(held.demand * AHEAD)), most)

    def _note_shortage(self, held: LeasedUnits, grant: LeaseGrant, now: float) -> None:
        """Note until when there are too few units for all that is asked for: until half a burst is there again, as far
        as this process knows, or whoever counts would grant one (TRIP early). Before that it asks for none at once:
        with a small burst, what flows in that time would be lost."""
        if not held.wanted:
            return
        enough = now + (max(1.0, self.rule.burst / 2) - grant.level) * self.rule.interval - TRIP
        held.short_until = enough if grant.granted < held.wanted or grant.level < held.wanted else NEVER
        if grant.granted < held.wanted:
            held.said, held.said_until = grant.level, min(now + REFUSED_FOR, held.short_until)
        if not grant.granted:
            held.quiet_until = held.said_until

    def _lapse(self, held: LeasedUnits) -> None:
        held.expires = math.inf
        if held.balance > 0:
            held.total += held.balance
            held.balance = 0
            self._keeper.due(self)

    def _follow_link(self, held: LeasedUnits, now: float) -> bool:
        """Return whether this process counts alone now: it begins to with the units that are left, and ends with
        telling what it used."""
        keeper = self._keeper
        if keeper.alone or held.foreign:
            if not held.away:
                held.keep_to_part(self.rule, self._common(now), keeper, now)
                held.leave()
                keeper.watch(self)
            return True
        if held.away:
            held.rejoin(now)
            keeper.due(self)
        if held.local is not None and not held.cautious(keeper, now):
            held.local = None
        return False


def _holds(rule: GcraRule) -> float:
    """Return how many seconds units hold."""
    return min(HOLDS, SECONDS[rule.rate.period] / 100)
