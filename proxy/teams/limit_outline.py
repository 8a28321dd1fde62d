"""The limits and budgets of a request for dry runs, by their scopes, and the tokens that it would reserve.

This module counts nothing: only a running gateway knows how far the limits are used.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from proxy.limits.limit import (
    UNLIMITED,
    ScopeBudget,
    ScopeSide,
    Subject,
    Unit,
    budget_words,
    limit_words,
    scopes_of,
    user_scope,
)
from proxy.limits.limit_views import EACH_USER
from proxy.limits.token_estimate import DEFAULT_OUTPUT_TOKENS, UNKNOWN_RATIO
from proxy.routing.request_plan import Plan
from proxy.routing.snapshot import Snapshot, Team
from proxy.teams.limit_errors import no_price, user_required
from proxy.teams.team_limiter import RequestSize, lacks_price


@dataclass(frozen=True, slots=True)
class HeldTo:
    """The limits and budgets of one scope as text."""

    scope: str
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """The limits of a request, and the tokens that it would reserve before any request of its team. `targets` are the
    limits of deployments by their labels: a deployment at its limit is skipped. `patience` is how many seconds the
    request would wait instead of being refused."""

    tokens: int
    held: tuple[HeldTo, ...]
    targets: Mapping[str, tuple[HeldTo, ...]]
    patience: float = 0.0


def request_limits(
    snapshot: Snapshot, team: Team, plan: Plan, size: RequestSize, user: str | None = None
) -> RequestLimits | None:
    """Return the limits of a request of the end user `user` with a plan; `None` if there are no limits. Raises
    GatewayError if the request must name a user, or if a budget refuses it because its cost is not known."""
    held = (*_of_user(snapshot, team, user), *_of_team(snapshot, team, plan.label))
    targets = {
        target.label: tuple(
            HeldTo(scope, _words_of(snapshot, scope)) for scope, _ in snapshot.target_limits[target.label]
        )
        for target in plan.targets
        if target.label in snapshot.target_limits
    }
    if not held and not targets:
        return None
    prompt_bytes, most, _ = size
    if prompt_bytes is None or lacks_price(plan, DEFAULT_OUTPUT_TOKENS if most is None else most):
        _require_price(snapshot, team, plan, user)
    tokens = sum(UNKNOWN_RATIO.parts(prompt_bytes or 0, DEFAULT_OUTPUT_TOKENS if most is None else most)) or 1
    return RequestLimits(tokens, held, targets, team.limits.patience)


def _of_user(snapshot: Snapshot, team: Team, user: str | None) -> Iterator[HeldTo]:
    """Yield the limits of an end user; nothing if there is no user and none is required."""
    rule = snapshot.each_user.get(team.name)
    if rule is None:
        return
    if user is None and rule.required:
        raise user_required()
    if words := (*limit_words(rule.limits), *map(_budget, rule.budgets)):
        named = f"{EACH_USER} of team {team.name} that a request names; this one names none"
        yield HeldTo(named if user is None else user_scope(team.name, user), words)


def _require_price(snapshot: Snapshot, team: Team, plan: Plan, user: str | None) -> None:
    """Raise GatewayError if a budget that applies to each request of the team refuses a request whose cost is not
    known."""
    scopes = scopes_of(ScopeSide.CLIENT, Subject(team.name, "", plan.label))
    budgets = [(scope, budget) for scope in scopes for budget in snapshot.budgets.get(scope, ())]
    rule = snapshot.each_user.get(team.name)
    if rule is not None and user is not None:
        budgets += [(user_scope(team.name, user), budget) for budget in rule.budgets]
    for scope, budget in budgets:
        if budget.unit is Unit.USD and budget.unpriced == "reject":
            raise no_price(scope, plan.asked)


def _of_team(snapshot: Snapshot, team: Team, model: str) -> Iterator[HeldTo]:
    """Yield the limits of a team, of its keys, of the team for one model name, and of all clients. The key of the
    request is not known."""
    labels = sorted({key.label for key in snapshot.keys.values() if key.team.name == team.name})
    every = [scopes_of(ScopeSide.CLIENT, Subject(team.name, label, model)) for label in ("", *labels)]
    for scope in dict.fromkeys(scope for scopes in every for scope in reversed(scopes)):
        if words := _words_of(snapshot, scope):
            yield HeldTo(scope, words)


def _words_of(snapshot: Snapshot, scope: str) -> tuple[str, ...]:
    """Return the limits and budgets of a scope as text."""
    budgets = map(_budget, snapshot.budgets.get(scope, ()))
    return (*limit_words(snapshot.scopes.get(scope, UNLIMITED)), *budgets)


def _budget(budget: ScopeBudget) -> str:
    """Return a budget as text, with the action once the part `at` of it is spent."""
    then = f"requests go to {budget.route}" if budget.then == "route" else _THEN[budget.then]
    strict = "; models without a price are refused" if budget.unpriced == "reject" else ""
    return f"{budget_words(budget)}; once {budget.at:.0%} are spent: {then}{strict}"


_THEN = {"warn": "a line in the log", "reject": "refused"}
