"""What is left of limits and budgets, as operators see it: of one process or of several, with what nobody has used yet.

Pure. Amounts in USD are numbers of USD in reports, as in the table.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from heapq import nlargest
from itertools import islice
from typing import Final

from proxy.limits.limit import NANO, Limits, TeamBudget, Unit
from proxy.limits.limit_views import LimitView, limit_labels
from proxy.limits.reservation import LimitKind
from proxy.routing.snapshot import Snapshot

MOST_VIEWS: Final = 1000
"""Limits in a report: those that are used most. A table may have ten thousand teams."""

MOST_LINES: Final = 20
"""Limits on the status page."""


def team_of(view: LimitView) -> str:
    """Return the team of a limit, empty where it is a vendor's, a model's or a deployment's."""
    return limit_labels(view.scope, view.unit, view.period)[0]


def most_used(views: Iterable[LimitView], team: str | None = None) -> tuple[LimitView, ...]:
    """Return the limits that are used most, first; with `team` only that team's and its keys'."""
    if team is not None:
        views = (view for view in views if team_of(view) == team)
    return tuple(nlargest(MOST_VIEWS, views, key=lambda view: view.ratio))


def merged_views(found: Iterable[Iterable[LimitView]]) -> tuple[LimitView, ...]:
    """Return the limits that several processes share as one: each knows of the others with a delay, so that the one
    which knows of most is right."""
    largest: dict[tuple[object, ...], LimitView] = {}
    for view in (view for views in found for view in views):
        key = (view.scope, view.kind, view.unit, view.period, view.limit, view.at, view.then)
        known = largest.get(key)
        if known is None or (view.used, view.reached) > (known.used, known.reached):
            largest[key] = view
    return most_used(largest.values())


def with_unused(views: Iterable[LimitView], snapshot: Snapshot, team: str | None = None) -> tuple[LimitView, ...]:
    """Add the limits of a table that are not in use yet, as far as a report has room for them."""
    used = most_used(views, team)
    scopes = {view.scope for view in used}
    every = (view for view in _unused(snapshot) if view.scope not in scopes)
    wanted = every if team is None else (view for view in every if team_of(view) == team)
    return (*used, *islice(wanted, MOST_VIEWS - len(used)))


def _unused(snapshot: Snapshot) -> Iterator[LimitView]:
    for scope, limits in snapshot.scopes.items():
        yield from views_of(scope, limits)
    for team in snapshot.teams.values():
        yield from (_budget(f"team {team.name}", budget) for budget in team.limits.budgets)


def views_of(scope: str, limits: Limits) -> Iterator[LimitView]:
    """Yield the limits of a scope with nothing used."""
    for rate in limits.rates:
        yield LimitView(scope, LimitKind.RATE, rate.unit, rate.period, rate.burst, 0)
    for quota in limits.quotas:
        yield LimitView(scope, LimitKind.QUOTA, quota.unit, quota.period, quota.amount, 0)
    if limits.concurrent is not None:
        yield LimitView(scope, LimitKind.CONCURRENT, Unit.REQUESTS, None, limits.concurrent, 0)


def _budget(scope: str, budget: TeamBudget) -> LimitView:
    unit, period, amount = budget.unit, budget.period, budget.amount
    return LimitView(scope, LimitKind.BUDGET, unit, period, amount, 0, at=budget.at, then=budget.then)


def limits_report(views: Iterable[LimitView], alone: Mapping[str, object]) -> dict[str, object]:
    """Return a report as JSON values; `alone` says how limits are counted."""
    return {**alone, "limits": [_members(view) for view in views]}


def _members(view: LimitView) -> dict[str, object]:
    unit = view.unit
    return {
        "scope": view.scope,
        "kind": view.kind.value,
        "unit": unit.value,
        "period": None if view.period is None else view.period.value,
        "limit": _amount(unit, view.limit),
        "used": _amount(unit, view.used),
        "remaining": _amount(unit, view.remaining),
        "ratio": round(view.ratio, 4),
        "ends": None if view.ends is None else datetime.fromtimestamp(view.ends, UTC).isoformat(),
        "at": view.at,
        "then": view.then,
        "reached": view.reached,
    }


def _amount(unit: Unit, amount: int) -> int | float:
    return amount / NANO if unit is Unit.USD else amount


def limit_lines(views: Iterable[LimitView]) -> list[str]:
    """Return the limits that are used most, a line each."""
    return [_line(view) for view in islice((view for view in views if view.used), MOST_LINES)]


def _line(view: LimitView) -> str:
    period = " at once" if view.period is None else f" per {view.period.value}"
    used, limit = _amount(view.unit, view.used), _amount(view.unit, view.limit)
    what = f"{used:.2f} of {limit:.2f} USD" if view.unit is Unit.USD else f"{used} of {limit} {view.unit.value}"
    budget = f", {view.then} at {view.at:.0%}" if view.kind is LimitKind.BUDGET else ""
    return f"{view.scope}: {what}{period} ({view.ratio:.0%}){budget}{', reached' if view.reached else ''}"
