"""What is left of limits and budgets, as operators see it: of one process or of several, with what nobody has used yet.

Pure. Amounts in USD are numbers of USD in reports, as in the table.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import islice
from typing import Final

from proxy.limits import limit_views
from proxy.limits.calendar_period import bounds
from proxy.limits.limit import NANO, UNLIMITED, Unit, amount_words, number_words, period_words
from proxy.limits.limit_registry import CALENDAR
from proxy.limits.limit_views import MOST_VIEWS, LimitKind, LimitView, limit_labels, unused_views
from proxy.routing.snapshot import Snapshot

MOST_LINES: Final = 20
"""Limits on the status page."""


def team_of(view: LimitView) -> str:
    """Return the team of a limit, empty where it is a vendor's, a model's or a deployment's."""
    return limit_labels(view.scope, view.unit, view.period)[0]


def most_used(views: Iterable[LimitView], team: str | None = None) -> tuple[LimitView, ...]:
    """Return the limits that are used most, first; with `team` only that team's and its keys'."""
    return tuple(limit_views.most_used(views if team is None else (view for view in views if team_of(view) == team)))


def merged_views(found: Iterable[Iterable[LimitView]]) -> tuple[LimitView, ...]:
    """Return the limits that several processes share as one: each knows of the others with a delay, so that the one
    which knows of most is right."""
    largest: dict[tuple[object, ...], LimitView] = {}
    for view in (view for views in found for view in views):
        key = (view.scope, view.kind, view.unit, view.period, view.limit, view.burst, view.at, view.then)
        known = largest.get(key)
        if known is None or (view.used, view.reached) > (known.used, known.reached):
            largest[key] = view
    return most_used(largest.values())


def with_unused(
    views: Iterable[LimitView], snapshot: Snapshot, wall: float, team: str | None = None
) -> tuple[LimitView, ...]:
    """Add the limits of a table that are not in use yet, as far as a report has room for them. `wall` are the unix
    seconds that it is."""
    used = most_used(views, team)
    scopes = {view.scope for view in used}
    every = (view for view in _unused(snapshot, wall) if view.scope not in scopes)
    wanted = every if team is None else (view for view in every if team_of(view) == team)
    return (*used, *islice(wanted, MOST_VIEWS - len(used)))


def _unused(snapshot: Snapshot, wall: float) -> Iterator[LimitView]:
    ends = {period: bounds(period, snapshot.zone, wall)[1] for period in CALENDAR}
    for scope in {**snapshot.scopes, **snapshot.budgets}:
        yield from unused_views(scope, snapshot.scopes.get(scope, UNLIMITED), snapshot.budgets.get(scope, ()), ends)
    for team, rule in snapshot.each_user.items():
        yield from unused_views(f"user {team}/*", rule.limits, rule.budgets, ends)


def limits_report(
    views: Iterable[LimitView], alone: Mapping[str, object], patience: Mapping[str, float]
) -> dict[str, object]:
    """Return a report as JSON values; `alone` says how limits are counted, `patience` how many seconds requests of a
    team wait for a limit that flows, or for a place."""
    return {**alone, "limits": [_members(view, patience.get(team_of(view), 0.0)) for view in views]}


def _members(view: LimitView, patience: float) -> dict[str, object]:
    unit, flows = view.unit, view.kind in (LimitKind.RATE, LimitKind.CONCURRENT)
    return {
        "scope": view.scope,
        "kind": view.kind.value,
        "unit": unit.value,
        "period": None if view.period is None else view.period.value,
        "limit": _amount(unit, view.limit),
        "burst": None if view.burst is None else _amount(unit, view.burst),
        "used": _amount(unit, view.used),
        "remaining": _amount(unit, view.remaining),
        "ratio": round(view.ratio, 4),
        "ends": None if view.ends is None else datetime.fromtimestamp(view.ends, UTC).isoformat(),
        "at": view.at,
        "then": view.then,
        "queue_s": patience if flows and patience else None,
        "reached": view.reached,
    }


def _amount(unit: Unit, amount: int) -> int | float:
    return amount / NANO if unit is Unit.USD else amount


def limit_lines(views: Iterable[LimitView]) -> list[str]:
    """Return the limits that are used most, a line each."""
    return [_line(view) for view in islice((view for view in views if view.used), MOST_LINES)]


def _line(view: LimitView) -> str:
    used, limit = number_words(view.unit, view.used), amount_words(view.unit, view.limit)
    if view.burst is not None:
        limit = f"{number_words(view.unit, view.burst)} in one go, {limit}"
    budget = f", {view.then} at {view.at:.0%}" if view.kind is LimitKind.BUDGET else ""
    reached = ", reached" if view.reached else ""
    return f"{view.scope}: {used} of {limit} {period_words(view.period)} ({view.ratio:.0%}){budget}{reached}"
