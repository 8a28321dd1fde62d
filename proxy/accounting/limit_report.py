"""Reports of limits and budgets for operators: of one process or of several, including unused limits.

This module does no I/O. Amounts in USD are numbers of USD in reports, as in the configuration.
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

MAX_STATUS_LINES: Final = 20
"""The most limits on the status page."""


def team_of(view: LimitView) -> str:
    """Return the team of a limit, empty if it belongs to a vendor, a model or a deployment."""
    return limit_labels(view.scope, view.unit, view.period)[0]


def most_used(views: Iterable[LimitView], team: str | None = None) -> tuple[LimitView, ...]:
    """Return the most used limits, the most used one first. With `team` only the limits of that team and its keys."""
    return tuple(limit_views.most_used(views if team is None else (view for view in views if team_of(view) == team)))


def merged_views(found: Iterable[Iterable[LimitView]]) -> tuple[LimitView, ...]:
    """Merge the views of limits that several processes share. Each process learns the use of the others with a delay,
    so the highest value is right."""
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
    """Add the configured limits that are not used yet, as far as a report has room for them. `wall` is the unix
    time."""
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
    """Return a report as JSON values. `alone` describes how limits are counted. `patience` is how many seconds requests
    of a team wait for a rate or a slot."""
    return {**alone, "limits": [_json_fields(view, patience.get(team_of(view), 0.0)) for view in views]}


def _json_fields(view: LimitView, patience: float) -> dict[str, object]:
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
    """Return one line for each of the most used limits."""
    return [_line(view) for view in islice((view for view in views if view.used), MAX_STATUS_LINES)]


def _line(view: LimitView) -> str:
    used, limit = number_words(view.unit, view.used), amount_words(view.unit, view.limit)
    if view.burst is not None:
        limit = f"{number_words(view.unit, view.burst)} in one go, {limit}"
    budget = f", {view.then} at {view.at:.0%}" if view.kind is LimitKind.BUDGET else ""
    reached = ", reached" if view.reached else ""
    return f"{view.scope}: {used} of {limit} {period_words(view.period)} ({view.ratio:.0%}){budget}{reached}"
