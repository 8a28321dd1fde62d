"""Spending that several processes share. Each process takes only units that it has claimed. Time is an argument.

The coordinator grants claims only on units that no ledger's sum, no process's own spending and no other claim holds.
Therefore all processes together exceed the limit only by units that requests use beyond their reservation. The size of
a claim follows the demand, up to a part of the remaining units. Far from the limit a claim is ample, and few requests
wait. Near the limit each request causes an exchange, and unused claims go back within a tenth of a second. A request
that these returned units could satisfy waits for them, for at most RETURNS_WAIT seconds.

A process that counts alone may use its claim and an equal part of the unclaimed units. Only used units count against
both: the unused rest of a reservation is available again. After a reconnect the process claims the rest of that part,
and nothing else until all others can have reported their parts, because the coordinator may not know these parts. The
process does the same if the coordinator lost its memory, or holds foreign data in place of the limit's data.
"""

import math
from dataclasses import replace
from typing import Final

from proxy.limits.calendar_period import PeriodClock
from proxy.limits.limit_views import Exceeded
from proxy.limits.spending import STATEMENT_HOLDS, SpendingCounter, SpendingNotes, SpendingRules
from proxy.shared_state.lease import LeaseGrant, SpendingRequest
from proxy.shared_state.lease_keeper import NEVER, REFUSAL_PAUSE, RESTING, LeaseKeeper, idle_share, in_doubt

CLAIM_DIVISOR: Final = 4
"""A process claims at most 1/CLAIM_DIVISOR of its equal share of the remaining units."""

NEAR_SECONDS: Final = 16
"""A limit is near if the part that may be claimed is less than the demand of NEAR_SECONDS seconds."""

UNUSED_SECONDS: Final = 2.0
UNUSED_NEAR_SECONDS: Final = 0.1
"""Seconds after which an unused claim goes back, far from the limit and near it."""

RETURNS_WAIT: Final = 0.5
"""Seconds for which requests wait for units that other processes may return."""

RETURNS_PAUSE: Final = 1.0
"""Seconds for which requests do not wait for returned units after such a wait brought no units."""

RETRY_AFTER: Final = 1.0
"""The `Retry-After` seconds of a request that lacks units which others have claimed and may not use."""

LARGEST_AMOUNT: Final = 10**15
"""The largest number of units in an exchange."""

FOREIGN_RETRY: Final = 1.0
"""Seconds until a Redis key is tried again that holds foreign data."""


class ClaimState:
    """The state of a claim while it is used.

    - `sent_at`, `start`: the time of the last request and the start of its period. The request reported `reported`
      units and requested `wanted` units.
    - `known`, `loose`: the settled units at that time, by the ledger's sum and by this process. `known` of them are
      certain, and up to `loose` more are possible. This process had settled `used` of them in the period.
    - `epoch`: the epoch of the key. The key cannot lapse before `known_until`.
    - `claimed`, `processes`: the units claimed by other processes, and the number of processes.
    - `waiting`: the units that requests wait for. `least_waiting` is the smallest need of one of these requests. If no
      request waits, it is the need of the last request.
    - `no_request_until`: until this time, `refused_units` or more are not requested again, unless other processes may
      return units. Returns are awaited until `returns_until`, and not again before `no_returns_until`.
    - `recent`: units taken recently, halved each second. More is requested if `room` falls below `refill_below`.
    - `counts_alone`: the process counts alone. `scarce`: it counts near the limit.
    - `doubt_since`: the time since which other processes may not have reported their units. `without_doubt`: there was
      no such doubt at the last request.
    - `part_taken`: the process has taken its part of the unclaimed units. It may take another one only after the reply
      to a request without doubt, because earlier replies of a coordinator that lost its memory are too low.
    """

    __slots__ = (
        *("claimed", "counts_alone", "doubt_since", "epoch", "known", "known_until", "least_waiting", "loose"),
        *("no_request_until", "no_returns_until", "part_taken", "processes", "recent", "refill_below"),
        *("refused_units", "reported", "returns_until", "scarce", "sent_at", "start", "used", "waiting", "wanted"),
        *("without_doubt",),
    )

    def __init__(self) -> None:
        self.sent_at = self.no_request_until = self.returns_until = self.no_returns_until = NEVER
        self.doubt_since = self.known_until = NEVER
        self.claimed = self.epoch = self.known = self.least_waiting = self.loose = self.refill_below = (
            self.refused_units
        ) = self.start = 0
        self.reported = self.used = self.waiting = self.wanted = 0
        self.processes = 1
        self.recent = 0.0
        self.counts_alone = self.part_taken = self.scarce = self.without_doubt = False


class SharedSpending(SpendingCounter):
    """Spending that this process exchanges with others. `room` is the units that it may take before the next exchange.
    A negative value is the units used beyond it."""

    __slots__ = ("_claim", "_keeper", "room", "standing", "touched")

    def __init__(
        self, scope: str, rules: SpendingRules, clock: PeriodClock, notes: SpendingNotes, keeper: LeaseKeeper
    ) -> None:
        self._keeper = keeper
        self._claim: ClaimState | None = None
        self.standing = RESTING
        self.touched = NEVER
        self.room = 0.0
        super().__init__(scope, rules, clock, notes)

    @property
    def key(self) -> str:
        """The key under which the spending is counted in the current period."""
        return f"{self.scope} {self.rules.unit} {self.clock.period} {self.clock.start}"

    def lacks(self, units: int | None, now: float, wall: float) -> bool:
        if super().lacks(units, now, wall):
            return True
        need = self._need(units)
        if need <= self.room:
            return False
        if self._keeper.alone or self._in_doubt(now):
            self._count_alone()
        return need > self.room

    def take(self, units: int | None, now: float, wall: float) -> None:
        super().take(units, now, wall)
        self.touched = now
        if self.standing == RESTING:
            self._keeper.watch(self)
        if units:
            claim = self._claim or self._new_claim()
            claim.recent += units
            need = self._need(units)
            if not claim.waiting:
                claim.least_waiting = need
            self.room -= need
            if self.room < claim.refill_below and now >= claim.no_request_until:
                self._keeper.wake(self)

    def settle(self, reserved: int | None, used: int | None) -> None:
        """Count the used units. The unused rest of a reservation is reported and goes back to all. While this process
        counts alone, the rest goes back to this process, because no other process learns of it."""
        super().settle(reserved, used)
        claim = self._claim
        if claim is not None and claim.counts_alone:
            self.room += self._need(reserved) - (used or 0)
            return
        more = (used or 0) - (reserved or 0)
        if more > 0:
            self.room -= more
        elif more and claim is not None and claim.scarce:
            self._keeper.wake(self)

    def exceeded(self, scope: str, units: int | None, now: float, wall: float) -> Exceeded:
        """Return the details of a refusal: the units left to this process alone, or the units that others have
        claimed."""
        exceeded, claim = super().exceeded(scope, units, now, wall), self._claim
        room = max(0, int(min(self.room, LARGEST_AMOUNT)))
        if claim is not None and (claim.counts_alone or self._in_doubt(now)):
            return replace(exceeded, alone=room)
        if units is None or super().lacks(units, now, wall):
            return exceeded
        return replace(
            exceeded, elsewhere=max(1, exceeded.limit - exceeded.used - room), wait=min(exceeded.wait, RETRY_AFTER)
        )

    def follow(self, rules: SpendingRules, clock: PeriodClock) -> None:
        """Count by other limits. Claims on the former limits are requested anew."""
        super().follow(rules, clock)
        self._drop_claim()

    def fetchable(self, units: int | None, now: float) -> bool:
        """Return whether to request more units. It is false right after a request for as many units was refused, unless
        others may return units."""
        claim = self._claim or self._new_claim()
        if units is None or claim.counts_alone or self._keeper.alone or self._in_doubt(now):
            return False
        return now >= claim.no_request_until or now < claim.returns_until or self._need(units) < claim.refused_units

    @property
    def waiting(self) -> int:
        """The units that requests wait for."""
        return 0 if self._claim is None else self._claim.waiting

    def awaits_returns(self, now: float) -> bool:
        """Return whether requests wait for units that others may return."""
        return self._claim is not None and now < self._claim.returns_until

    def add_waiting(self, units: int) -> None:
        """Add a request that waits for these units."""
        claim, need = self._claim or self._new_claim(), self._need(units)
        claim.least_waiting = min(claim.least_waiting, need) if claim.waiting else need
        claim.waiting += need

    def remove_waiting(self, units: int) -> None:
        """Remove a request that waited for these units."""
        claim = self._claim or self._new_claim()
        claim.waiting = max(0, claim.waiting - self._need(units))

    def next_request(self, now: float) -> SpendingRequest | None:
        """Return the report of the units that no ledger holds, together with the claim on the remaining units."""
        if self._start != self.clock.start:
            self._begin()
        claim = self._claim or self._new_claim()
        claim.recent *= 0.5 ** min(64.0, max(0.0, now - claim.sent_at))
        claim.sent_at, claim.start, claim.reported, claim.loose = now, self._start, self.own, self._doubtful
        base, loose, reserved = min(self._base, LARGEST_AMOUNT), claim.loose, self.reserved
        certain = claim.reported - loose
        claim.known, claim.used, claim.without_doubt = base + certain - reserved, self.used, False
        if math.isinf(self.rules.most):
            return SpendingRequest(self.key, certain, base, held=loose, reserved=reserved)
        held, most = 0 if claim.counts_alone else max(0, int(self.room)), math.floor(self.rules.most)
        if claim.counts_alone or self._in_doubt(now):
            claim.wanted = min(max(0, int(self.room)), LARGEST_AMOUNT) if claim.counts_alone else 0
            return SpendingRequest(self.key, certain, base, most, held + loose, claim.wanted, 0, reserved)
        claim.without_doubt = True
        part = self._unclaimed(claim, held) // (CLAIM_DIVISOR * max(claim.processes, self._keeper.expected))
        demand = claim.recent + claim.waiting
        claim.scarce = demand * NEAR_SECONDS > part
        unused = now >= self.touched + (UNUSED_NEAR_SECONDS if claim.scarce else UNUSED_SECONDS)
        # A part that is too small for one request would be useless here, while another process may need it.
        ahead = 0 if unused or part < claim.least_waiting else min(math.ceil(demand), part)
        claim.refill_below = (ahead + 1) // 2
        held = min(held, claim.waiting + ahead)
        self.room = held = 0 if claim.waiting and held < claim.least_waiting else held
        wanted = claim.waiting + ahead - held if claim.waiting or now >= claim.no_request_until else 0
        claim.wanted = wanted = min(wanted, LARGEST_AMOUNT)
        least = min(wanted, max(0, claim.least_waiting - held)) if claim.waiting else 0
        return SpendingRequest(self.key, certain, base, most, held + loose, wanted, least, reserved)

    def apply_grant(self, grant: LeaseGrant | None, now: float) -> None:
        """Apply the reply."""
        claim = self._claim or self._new_claim()
        if grant is None:
            self._count_alone()
            claim.doubt_since = now
            claim.no_request_until = now + FOREIGN_RETRY
            return
        if claim.start != self._start:  # The request was for a former period.
            return
        lost = claim.epoch not in (0, grant.epoch) and now < claim.known_until
        claim.epoch, claim.known_until = grant.epoch, now + STATEMENT_HOLDS
        if lost:
            claim.doubt_since = now
        if lost and not claim.counts_alone and not math.isinf(self.rules.most):
            self._count_alone()  # The granted units may be held by others.
            self._keeper.wake(self)
            return
        if claim.without_doubt:
            claim.part_taken = False
        # The reply belongs to the time of its request. It excludes all that this process has read of the ledger since,
        # and may or may not include units that it has settled since.
        used, reserved = self.used, int(grant.reserved)
        known = claim.known + max(0, int(grant.level) - reserved) - used
        loose = claim.loose + int(grant.doubtful) + used - claim.used
        self.apply_others(known, loose, reserved, claim.sent_at)
        if math.isinf(self.rules.most):
            return
        claim.processes, claim.claimed = grant.processes, int(grant.claimed)
        if claim.counts_alone:
            claim.counts_alone = False
            claim.no_request_until = NEVER
            self.room = min(0, claim.reported - self.own) + grant.granted
            return
        self.room += grant.granted
        self._note_shortage(claim, grant, now)
        if not self.room and not claim.waiting and now >= self.touched + STATEMENT_HOLDS:
            self._claim = None

    def exchange_failed(self) -> None:
        """Ignore a failed exchange: earlier claims stay."""

    def needs_renewal(self, now: float) -> bool:
        """Return whether the claim is in use."""
        return self.own > 0 or now < self.touched + STATEMENT_HOLDS

    def may_need_renewal(self) -> bool:
        """Return that the claim needs no renewal before it is used again."""
        return False

    def forget_if_idle(self, now: float) -> bool:
        """Return that there is no state to forget: spent units stay spent."""
        return True

    def is_urgent(self) -> bool:
        """Return whether others may wait for this process's report. They may if the limit is near."""
        claim = self._claim
        return claim is not None and claim.scarce and (self.room > 0 or self.own != claim.reported)

    def _in_doubt(self, now: float) -> bool:
        """Return whether other processes may not yet have reported the units that they took while they counted
        alone."""
        claim, keeper = self._claim, self._keeper
        return keeper.rejoining or (claim is not None and in_doubt(keeper, claim.doubt_since, now))

    def _note_shortage(self, claim: ClaimState, grant: LeaseGrant, now: float) -> None:
        """Note whether fewer units were granted than wanted, and whether others may return some."""
        if grant.granted < claim.wanted:
            claim.no_request_until = now + REFUSAL_PAUSE
            claim.refused_units = claim.least_waiting if claim.waiting and not grant.granted else 0
            if claim.claimed and now >= claim.no_returns_until:
                claim.returns_until = now + RETURNS_WAIT
                claim.no_returns_until = claim.returns_until + RETURNS_PAUSE
        elif claim.wanted:
            claim.no_request_until = claim.returns_until = claim.no_returns_until = NEVER

    def _new_claim(self) -> ClaimState:
        claim = self._claim = ClaimState()
        return claim

    def _need(self, units: int | None) -> int:
        """Return the units that a request takes of a claim. A request that needs more than the whole limit takes the
        whole limit."""
        most = self.rules.most
        return int(most) if units and units > most else units or 0

    def _unclaimed(self, claim: ClaimState, held: int) -> int:
        """Return the units that no process has spent or claimed, as far as this process knows."""
        return max(0, math.floor(self.rules.most) - self.spent - claim.claimed - held)

    def _count_alone(self) -> None:
        """Begin to count alone. Take an equal part of the unclaimed units, unless it was taken before. If the number of
        processes is only guessed, take the part of an idle process."""
        claim = self._claim or self._new_claim()
        if claim.counts_alone or math.isinf(self.rules.most) or (claim.part_taken and not self._keeper.alone):
            return
        claim.counts_alone = True
        if not claim.part_taken:
            claim.part_taken = True
            held, keeper = max(0, int(self.room)), self._keeper
            left, every = self._unclaimed(claim, held), max(claim.processes, keeper.expected)
            self.room = held + (int(left * idle_share(every)) if keeper.guessed else left // every)

    def _drop_claim(self) -> None:
        """Give up the claim."""
        self.room = math.inf if math.isinf(self.rules.most) else 0
        if (claim := self._claim) is not None:
            claim.counts_alone = claim.part_taken = False
            claim.claimed = claim.epoch = claim.refill_below = 0
            claim.no_request_until = claim.returns_until = claim.no_returns_until = NEVER

    def _begin(self) -> None:
        super()._begin()
        self._drop_claim()

    def _update_period(self, now: float, wall: float) -> None:
        """Move to the current period and drop old statements. The others no longer know this process's claim by
        then."""
        claim = self._claim
        if (
            now > self.others_until
            and not (claim is not None and claim.counts_alone)
            and not math.isinf(self.rules.most)
        ):
            self.room = min(self.room, 0)
            if claim is not None:
                claim.claimed = 0
        super()._update_period(now, wall)
