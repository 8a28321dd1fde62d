"""Holds requests to the limits and budgets of their client, which are those of all clients, its team and its key: once,
after they are parsed and planned, and before any deployment is called.

A request without limits costs one look into a dict.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo
from functools import partial
from typing import Final, TypeAlias

from providers.failure import Failure
from providers.pricing import Price
from proxy.bounded_dict import BoundedDict
from proxy.errors import GatewayError
from proxy.limits.limit import (
    MOST_COST,
    MOST_TOKENS,
    NANO,
    Limits,
    Quota,
    Rate,
    ScopeBudget,
    ScopeSide,
    Subject,
    Unit,
    scopes_of,
)
from proxy.limits.limit_book import LimitBook
from proxy.limits.limit_views import Exceeded, LimitKind, limit_labels
from proxy.limits.reservation import Meters, Reservation
from proxy.limits.token_estimate import BYTES_EACH, OUTPUT, UNKNOWN, TokenEstimates, TokenRatio
from proxy.request_record import RequestRecord, TargetHold
from proxy.routing.resolve_model import Plan
from proxy.routing.snapshot import WILDCARD, Key, Snapshot, Team
from proxy.teams.limit_errors import (
    budget_unread,
    kept_lines,
    limit_exceeded,
    limit_headers,
    limit_lines,
    no_price,
    refusing_limit,
)

_NANO_PER_MILLIONTH: Final = NANO // 1_000_000
"""Billionths of a USD in a millionth: prices are per million tokens."""

KEPT: Final = 16_384
"""Pairs of key and name whose scopes are kept."""


Later: TypeAlias = Callable[[float], Awaitable[None]]
"""Waits until a request is admitted, at most so many seconds. Raises GatewayError where it is refused."""


RequestSize: TypeAlias = tuple[int | None, int | None, int]
"""What a request may take: bytes of its prompt, or None where what it costs cannot be told from tokens; the most tokens
of each of its answers (None: it does not say), and how many answers it wants. A plain tuple: one is made for most
requests."""


@dataclass(slots=True, eq=False)
class BoundScopes:
    """What holds a key's requests for a name: the scopes with limits, whether some of them count more than requests,
    whether some are budgets, and whether one counts USD. `pair` are the team and the name. Found by the first request
    and kept: what counts, and what is known of the tokens of such requests, UNKNOWN until there was one."""

    pair: tuple[str, str]
    scopes: tuple[str, ...] = ()
    amounts: bool = False
    budgets: bool = False
    priced: bool = False
    meters: Meters | None = None
    ratio: TokenRatio = UNKNOWN


_Amounts: TypeAlias = tuple[int, int | None, tuple[TokenRatio, int, int] | None]
"""The tokens of a request, what they cost, None where that cannot be told, and what they were estimated from: the
ratio, the bytes of the prompt, and the most tokens of the answer."""

_ONE: Final[_Amounts] = (1, 0, None)
"""The amounts of a request where only requests are limited."""


class Held(Reservation):
    """What one request holds of its limits until it ends. See `HeldLimits`."""

    __slots__ = ("_bound", "_ended_at", "_estimate", "_limits", "_target", "soonest")

    def __init__(
        self,
        limits: "TeamLimiter",
        bound: BoundScopes,
        meters: Meters,
        amounts: "_Amounts",
    ) -> None:
        self._limits = limits
        self._bound = bound
        self.meters = meters
        self.tokens, self._cost, self._estimate = amounts
        self.soonest: Failure | None = None
        self._target: TargetHold | None = None
        self._ended_at: float | None = None
        self.ended = False

    def cost_at(self, price: Price | None) -> int | None:
        """See HeldLimits."""
        if self._estimate is None:
            return None if price is None else 0
        ratio, prompt_bytes, most = self._estimate
        return _paid(price, *ratio.parts(prompt_bytes, most))

    def hold_target(self, reservation: TargetHold) -> None:
        """See HeldLimits."""
        self._target = reservation

    def leave_target(self) -> None:
        """See HeldLimits. The request stays counted there: it was sent."""
        target, self._target = self._target, None
        if target is not None:
            target.settle(0, 0)

    def end(self, record: RequestRecord) -> None:
        """See HeldLimits. What is no use in the ledger, since no deployment was asked, gives everything back. An
        answer out of the cache counts as a request, and uses no tokens."""
        if self.ended:
            return
        from_cache = record.cache is not None and record.from_cache
        if not record.attempts and not from_cache:
            self.release()
            self.leave_target()
            return
        # If the count of what was used fails, what was reserved counts as used.
        tokens, billed = self.tokens, self._cost
        try:
            self._bill_unanswered(record)
            if (usage := record.counted) is None:
                tokens, billed = 0, None
            else:
                prompt, answer = usage.prompt_tokens, usage.completion_tokens
                used = prompt + answer
                tokens = used if 0 <= used <= MOST_TOKENS else _within(used, MOST_TOKENS)
                billed = None
                if self._bound.priced or (self._target is not None and self._target.priced):
                    paid = record.cost
                    record.paid = usage, paid  # for the metrics and the ledger, which ask next
                    if paid is not None:
                        nano = round(paid * NANO)
                        billed = nano if 0 <= nano <= MOST_COST else _within(nano, MOST_COST)
                if (estimate := self._estimate) is not None and not (usage.estimated or from_cache):
                    ratio, prompt_bytes, most = estimate
                    if ratio is UNKNOWN:
                        ratio = self._bound.ratio = self._limits.estimates.begin(self._bound.pair)
                    ratio.learn(prompt_bytes, most, prompt, answer)
            limits = self._limits
            now = self._ended_at = limits._now()
            if now >= limits.notes.until:
                limits.settling()
        finally:
            self.settle(tokens, billed)
            if self._target is not None:
                self._target.settle(tokens, billed)

    def _bill_unanswered(self, record: RequestRecord) -> None:
        """Bill calls whose answers were not given. A sum over several says nothing of what such a request takes."""
        if record.unanswered:
            record.bill_unanswered()
            self._estimate = None

    def headers(self) -> Mapping[str, str]:
        """See HeldLimits."""
        return limit_headers(self.meters.facts(*self._limits.times()))

    def header_lines(self) -> str:
        """See HeldLimits. The head of a whole answer is written right after the end, by the same reading of the clock.
        Most answers find nothing used of any rate, since each took less than has come back since its request."""
        meters, limits = self.meters, self._limits
        now = limits._now() if self._ended_at is None else self._ended_at
        if not meters.unused(now):
            return limit_lines(meters.facts(now, limits._wall()))
        if meters.full_lines is None:
            meters.full_lines = kept_lines(meters.facts(now, limits._wall()))
        return meters.full_lines


class TeamLimiter:
    """Admits the requests of teams by the limits of a table. `now` returns seconds of the event loop, `wall` unix
    seconds, `draw` a number from 0 to 1. `settling` is called before what a request used is counted, where the mark of
    the book's notes is over, `refused` with the team and the limit of each refusal; `unread` says whether budgets
    refuse since nobody knows what was spent, and is asked until that is known once."""

    def __init__(
        self, book: LimitBook, now: Callable[[], float], wall: Callable[[], float], draw: Callable[[], float]
    ) -> None:
        self.book = book
        self.notes = book.notes
        self.estimates = TokenEstimates()
        self.settling: Callable[[], None] = _nothing
        self.unread: Callable[[], bool] | None = None
        self.refused: Callable[[str, str], None] = lambda team, limit: None
        self._now = now
        self._wall = wall
        self._draw = draw
        self._lines = book.lines
        self._zone: tzinfo = UTC
        self._limited: Mapping[str, bool] = {}
        self._targets = False
        self._scopes: BoundedDict[tuple[Key, str], BoundScopes] = BoundedDict(KEPT)
        self._budgets: Mapping[str, tuple[ScopeBudget, ...]] = {}
        self._routed: frozenset[str] = frozenset()
        self._routing: dict[Key, tuple[str, ...]] = {}
        self._free: dict[Team, Team] = {}

    def use(self, snapshot: Snapshot) -> None:
        """Put a table's limits in force for requests that begin from now on."""
        budgets = self._budgets = snapshot.budgets
        self.book.use(snapshot.scopes, budgets, snapshot.zone, self._now())
        self._zone = snapshot.zone
        amounts = {scope: _on_amounts(limits) for scope, limits in snapshot.scopes.items()}
        self._limited = {**amounts, **dict.fromkeys(budgets, True)}
        self._targets = bool(snapshot.target_limits)
        self._routed = frozenset(scope for scope, every in budgets.items() if any(each.route for each in every))
        self._scopes = BoundedDict(KEPT)
        self._routing = {}
        self._free = {}

    @property
    def limits_anything(self) -> bool:
        """Return whether the table has a limit or a budget."""
        return bool(self._limited) or self._targets

    def times(self) -> tuple[float, float]:
        """Return the time of the loop, and that of the calendar."""
        return self._now(), self._wall()

    def route(self, key: Key, snapshot: Snapshot) -> tuple[str, Team] | None:
        """Return the name that answers a client's requests because of what was spent, and the team that may ask for it,
        since the operator wrote it; None for the name asked for. Of several budgets the narrowest scope's counts."""
        if not self._routed:
            return None
        if (scopes := self._routing.get(key)) is None:
            every = scopes_of(ScopeSide.CLIENT, _subject(key, ""))
            scopes = self._routing[key] = tuple(scope for scope in every if scope in self._routed)
        for scope in scopes:
            name = self.book.route_of(scope, *self.times())
            # A request that began before a reload has the names of the table before.
            if name is not None and any(each.route == name for each in snapshot.budgets.get(scope, ())):
                return name, self._unbound(key.team)
        return None

    def _unbound(self, team: Team) -> Team:
        """Return a team that may ask for any name."""
        if (free := self._free.get(team)) is None:
            free = self._free[team] = replace(team, allow=(WILDCARD,))
        return free

    def admit(self, key: Key, planned: Plan, record: RequestRecord, size: Callable[[], RequestSize]) -> Later | None:
        """Admit a planned request, or return what waits until it is. `size` measures it, where something is limited.
        Raises GatewayError where it is refused."""
        if not self._limited and not self._targets:  # as `limits_anything`, whose call would cost as much again
            return None
        bound = self._scopes.get((key, planned.label))
        if bound is None:
            bound = self._bind(key, planned.label)
        if not bound.scopes and not self._targets:
            return None
        if bound.budgets and self.unread is not None:
            self._have_read(self.unread, record)
        amounts = self._measure(bound, planned, size()) if bound.amounts or self._targets else _ONE
        now, wall = self._now(), self._wall()
        meters = bound.meters
        if meters is None:
            meters = bound.meters = self.book.meters(bound.scopes, now)
        # What passes at once needs nothing else of the book, whose work begins where something is lacking.
        if not self._lines and meters.attempt(amounts[0], amounts[1], now, wall):
            record.held = Held(self, bound, meters, amounts)
            return None
        outcome = self.book.begin(bound.scopes, amounts[0], amounts[1], now, wall)
        if isinstance(outcome, Meters):
            record.held = Held(self, bound, outcome, amounts)
            return None
        if isinstance(outcome, Exceeded) and outcome.hopeless(key.team.limits.patience):
            raise self._refusal(outcome, bound, record)
        return partial(self._admitted_later, key, record, bound, amounts)

    def _measure(self, bound: BoundScopes, planned: Plan, size: RequestSize) -> _Amounts:
        """Estimate what a request takes. Where one of the targets that may answer has no price, nobody knows what it
        costs."""
        prompt_bytes, most, answers = size
        if most is None:
            most = planned.targets[0].max_output_tokens or OUTPUT
        most *= answers
        most = most if most < MOST_TOKENS else MOST_TOKENS
        ratio = bound.ratio
        if ratio is UNKNOWN:  # another key of the team may have begun
            ratio = bound.ratio = self.estimates.ratio(bound.pair)
        # As `TokenRatio.parts`, whose call would cost as much again.
        prompt, answer = round((prompt_bytes or 0) / BYTES_EACH * ratio.prompt), round(most * ratio.answer)
        paid: int | None = 0
        if bound.priced:
            targets = planned.targets
            price = targets[0].price
            several = len(targets) > 1 or planned.fallbacks
            if price is None or prompt_bytes is None or (several and _unpriced(planned, answer)):
                paid = None
            else:
                paid = _paid(price, prompt, answer)
        return prompt + answer or 1, paid, (ratio, prompt_bytes, most) if prompt_bytes else None

    def _have_read(self, unread: Callable[[], bool], record: RequestRecord) -> None:
        """Refuse what a budget holds as long as nobody knows what was spent."""
        if unread():
            record.outcome = "limited"
            raise budget_unread()
        self.unread = None

    async def _admitted_later(
        self, key: Key, record: RequestRecord, bound: BoundScopes, amounts: _Amounts, longest: float
    ) -> None:
        began, patience = self._now(), min(key.team.limits.patience, longest)
        try:
            outcome = await self.book.admit_within(bound.scopes, amounts[0], amounts[1], patience)
        finally:
            record.limit_waited += self._now() - began
        if isinstance(outcome, Exceeded):
            raise self._refusal(outcome, bound, record)
        record.held = Held(self, bound, outcome.meters, amounts)

    def _refusal(self, exceeded: Exceeded, bound: BoundScopes, record: RequestRecord) -> GatewayError:
        """Return the error of a request beyond a limit, and count it."""
        team, limit = limit_labels(exceeded.scope, exceeded.unit, exceeded.period)
        record.outcome, record.limit = "limited", refusing_limit(exceeded)
        if exceeded.kind is LimitKind.UNPRICED:
            self.refused(team, f"{limit}, unpriced")
            return no_price(exceeded.scope, record.asked or bound.pair[1])
        self.refused(team, limit)
        return limit_exceeded(exceeded, self.book.facts(bound.scopes, *self.times()), self._zone, self._draw)

    def _bind(self, key: Key, model: str) -> BoundScopes:
        """Find out what holds a key's request for a name."""
        every = scopes_of(ScopeSide.CLIENT, _subject(key, model))
        scopes = tuple(scope for scope in every if scope in self._limited)
        amounts = any(self._limited[scope] for scope in scopes)
        budgets = [budget for scope in scopes for budget in self._budgets.get(scope, ())]
        priced = any(budget.unit is Unit.USD for budget in budgets)
        pair = key.team.name, model
        bound = self._scopes[key, model] = BoundScopes(pair, scopes, amounts, bool(budgets), priced)
        return bound


def _subject(key: Key, model: str) -> Subject:
    """Return what the scopes of requests with a key for a name are found from."""
    return Subject(key.team.name, key.label, model)


def _paid(price: Price | None, prompt: int, answer: int) -> int | None:
    """Return what tokens cost, in billionths of a USD; `None` without a price of what is used."""
    if price is None:
        return None
    if price.long_context:
        price = price.of_length(prompt)
    if price.output is None:
        return None if answer > 0 else round(prompt * price.input * _NANO_PER_MILLIONTH)
    return round((prompt * price.input + answer * price.output) * _NANO_PER_MILLIONTH)


def _within(number: int, most: int) -> int:
    """Return a number that somebody wrote, from 0 to `most`."""
    return most if number > most else number if number > 0 else 0


def _on_amounts(limits: Limits) -> bool:
    """Return whether limits count more than requests."""
    every: tuple[Rate | Quota, ...] = (*limits.rates, *limits.quotas)
    return any(each.unit is not Unit.REQUESTS for each in every)


def _unpriced(planned: Plan, answer: int) -> bool:
    """Return whether what may be used has no price at one of the targets: as `providers.target.cost`, of what has none,
    none must be used."""
    return any(each.price is None or (each.price.output is None and answer > 0) for each in planned.every_target)


def _nothing() -> None:
    """Called where nothing keeps count of what is settled."""
