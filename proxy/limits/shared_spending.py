"""Spending that several processes share: near a limit each takes only what it has claimed of what is left. Time is an
argument.

Whoever counts grants claims out of what no ledger's sum, no process's own spending and no other claim holds, so that
all together never pass the limit by more than what requests use beyond their reservation. A claim follows demand, up
to a part of what is left: far from the limit it is ample, and hardly a request waits. Near it each request is asked
for, and what others claim and do not use comes back within a tenth of a second; a request that it would be enough for
waits for that, HOPE seconds at most.

Alone, a process goes on with its claim and an equal part of what nobody had claimed. Of these counts what its requests
use: what they reserved beyond it is its own again. Back among others it claims what it has left of that part, and no
more until all others can have told what they hold of theirs: whoever counts for all may know nothing of it. So does who
finds that whoever counts lost its memory, or that something else is kept in its place.
"""

import math
from dataclasses import replace
from typing import Final

from proxy.limits.calendar_period import PeriodClock
from proxy.limits.limit_views import Exceeded
from proxy.limits.spending import OTHERS_HOLD, SpendingCounter, SpendingNotes, SpendingRules
from proxy.shared_state.lease import LeaseGrant, SpentAsk
from proxy.shared_state.lease_keeper import NEVER, REFUSED_FOR, RESTING, LeaseKeeper, idle_share, in_doubt

PARTS: Final = 4
"""A process claims one of so many parts of its equal share of what is left, at most."""

NEAR: Final = 16
"""A limit is near where the part that may be claimed is less than the demand of so many seconds."""

UNUSED: Final = 2.0
UNUSED_NEAR: Final = 0.1
"""Seconds after which a claim that nobody used goes back, and near the limit."""

HOPE: Final = 0.5
"""Seconds for which requests wait for what others may give back."""

DESPAIR: Final = 1.0
"""Seconds without waiting after that was in vain."""

MOMENT: Final = 1.0
"""Seconds after which a request is to come back that lacked what others have claimed and may not use."""

LARGEST: Final = 10**15
"""No number that is told is larger."""

AGAIN: Final = 1.0
"""Seconds until a key is tried again in whose place something else is kept."""


class ClaimState:
    """What is known of a claim while it is used: when and in which period it was asked for, with what told and wanted,
    and what was settled then by the ledger's sum and by this process beside it (`known`, and up to `loose` more), of
    which this process had settled `used` in the period; the `epoch` of the key, which cannot end before `known_until`;
    what others claim, and how many they are; what waits, and the least of it, or while nothing does what the last
    request took; until when not to ask for `refused` and more again, unless others may give something back
    (`hope_until`, not again before `hope_again`); what was taken of late (`recent`: half of it is forgotten each
    second), and below which room more is asked for; whether the process counts alone (`away`), or near the limit
    (`scarce`); since when others may not have told what they hold (`doubt_since`), and whether it has taken its part of
    what nobody had claimed, once for as long as that is so and until it was answered since (`parted`): what it
    heard before that, from who had lost its memory, is too little to take another part by. `sure` says that it asked
    without that doubt."""

    __slots__ = (
        *("asked_at", "away", "claimed", "doubt_since", "epoch", "hope_again", "hope_until", "known", "known_until"),
        *("least", "loose", "low", "parted", "processes", "quiet_until", "recent", "refused", "scarce", "start"),
        *("sure", "told", "used", "waiting", "wanted"),
    )

    def __init__(self) -> None:
        self.asked_at = self.quiet_until = self.hope_until = self.hope_again = NEVER
        self.doubt_since = self.known_until = NEVER
        self.claimed = self.epoch = self.known = self.least = self.loose = self.low = self.refused = self.start = 0
        self.told = self.used = self.waiting = self.wanted = 0
        self.processes = 1
        self.recent = 0.0
        self.away = self.parted = self.scarce = self.sure = False


class SharedSpending(SpendingCounter):
    """Spending of which this process tells the others, and hears from them. `room` is what it may take before it has to
    ask again; less than 0 was used beyond it."""

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
        """What it is counted by, in the period that is now."""
        return f"{self.scope} {self.rules.unit} {self.clock.period} {self.clock.start}"

    def lacks(self, units: int | None, now: float, wall: float) -> bool:
        if super().lacks(units, now, wall):
            return True
        need = self._need(units)
        if need <= self.room:
            return False
        if self._keeper.alone or self._in_doubt(now):
            self._leave()
        return need > self.room

    def take(self, units: int | None, now: float, wall: float) -> None:
        super().take(units, now, wall)
        self.touched = now
        if self.standing == RESTING:
            self._keeper.watch(self)
        if units:
            claim = self._claim or self._used()
            claim.recent += units
            need = self._need(units)
            if not claim.waiting:
                claim.least = need
            self.room -= need
            if self.room < claim.low and now >= claim.quiet_until:
                self._keeper.wake(self)

    def settle(self, reserved: int | None, used: int | None) -> None:
        """Count what was used. What was reserved beyond it is told, and goes back to all: alone, to this process, since
        nobody else hears of it."""
        super().settle(reserved, used)
        claim = self._claim
        if claim is not None and claim.away:
            self.room += self._need(reserved) - (used or 0)
            return
        more = (used or 0) - (reserved or 0)
        if more > 0:
            self.room -= more
        elif more and claim is not None and claim.scarce:
            self._keeper.wake(self)

    def exceeded(self, scope: str, units: int | None, now: float, wall: float) -> Exceeded:
        """Return what is told of lacking so many units: alone with what this process has left, among others with what
        they have claimed, if it is that."""
        told, claim = super().exceeded(scope, units, now, wall), self._claim
        room = max(0, int(min(self.room, LARGEST)))
        if claim is not None and (claim.away or self._in_doubt(now)):
            return replace(told, alone=room)
        if units is None or super().lacks(units, now, wall):
            return told
        return replace(told, elsewhere=max(1, told.limit - told.used - room), wait=min(told.wait, MOMENT))

    def follow(self, rules: SpendingRules, clock: PeriodClock) -> None:
        """Count by other limits: what was claimed of the former ones is asked for again."""
        super().follow(rules, clock)
        self._give_up()

    def fetchable(self, units: int | None, now: float) -> bool:
        """Return whether to ask for more: not right after there was not enough for as much, unless others may give
        something back."""
        claim = self._claim or self._used()
        if units is None or claim.away or self._keeper.alone or self._in_doubt(now):
            return False
        return now >= claim.quiet_until or now < claim.hope_until or self._need(units) < claim.refused

    @property
    def waiting(self) -> int:
        """The units that requests wait for."""
        return 0 if self._claim is None else self._claim.waiting

    def hopes(self, now: float) -> bool:
        """Return whether requests wait for what others may give back."""
        return self._claim is not None and now < self._claim.hope_until

    def wait_for(self, units: int) -> None:
        """Note a request that waits for so many units."""
        claim, need = self._claim or self._used(), self._need(units)
        claim.least = min(claim.least, need) if claim.waiting else need
        claim.waiting += need

    def wait_no_more(self, units: int) -> None:
        """Note that such a request waits no longer."""
        claim = self._claim or self._used()
        claim.waiting = max(0, claim.waiting - self._need(units))

    def ask(self, now: float) -> SpentAsk | None:
        """Return what this process knows to be spent that no ledger holds, and what it claims."""
        if self._start != self.clock.start:
            self._begin()
        claim = self._claim or self._used()
        claim.recent *= 0.5 ** min(64.0, max(0.0, now - claim.asked_at))
        claim.asked_at, claim.start, claim.told, claim.loose = now, self._start, self.own, self._doubtful
        base, loose, reserved = min(self._base, LARGEST), claim.loose, self.reserved
        sure = claim.told - loose
        claim.known, claim.used, claim.sure = base + sure - reserved, self.used, False
        if math.isinf(self.rules.most):
            return SpentAsk(self.key, sure, base, held=loose, reserved=reserved)
        held, most = 0 if claim.away else max(0, int(self.room)), math.floor(self.rules.most)
        if claim.away or self._in_doubt(now):
            claim.wanted = min(max(0, int(self.room)), LARGEST) if claim.away else 0
            return SpentAsk(self.key, sure, base, most, held + loose, claim.wanted, 0, reserved)
        claim.sure = True
        part = self._left(claim, held) // (PARTS * max(claim.processes, self._keeper.expected))
        demand = claim.recent + claim.waiting
        claim.scarce = demand * NEAR > part
        unused = now >= self.touched + (UNUSED_NEAR if claim.scarce else UNUSED)
        # A part that is too small for one request would be no use here, and lacking where it is enough for one.
        ahead = 0 if unused or part < claim.least else min(math.ceil(demand), part)
        claim.low = (ahead + 1) // 2
        held = min(held, claim.waiting + ahead)
        self.room = held = 0 if claim.waiting and held < claim.least else held
        wanted = claim.waiting + ahead - held if claim.waiting or now >= claim.quiet_until else 0
        claim.wanted = wanted = min(wanted, LARGEST)
        least = min(wanted, max(0, claim.least - held)) if claim.waiting else 0
        return SpentAsk(self.key, sure, base, most, held + loose, wanted, least, reserved)

    def tell(self, grant: LeaseGrant | None, now: float) -> None:
        """Take the answer."""
        claim = self._claim or self._used()
        if grant is None:
            self._leave()
            claim.doubt_since = now
            claim.quiet_until = now + AGAIN
            return
        if claim.start != self._start:  # of a period that is over
            return
        lost = claim.epoch not in (0, grant.epoch) and now < claim.known_until
        claim.epoch, claim.known_until = grant.epoch, now + OTHERS_HOLD
        if lost:
            claim.doubt_since = now
        if lost and not claim.away and not math.isinf(self.rules.most):
            self._leave()  # granted was what others may hold
            self._keeper.wake(self)
            return
        if claim.sure:
            claim.parted = False
        # As of the question: what this process has read of the ledger since is no part of the answer, and of what it
        # has settled since nobody knows whether it is.
        used, reserved = self.used, int(grant.reserved)
        known = claim.known + max(0, int(grant.level) - reserved) - used
        loose = claim.loose + int(grant.doubtful) + used - claim.used
        self.hear(known, loose, reserved, claim.asked_at)
        if math.isinf(self.rules.most):
            return
        claim.processes, claim.claimed = grant.processes, int(grant.claimed)
        if claim.away:
            claim.away = False
            claim.quiet_until = NEVER
            self.room = min(0, claim.told - self.own) + grant.granted
            return
        self.room += grant.granted
        self._note_shortage(claim, grant, now)
        if not self.room and not claim.waiting and now >= self.touched + OTHERS_HOLD:
            self._claim = None

    def untold(self) -> None:
        """Note that there was no answer: what was claimed before stays claimed."""

    def renew(self, now: float) -> bool:
        """Return whether it is in use."""
        return self.own > 0 or now < self.touched + OTHERS_HOLD

    def holds(self) -> bool:
        """Return whether there may be something to tell later: not before it is used again."""
        return False

    def rest(self, now: float) -> bool:
        """Forget nothing: what is spent stays spent."""
        return True

    def hasty(self) -> bool:
        """Return whether others may wait for what this process has to tell: near the limit."""
        claim = self._claim
        return claim is not None and claim.scarce and (self.room > 0 or self.own != claim.told)

    def _in_doubt(self, now: float) -> bool:
        """Return whether others may not have told yet what they hold of what they took alone."""
        claim, keeper = self._claim, self._keeper
        return keeper.rejoining or (claim is not None and in_doubt(keeper, claim.doubt_since, now))

    def _note_shortage(self, claim: ClaimState, grant: LeaseGrant, now: float) -> None:
        """Note whether there was less than was wanted, and whether others may give something back."""
        if grant.granted < claim.wanted:
            claim.quiet_until = now + REFUSED_FOR
            claim.refused = claim.least if claim.waiting and not grant.granted else 0
            if claim.claimed and now >= claim.hope_again:
                claim.hope_until = now + HOPE
                claim.hope_again = claim.hope_until + DESPAIR
        elif claim.wanted:
            claim.quiet_until = claim.hope_until = claim.hope_again = NEVER

    def _used(self) -> ClaimState:
        claim = self._claim = ClaimState()
        return claim

    def _need(self, units: int | None) -> int:
        """Return what a request takes of a claim: one beyond the whole limit takes all."""
        most = self.rules.most
        return int(most) if units and units > most else units or 0

    def _left(self, claim: ClaimState, held: int) -> int:
        """Return what nobody has spent or claimed, as far as this process knows."""
        return max(0, math.floor(self.rules.most) - self.spent - claim.claimed - held)

    def _leave(self) -> None:
        """Begin to count alone, with an equal part of what nobody had claimed, unless that was taken before; with the
        part of one who used nothing, if it is only guessed how many there are."""
        claim = self._claim or self._used()
        if claim.away or math.isinf(self.rules.most) or (claim.parted and not self._keeper.alone):
            return
        claim.away = True
        if not claim.parted:
            claim.parted = True
            held, keeper = max(0, int(self.room)), self._keeper
            left, every = self._left(claim, held), max(claim.processes, keeper.expected)
            self.room = held + (int(left * idle_share(every)) if keeper.guessed else left // every)

    def _give_up(self) -> None:
        """Hold no claim any more."""
        self.room = math.inf if math.isinf(self.rules.most) else 0
        if (claim := self._claim) is not None:
            claim.away = claim.parted = False
            claim.claimed = claim.epoch = claim.low = 0
            claim.quiet_until = claim.hope_until = claim.hope_again = NEVER

    def _begin(self) -> None:
        super()._begin()
        self._give_up()

    def _keep_time(self, now: float, wall: float) -> None:
        """Go on to the period that is now, and forget what others have not said again. They have forgotten by then what
        this process claimed."""
        claim = self._claim
        if now > self.others_until and not (claim is not None and claim.away) and not math.isinf(self.rules.most):
            self.room = min(self.room, 0)
            if claim is not None:
                claim.claimed = 0
        super()._keep_time(now, wall)
