"""The sections of the operator's page, each built from the values of the page. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final
from urllib.parse import urlencode

from proxy.admin.failed_requests import FailedAttempt, FailedRequest
from proxy.admin.markup.html import Markup, element, joined
from proxy.admin.page_formatting import (
    NONE,
    STATES,
    Column,
    age,
    counted,
    moment,
    name,
    note,
    ratio,
    row,
    section,
    span,
    state,
    table,
    usd,
)
from proxy.admin.page_model import DeploymentRow, GroupRow, StatusPage, Traffic
from proxy.admin.recent_requests import FAILED
from proxy.admin.reload_history import PastReload
from proxy.admin.route_states import SKIPPED, Health, Level, RouteRow, RouteState, TargetOfRoute
from proxy.limits.limit import NANO, Unit
from proxy.limits.limit_views import LimitKind, LimitView
from proxy.version import VERSION

_TRAFFIC: Final = (
    *(Column("Requests", "n"), Column("Errors", "n"), Column("Refused", "n"), Column("First token p50 / p95", "n")),
    *(Column("Duration p50 / p95", "n"), Column("Tokens/s", "n"), Column("Cached", "n")),
)
_CALLS: Final = (Column("Calls", "n"), *_TRAFFIC[1:])
_DEPLOYMENTS: Final = (Column("Deployment"), Column("State", "full"), Column("Last failure", "full"), *_CALLS)
_GROUPS: Final = (Column("Name"), Column("Deployments", "n"), *_CALLS)
_ROUTES: Final = (Column("Route"), Column("Of"), Column("Strategy"), Column("State"), Column("Targets", "full"))
_LIMITS: Final = (Column("Of"), Column("Limit"), Column("Used"), Column("Share"), Column("Ends"))
_WORKERS: Final = (Column("Worker"), Column("Configuration"), Column("In flight", "n"))
_RELOADS: Final = (Column("When (UTC)"), Column("Result"), Column("Configuration"), Column("What changed", "full"))
_FAILURES: Final = (
    *(
        Column("When (UTC)"),
        Column("Status"),
        Column("Request", "full"),
        Column("Team"),
        Column("Requested model", "any"),
    ),
    *(Column("Duration", "n"), Column("Attempts and cause", "full")),
)


MOST_OPEN: Final = 20
"""The most failed requests that are visible at once; older ones are folded."""


def headline(page: StatusPage) -> Markup:
    """Return the sentence that says whether the gateway is well: green if a restart would work and no name fails. The
    text changes only with the state, because screen readers read each change aloud."""
    begin, colour = _HEADLINES[page.state.level]
    what = "; ".join(page.state.reasons) or f"{counted(page.deployments, 'deployment')} up"
    return element("p", f"{begin} {what}.", class_=f"headline {colour}", role="status")


_HEADLINES: Final[Mapping[Level, tuple[str, str]]] = {
    Level.WELL: ("✓ Ready, and", "good"),
    Level.TROUBLED: ("▲ Ready, but", "warn"),
    Level.NOT_READY: ("✕ Not ready:", "bad"),
}


def overview(page: StatusPage) -> Markup:
    """Return the facts about the gateway as a whole."""
    whole, status, view = page.whole, page.status, page.view
    window = f"of the last {age(status.recent.seconds)}"
    facts = [
        _fact("Requests", f"{whole.requests:,}", window),
        _fact("Errors", ratio(whole.errors, whole.requests), "of the gateway or a vendor"),
        _fact("Refused", ratio(whole.refused, whole.requests), "keys, limits, bad requests"),
        _fact("First token p50 / p95", _pair(whole.first_p50, whole.first_p95)),
        _fact("Duration p50 / p95", _pair(whole.duration_p50, whole.duration_p95)),
        _fact("Generated tokens per second", f"{whole.tokens:,.1f}"),
        _fact("In flight", f"{status.in_flight:,}"),
        _fact("Up for", age(view.now - view.since), f"version {VERSION}"),
        _fact("Configuration", element("code", view.snapshot.digest[:12]), _configured(page)),
        _fact("Shared state", *_SHARED[status.shared]),
        _fact("Ledger", "none" if view.ledger is None else view.ledger.line(), wide=view.ledger is not None),
    ]
    if status.log_lines_dropped:
        facts.append(_fact("Log lines dropped", f"{status.log_lines_dropped:,}"))
    if status.limits_alone:
        facts.append(_fact("Limits", "counted alone", "Redis or the coordinator does not answer"))
    if status.limits_evicted:
        facts.append(_fact("Limits", "may be evicted", status.limits_evicted, wide=True))
    facts += [_fact(f"Models of {name}", str(listed)) for name, listed in sorted(status.model_lists.items())]
    return section("overview", "Overview", element("dl", *facts))


_SHARED: Final = {
    "off": ("none", "no Redis: cooldowns are this gateway's own"),
    "up": ("connected", "cooldowns, by Redis"),
    "alone": ("not reachable: alone", "cooldowns, by Redis"),
}


def _configured(page: StatusPage) -> str:
    snapshot = page.view.snapshot
    return f"{counted(len(snapshot.teams), 'team')}, {counted(len(snapshot.routes), 'route')}"


def _fact(name: str, value: str, more: str = "", *, wide: bool = False) -> Markup:
    inner = (value, element("small", more)) if more else (value,)
    return element("div", element("dt", name), element("dd", *inner), class_=wide and "wide")


def _pair(first: float | None, second: float | None) -> str:
    return NONE if first is None else f"{span(first)} / {span(second)}"


def warnings(page: StatusPage) -> Markup:
    """Return the warnings of `dragoman check`; empty if there are none."""
    if not page.warnings:
        return Markup()
    lines = [element("li", warning) for warning in page.warnings]
    return section("warnings", "Warnings of the configuration", element("ul", *lines, class_="plain"))


def deployments(page: StatusPage) -> Markup:
    """Return the deployments that match the visitor's query."""
    caption = (
        "The worst first: by state, then by share of errors. Counts are of calls in the last minutes, times of the"
        " successful ones. Cached is the share of the prompt tokens that came from the vendor's cache."
    )
    rows = (_deployment(each) for each in page.rows)
    tally = _tally(page.rows)
    parts = [_filter(page), table(caption, _DEPLOYMENTS, rows)]
    if page.found < page.deployments:
        parts.append(note(f"{page.found:,} of {counted(page.deployments, 'deployment')} match."))
    if len(page.rows) < page.found:
        parts.append(note(f"{len(page.rows):,} of {page.found:,} are shown: look for a name, or ", _all_of(page)))
    return section("deployments", f"Deployments{f': {tally}' if tally else ''}", *parts)


def _tally(rows: Sequence[DeploymentRow]) -> str:
    counts = {health: sum(1 for each in rows if each.health is health) for health in reversed(Health)}
    return ", ".join(f"{count} {STATES[health][0][2:]}" for health, count in counts.items() if count and health)


def _filter(page: StatusPage) -> Markup:
    query = page.query
    options = [element("option", "all vendors", value="")]
    options += [element("option", name, value=name, selected=name == query.vendor) for name in page.vendor_names]
    clear = element("a", "Show all", href="?", class_="button") if query.vendor or query.text else Markup()
    return element(
        "form",
        element("label", "Vendor", element("select", *options, name="vendor")),
        element("label", "Name has", element("input", name="q", value=query.text, type="search", maxlength="200")),
        element("button", "Filter"),
        clear,
        method="get",
        role="search",
        aria_label="Deployments",
    )


def _all_of(page: StatusPage) -> Markup:
    query = {"vendor": page.query.vendor, "q": page.query.text, "rows": "all"}
    return element("a", "show all rows", href="?" + urlencode({name: value for name, value in query.items() if value}))


def _deployment(each: DeploymentRow) -> Markup:
    badge = [state(each.health)]
    if each.probe is not None:
        badge.append(element("small", f"next probe in {span(each.probe)}" if each.probe else "next request is a probe"))
    if each.limit:
        badge.append(element("small", each.limit))
    failed = joined((each.reason, element("small", moment(each.failed)))) if each.failed is not None else ""
    return row(_DEPLOYMENTS, name(each.name), joined(badge), failed, *_traffic(each.traffic))


def _traffic(traffic: Traffic) -> tuple[str, ...]:
    if not traffic.requests:
        return ("0", "", "", "", "", "", "")
    return (
        f"{traffic.requests:,}",
        ratio(traffic.errors, traffic.requests),
        ratio(traffic.refused, traffic.requests),
        _pair(traffic.first_p50, traffic.first_p95),
        _pair(traffic.duration_p50, traffic.duration_p95),
        f"{traffic.tokens:,.1f}",
        "" if traffic.cached is None else f"{traffic.cached:.1%}",
    )


def routes(page: StatusPage) -> Markup:
    """Return the routes with their targets; empty if the configuration has no routes."""
    if not page.routes:
        return Markup()
    caption = (
        "The worst first. Targets stand in the order of the config file; a share is the part of the requests that go"
        " to a target first, if the strategy uses weights."
    )
    parts = [table(caption, _ROUTES, map(_route, page.routes))]
    if len(page.routes) < page.routes_found:
        parts.append(note(f"{len(page.routes):,} of {page.routes_found:,} are shown: ", _all_of(page)))
    return section("routes", "Routes", *parts)


def _route(each: RouteRow) -> Markup:
    count = each.count
    words, colour = _ROUTE_STATES[each.state]
    badge = element("span", words, class_=f"state {colour}")
    if each.skipped:
        badge = joined((badge, element("small", f"{each.skipped} of {counted(count, 'target')} skipped")))
    elif each.state:
        badge = joined((badge, element("small", f"{each.up} of {counted(count, 'target')} up")))
    items = [element("li", _route_target(target)) for target in each.targets]
    more = [element("li", f"{each.more} more")] if each.more else []
    last = [element("li", fallback) for fallback in each.fallbacks]
    targets = element("ol", *items, *more, class_="plain")
    if last:
        targets = joined((targets, element("ul", *last, class_="plain")))
    return row(_ROUTES, name(each.name), each.team or "all", each.policy.replace("_", " "), badge, targets)


_ROUTE_STATES: Final[Mapping[RouteState, tuple[str, str]]] = {
    RouteState.UP: ("✓ up", "good"),
    RouteState.IN_PART: ("▲ in part", "warn"),
    RouteState.FAILING: ("✕ no target up", "bad"),
    RouteState.DOWN: ("✕ down", "bad"),
}


def _route_target(target: TargetOfRoute) -> Markup:
    share = "" if target.share is None else f", {target.share:.0%}"
    badge = state(target.health)
    some = f" {target.up} of {target.deployments} deployments available" if target.deployments > 1 else ""
    why = element("small", f"skipped: {target.why}") if target.why else Markup()
    # A target that is out of service may still be up.
    shown = Markup() if target.why and target.health not in SKIPPED else badge
    return joined((name(target.name), f"{share} ", shown, some, why))


def vendors_and_models(page: StatusPage) -> Markup:
    """Return the deployments by vendor and by model."""
    vendors = table("All deployments of a vendor together.", _GROUPS, (_group(each, True) for each in page.vendors))
    models = table("All deployments of a model together.", _GROUPS, (_group(each, False) for each in page.models))
    parts = [element("details", element("summary", counted(len(page.vendors), "vendor")), vendors, id="by-vendor")]
    found = counted(page.models_found, "model")
    shown = "" if len(page.models) == page.models_found else f", of which {len(page.models):,} are shown"
    parts.append(element("details", element("summary", found + shown), models, id="by-model"))
    return section("models", "Vendors and models", *parts)


def _group(group: GroupRow, linked: bool) -> Markup:
    shown = name(group.name)
    head = element("a", shown, href="?" + urlencode({"vendor": group.vendor})) if linked else shown
    up = f"{group.deployments - group.troubled:,} of {group.deployments:,} up"
    return row(_GROUPS, head, up, *_traffic(group.traffic))


def limits(page: StatusPage) -> Markup:
    """Return limits and budgets; empty if the configuration has none."""
    if not page.limits:
        return Markup()
    parts = [table("The limits with the highest use.", _LIMITS, (_limit(view) for view in page.limits))]
    if page.limits_more:
        more = f"{counted(page.limits_more, 'more limit')}: see "
        parts.append(
            note(more, element("a", "/limits", href="/limits"), " and its parameter ", element("code", "team"))
        )
    return section("limits", "Limits and budgets", *parts)


def _limit(view: LimitView) -> Markup:
    period = "at once" if view.period is None else f"per {view.period.value}"
    unit = "USD" if view.unit is Unit.USD else view.unit.value
    does = f"{view.then} at {view.at:.0%}" if view.kind is LimitKind.BUDGET else ""
    if view.burst is not None:
        does = f"{_amount(view.unit, view.burst)} in one burst"
    what = joined((f"{_amount(view.unit, view.limit)} {unit} {period}", element("small", does) if does else ""))
    share = min(1.0, max(0.0, view.ratio))
    label = f"{view.ratio:.0%} used"
    bar = element("meter", label, min="0", max="1", high="0.8", optimum="0", value=f"{share:.3f}", aria_label=label)
    used = f"{_amount(view.unit, view.used)} {unit}"
    badge = element("span", "✕ reached", class_="state bad") if view.reached else Markup()
    ends = "" if view.ends is None else moment(view.ends)
    return row(_LIMITS, name(view.scope), what, used, joined((bar, f" {view.ratio:.0%} ", badge)), ends)


def _amount(unit: Unit, amount: int) -> str:
    return usd(amount / NANO) if unit is Unit.USD else f"{amount:,}"


def workers(page: StatusPage) -> Markup:
    """Return the workers; empty if the gateway is one process."""
    if page.workers is None:
        return Markup()
    current = page.view.snapshot.digest
    rows = [row(_WORKERS, each.name, _digest(each.digest, current), f"{each.in_flight:,}") for each in page.workers]
    return section("workers", "Workers", table("Processes that take requests.", _WORKERS, rows))


def _digest(digest: str, current: str) -> Markup:
    shown = element("code", digest[:12])
    return shown if digest == current else joined((shown, element("small", "not the current one")))


def reloads(page: StatusPage) -> Markup:
    """Return the last reloads of the configuration."""
    if not page.reloads:
        return section("reloads", "Reloads", note("The configuration has not been reloaded since the start."))
    return section("reloads", "Reloads", table("The newest first.", _RELOADS, map(_reload, page.reloads)))


def _reload(past: PastReload) -> Markup:
    lines = past.problems or past.changes or ("nothing in the config file itself",)
    changes = element("ul", *(element("li", line) for line in lines), class_="plain")
    result = ("✕ refused", "bad") if past.problems else ("✓ taken", "good")
    badge = element("span", result[0], class_=f"state {result[1]}")
    return row(_RELOADS, moment(past.when), badge, element("code", past.digest[:12]), changes)


def failures(page: StatusPage) -> Markup:
    """Return the last failed requests."""
    if not page.failures:
        return section("failures", "Failed requests", note("None since the start."))
    caption = "The newest first: the last requests that failed, and fewer of those refused because of the client."
    rows = list(_failures(page.failures))
    parts = [table(caption, _FAILURES, rows[:MOST_OPEN])]
    if older := rows[MOST_OPEN:]:
        inner = table("Older failed requests.", _FAILURES, older)
        parts.append(element("details", element("summary", f"{len(older)} older"), inner, id="older-failures"))
    return section("failures", "Failed requests", *parts)


def _failures(failed: Sequence[FailedRequest]) -> Iterator[Markup]:
    seen: dict[str, int] = {}
    for request in failed:
        # Clients choose the ids of requests and may use one twice.
        row_id = f"r-{round(1000 * request.when)}-{request.request_id}"
        seen[row_id] = seen.get(row_id, 0) + 1
        yield _failure(request, row_id if seen[row_id] == 1 else f"{row_id}-{seen[row_id]}")


def _failure(request: FailedRequest, row_id: str) -> Markup:
    colour = "bad" if request.outcome in FAILED else "warn"
    badge = element("span", f"{request.status} {request.outcome.replace('_', ' ')}", class_=f"state {colour}")
    return row(
        _FAILURES,
        moment(request.when),
        joined(
            (
                badge,
                *(
                    element("small", each)
                    for each in (request.code, request.limit, _plugin(request), _sender(request))
                    if each
                ),
            )
        ),
        element("code", request.request_id),
        request.team,
        joined((name(request.model or NONE), element("small", request.surface))),
        span(request.milliseconds / 1000),
        _attempts(request),
        name=row_id,
    )


def _sender(request: FailedRequest) -> str:
    return request.client and f"from {request.client}"


def _plugin(request: FailedRequest) -> str:
    return request.plugin and f"plugin {request.plugin}: {request.reason}"


def _attempts(request: FailedRequest) -> str:
    if not request.attempts:
        return "no deployment was called"
    last = request.attempts[-1]
    count = counted(len(request.attempts) + request.more, "attempt")
    summary = joined((f"{count}: ", name(last.deployment), f" {_outcome_text(last)}"))
    items = [element("li", _attempt(each)) for each in request.attempts]
    more = [element("li", f"{request.more} more")] if request.more else []
    return element("details", element("summary", summary), element("ol", *items, *more, class_="plain"))


def _outcome_text(failed: FailedAttempt) -> str:
    return failed.outcome if failed.status is None else f"{failed.outcome} ({failed.status})"


def _attempt(failed: FailedAttempt) -> Markup:
    what = f": {_outcome_text(failed)} after {span(failed.milliseconds / 1000)}"
    return joined((name(failed.deployment), what, element("br") if failed.message else "", failed.message))
