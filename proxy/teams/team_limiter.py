"""Applies the limits and budgets of all clients, of the team, of the key and of the end user to a request. They are
applied once, after parsing and planning and before any deployment is called.

A request without limits costs one dict lookup.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import UTC, tzinfo
from functools import partial
from typing import Final, TypeAlias

from proxy.bounded_dict import BoundedDict
from proxy.errors import GatewayError
from proxy.limits.limit import (
    MOST_TOKENS,
    EachUser,
    Limits,
    Quota,
    Rate,
    ScopeBudget,
    ScopeSide,
    Subject,
    Unit,
    scopes_of,
    user_scope,
)
from proxy.limits.limit_registry import LimitRegistry
from proxy.limits.limit_views import Exceeded, LimitKind, limit_labels
from proxy.limits.reservation import Meters
from proxy.limits.token_estimate import DEFAULT_OUTPUT_TOKENS, TEXT_BYTES_PER_TOKEN, UNKNOWN_RATIO, TokenEstimates
from proxy.request_record import RequestRecord
from proxy.routing.request_plan import Plan
from proxy.routing.snapshot import WILDCARD, Key, Snapshot, Team
from proxy.teams.held_limits import ONE, Amounts, BoundScopes, Held, cost_of
from proxy.teams.limit_errors import budget_unread, limit_exceeded, no_price, refusing_limit, user_required
from proxy.teams.user_scopes import UserScopes

MAX_CACHED: Final = 16_384
"""The most pairs of key and model name whose scopes are cached. The same number limits the cached pairs of such a pair
and an end user."""

LEARN_TIMEOUT: Final = 2.0
"""The most seconds for which the first request of an end user waits for the user's sums in the ledger."""


Later: TypeAlias = Callable[[float], Awaitable[None]]
"""A function that waits until a request is admitted, for at most the given number of seconds. It raises GatewayError if
the request is refused."""


RequestSize: TypeAlias = tuple[int | None, int | None, int]
"""The size of a request. The parts are the bytes of its prompt (`None` if its cost does not follow from tokens), the
most tokens of each choice (`None` if it sets no limit), and the number of choices. It is a plain tuple, because one is
made for most requests."""


class TeamLimiter:
    """Admits the requests of teams by the limits of a configuration.

    - `now` returns the event loop's seconds, `wall` unix seconds, and `draw` a number from 0 to 1.
    - `settling` is called before usage is counted if the mark of the registry's notes is over.
    - `refused` is called with the team and the limit of each refusal.
    - `unread` returns whether budgets refuse because the spending is not known. It is called until it returns false.
    """

    def __init__(
        self, registry: LimitRegistry, now: Callable[[], float], wall: Callable[[], float], draw: Callable[[], float]
    ) -> None:
        self.registry = registry
        self.notes = registry.notes
        self.estimates = TokenEstimates()
        self.settling: Callable[[], None] = _ignore
        self.unread: Callable[[], bool] | None = None
        self.refused: Callable[[str, str], None] = lambda team, limit: None
        self.now = now
        self.wall = wall
        self._draw = draw
        self._lines = registry.lines
        self._zone: tzinfo = UTC
        self._limited: Mapping[str, bool] = {}
        self._targets = False
        self.limits_anything = False
        """Whether the configuration has a limit or a budget."""
        self.users = UserScopes(registry, now, wall)
        self._scopes: BoundedDict[tuple[Key, str], BoundScopes] = BoundedDict(MAX_CACHED)
        self._of_users: BoundedDict[tuple[BoundScopes, str], BoundScopes] = BoundedDict(MAX_CACHED)
        self._budgets: Mapping[str, tuple[ScopeBudget, ...]] = {}
        self.routed: frozenset[str] = frozenset()
        """The scopes with a budget that sends requests to another model name once it is spent."""
        self._routing: dict[Key, tuple[str, ...]] = {}
        self._unrestricted: dict[Team, Team] = {}

    def use(self, snapshot: Snapshot) -> None:
        """Apply the limits of a configuration to requests that begin from now on."""
        budgets = self._budgets = snapshot.budgets
        self.registry.use(snapshot.scopes, budgets, snapshot.zone, self.now())
        self._zone = snapshot.zone
        amounts = {scope: _on_amounts(limits) for scope, limits in snapshot.scopes.items()}
        self._limited = {**amounts, **dict.fromkeys(budgets, True)}
        self._targets = bool(snapshot.target_limits)
        self.users.use(snapshot.each_user)
        self.limits_anything = bool(self._limited or self._targets or snapshot.each_user)
        self.routed = frozenset(scope for scope, every in budgets.items() if any(each.route for each in every))
        self._scopes, self._of_users = BoundedDict(MAX_CACHED), BoundedDict(MAX_CACHED)
        self._routing = {}
        self._unrestricted = {}

    def times(self) -> tuple[float, float]:
        """Return the event loop's time and the unix time."""
        return self.now(), self.wall()

    def route(self, key: Key, snapshot: Snapshot) -> tuple[str, Team] | None:
        """Return the model name to which a client's requests go because a budget is spent, and a team that may use this
        name, because the operator configured it. Return `None` if the requests go to the requested name. If several
        budgets are spent, the budget of the narrowest scope decides."""
        if not self.routed:
            return None
        if (scopes := self._routing.get(key)) is None:
            every = scopes_of(ScopeSide.CLIENT, _subject(key, ""))
            scopes = self._routing[key] = tuple(scope for scope in every if scope in self.routed)
        for scope in scopes:
            name = self.registry.route_of(scope, *self.times())
            # A request that began before a reload has the names of the former configuration.
            if name is not None and any(each.route == name for each in snapshot.budgets.get(scope, ())):
                return name, self._unbound(key.team)
        return None

    def _unbound(self, team: Team) -> Team:
        """Return a copy of a team that may use any name."""
        if (free := self._unrestricted.get(team)) is None:
            free = self._unrestricted[team] = replace(team, allow=(WILDCARD,))
        return free

    def admit(self, key: Key, plan: Plan, record: RequestRecord, size: Callable[[], RequestSize]) -> Later | None:
        """Admit a planned request, or return the function that waits for its admission. `size` returns the size of the
        request; it is called only if something is limited. Raises GatewayError if the request is refused."""
        if not self.limits_anything:
            return None
        bound = self._scopes.get((key, plan.label))
        if bound is None:
            bound = self._bind(key, plan.label)
        if bound.each_user is not None:
            bound = self._bind_user(bound, bound.each_user, record)
        if not bound.scopes and not self._targets:
            return None
        if bound.budgets and self.unread is not None:
            self._require_read(self.unread, record)
        amounts = self._measure(bound, plan, size()) if bound.amounts or self._targets else ONE
        if bound.state is not None and not self._is_known(bound):
            return partial(self._admitted_once_known, key, record, bound, amounts)
        now, wall = self.now(), self.wall()
        meters = bound.meters
        if meters is None:
            meters = bound.meters = self.registry.meters(bound.scopes, now)
        # A request that passes at once needs nothing else of the registry.
        if not self._lines and meters.attempt(amounts[0], amounts[1], now, wall):
            record.held = Held(self, bound, meters, amounts)
            return None
        return self._begin(key, record, bound, amounts, now, wall)

    def _begin(
        self, key: Key, record: RequestRecord, bound: BoundScopes, amounts: Amounts, now: float, wall: float
    ) -> Later | None:
        """Admit a request that may have to wait, or return the function that waits for its admission."""
        outcome = self.registry.begin(bound.scopes, amounts[0], amounts[1], now, wall)
        if isinstance(outcome, Meters):
            record.held = Held(self, bound, outcome, amounts)
            return None
        if isinstance(outcome, Exceeded) and outcome.hopeless(key.team.limits.patience):
            raise self._refusal(outcome, bound, record)
        return partial(self._admitted_later, key, record, bound, amounts)

    def _measure(self, bound: BoundScopes, plan: Plan, size: RequestSize) -> Amounts:
        """Estimate the amounts of a request. The cost is unknown if one of the possible targets has no price."""
        prompt_bytes, most, answers = size
        if most is None:
            most = plan.targets[0].max_output_tokens or DEFAULT_OUTPUT_TOKENS
        most *= answers
        most = most if most < MOST_TOKENS else MOST_TOKENS
        ratio = bound.ratio
        if ratio is UNKNOWN_RATIO:  # A request with another key of the team may have begun it.
            ratio = bound.ratio = self.estimates.ratio(bound.pair)
        # This repeats `TokenRatio.parts`, because a call of that method would double the cost.
        prompt, answer = round((prompt_bytes or 0) / TEXT_BYTES_PER_TOKEN * ratio.prompt), round(most * ratio.answer)
        paid: int | None = 0
        if bound.priced:
            targets = plan.targets
            price = targets[0].price
            several = len(targets) > 1 or plan.fallbacks
            if price is None or prompt_bytes is None or (several and lacks_price(plan, answer)):
                paid = None
            else:
                paid = cost_of(price, prompt, answer)
        return prompt + answer or 1, paid, (ratio, prompt_bytes, most) if prompt_bytes else None

    def _require_read(self, unread: Callable[[], bool], record: RequestRecord) -> None:
        """Refuse requests under a budget as long as the spending has not been read."""
        if unread():
            record.outcome = "limited"
            raise budget_unread()
        self.unread = None

    async def _admitted_later(
        self, key: Key, record: RequestRecord, bound: BoundScopes, amounts: Amounts, longest: float
    ) -> None:
        began, patience = self.now(), min(key.team.limits.patience, longest)
        try:
            outcome = await self.registry.admit_within(bound.scopes, amounts[0], amounts[1], patience)
        finally:
            record.limit_waited += self.now() - began
        if isinstance(outcome, Exceeded):
            raise self._refusal(outcome, bound, record)
        record.held = Held(self, bound, outcome.meters, amounts)

    def _bind_user(self, bound: BoundScopes, rule: EachUser, record: RequestRecord) -> BoundScopes:
        """Return the scopes of a request of an end user: the user's besides the key's. Raises GatewayError if the
        request must name a user and does not."""
        name = record.user
        if name is None:
            if rule.required:
                raise user_required()
            return bound
        if not rule.limits and not rule.budgets:
            return bound
        made = self._of_users.get((bound, name))
        if made is None:
            scope = user_scope(bound.pair[0], name)
            made = self._of_users[bound, name] = BoundScopes(
                bound.pair,
                (scope, *bound.scopes),
                bound.amounts or bool(rule.budgets) or _on_amounts(rule.limits),
                bound.budgets or bool(rule.budgets),
                bound.priced or any(budget.unit is Unit.USD for budget in rule.budgets),
                user=scope,
            )
        state = self.users.touch(made.user, rule)
        if made.state is not state:
            made.state, made.meters = state, None
        return made

    def _is_known(self, bound: BoundScopes) -> bool:
        """Return whether the calendar sums of a user have been read."""
        return bound.state is None or not bound.state.counters or self.users.known(bound.user)

    async def _admitted_once_known(
        self, key: Key, record: RequestRecord, bound: BoundScopes, amounts: Amounts, longest: float
    ) -> None:
        began, users = self.now(), self.users
        try:
            known = await users.learned(bound.user, min(longest, LEARN_TIMEOUT))
        finally:
            waited = self.now() - began
            record.limit_waited += waited
        if users.refuses_unread and not known:
            record.outcome = "limited"
            raise budget_unread()
        await self._admitted_later(key, record, bound, amounts, max(0.0, longest - waited))

    def _refusal(self, exceeded: Exceeded, bound: BoundScopes, record: RequestRecord) -> GatewayError:
        """Return the error of a request beyond a limit, and count it."""
        team, limit = limit_labels(exceeded.scope, exceeded.unit, exceeded.period)
        record.outcome, record.limit = "limited", refusing_limit(exceeded)
        if exceeded.kind is LimitKind.UNPRICED:
            self.refused(team, f"{limit}, unpriced")
            return no_price(exceeded.scope, record.asked or bound.pair[1])
        self.refused(team, limit)
        return limit_exceeded(exceeded, self.registry.facts(bound.scopes, *self.times()), self._zone, self._draw)

    def _bind(self, key: Key, model: str) -> BoundScopes:
        """Find the scopes that limit a key's requests for a model name."""
        every = scopes_of(ScopeSide.CLIENT, _subject(key, model))
        scopes = tuple(scope for scope in every if scope in self._limited)
        amounts = any(self._limited[scope] for scope in scopes)
        budgets = [budget for scope in scopes for budget in self._budgets.get(scope, ())]
        priced = any(budget.unit is Unit.USD for budget in budgets)
        pair = key.team.name, model
        each_user = self.users.rules.get(key.team.name)
        bound = BoundScopes(pair, scopes, amounts, bool(budgets), priced, each_user=each_user)
        self._scopes[key, model] = bound
        return bound


def _subject(key: Key, model: str) -> Subject:
    """Return the labels for the scopes of requests with a key for a model name."""
    return Subject(key.team.name, key.label, model)


def _on_amounts(limits: Limits) -> bool:
    """Return whether the limits count anything besides requests."""
    every: tuple[Rate | Quota, ...] = (*limits.rates, *limits.quotas)
    return any(each.unit is not Unit.REQUESTS for each in every)


def lacks_price(plan: Plan, answer: int) -> bool:
    """Return whether usage has no price at one of the targets. As in `providers.target.cost`, a missing price only
    matters for a kind of tokens that the usage has."""
    return any(each.price is None or (each.price.output is None and answer > 0) for each in plan.every_target)


def _ignore() -> None:
    """Do nothing: the default without a ledger."""
