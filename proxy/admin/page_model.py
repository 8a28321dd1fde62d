"""The content of the operator's page as values, from a view of the gateway and the visitor's query. Pure."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from config.problem import Problem
from providers.target import Target
from proxy.accounting.limit_report import with_unused
from proxy.admin.failed_requests import FailedRequest, clipped
from proxy.admin.recent_requests import NO_USE, RecentUse, sum_of
from proxy.admin.reload_history import PastReload
from proxy.admin.route_states import GatewayState, Health, RouteRow, gateway_state, health_of, route_rows
from proxy.admin.status import GatewayView, ProcessStatus, WorkerNow
from proxy.admin.status_json import tokens_per_second
from proxy.limits.limit_views import LimitView

MOST_ROWS: Final = 200
"""The most rows of a table, unless the visitor requests all rows."""

MOST_LIMITS: Final = 50
"""The most limits that are shown: the limits with the highest use."""

MOST_QUERY: Final = 200
"""The most characters of the visitor's search text."""


@dataclass(frozen=True, slots=True)
class PageQuery:
    """The visitor's query: the deployments of one vendor, names that contain a text, tables with all rows."""

    vendor: str = ""
    text: str = ""
    whole: bool = False

    @classmethod
    def of(cls, query: Mapping[str, str]) -> "PageQuery":
        """Return the query in the parameters of an address."""
        vendor, text = (clipped(query.get(name, ""), MOST_QUERY).strip() for name in ("vendor", "q"))
        return cls(vendor, text, query.get("rows") == "all")

    def matches(self, vendor: str, name: str) -> bool:
        """Return whether a deployment matches the query."""
        return (not self.vendor or vendor == self.vendor) and self.text.casefold() in name.casefold()


@dataclass(frozen=True, slots=True)
class Traffic:
    """Counts and times of the last minutes. Times are in seconds, `None` if none were measured. `cached` is the share
    of the prompt tokens that came from vendors' caches."""

    requests: int
    errors: int
    refused: int
    first_p50: float | None
    first_p95: float | None
    duration_p50: float | None
    duration_p95: float | None
    tokens: float
    cached: float | None

    @classmethod
    def of(cls, use: RecentUse, seconds: float) -> "Traffic":
        """Return the values for the counts of a window of `seconds`."""
        return cls(
            use.requests,
            use.errors,
            use.refused,
            use.first(0.5),
            use.first(0.95),
            use.duration(0.5),
            use.duration(0.95),
            tokens_per_second(use, seconds),
            use.cached_share,
        )


@dataclass(frozen=True, slots=True)
class DeploymentRow:
    """One deployment. `probe` is the time in seconds until it is called again, `None` if its circuit is closed.
    `failed` is the time of its last failure in unix seconds, and `reason` the cause. `limit` describes its concurrency
    limit."""

    name: str
    vendor: str
    model: str
    health: Health
    probe: float | None
    reason: str
    failed: float | None
    limit: str
    traffic: Traffic


@dataclass(frozen=True, slots=True)
class GroupRow:
    """The sum of the deployments of one vendor or one model."""

    name: str
    vendor: str
    deployments: int
    troubled: int
    traffic: Traffic


@dataclass(frozen=True, slots=True)
class StatusPage:
    """The content of a page. `state` is the state of the gateway. `deployments` counts all deployments, `found` counts
    the ones that match the query, and `rows` are the shown ones, the worst first. `limits_more` counts the limits
    beyond the rows; `models_found` and `routes_found` count all models and routes, of which the rows are a part."""

    view: GatewayView
    query: PageQuery
    deployments: int
    state: GatewayState
    found: int
    rows: Sequence[DeploymentRow]
    vendors: Sequence[GroupRow]
    models: Sequence[GroupRow]
    models_found: int
    routes: Sequence[RouteRow]
    routes_found: int
    limits: Sequence[LimitView]
    limits_more: int
    whole: Traffic
    reloads: Sequence[PastReload]
    warnings: Sequence[str]
    vendor_names: Sequence[str]

    @property
    def status(self) -> ProcessStatus:
        """The combined status of all processes."""
        return self.view.status

    @property
    def workers(self) -> Sequence[WorkerNow] | None:
        """The workers; `None` if the gateway is one process."""
        return self.view.workers

    @property
    def failures(self) -> Sequence[FailedRequest]:
        """The last failed requests, newest first."""
        return self.view.status.failed


def status_page(
    view: GatewayView, reloads: Sequence[PastReload], warnings: Iterable[Problem], query: PageQuery
) -> StatusPage:
    """Return the page of a view."""
    status, targets = view.status, list(view.snapshot.targets())
    health = {target.label: health_of(status, target) for target in targets}
    matching = [target for target in targets if query.matches(target.vendor, target.label)]
    known = status.recent.deployments
    matching.sort(
        key=lambda target: (-health[target.label], -_error_share(known.get(target.label, NO_USE)), target.label)
    )
    cut = None if query.whole else MOST_ROWS
    models = _grouped(matching, lambda target: target.model_key)
    routes = route_rows(view.snapshot, status)
    limits = with_unused(status.limits, view.snapshot, view.now)
    return StatusPage(
        view=view,
        query=query,
        deployments=len(targets),
        state=gateway_state(view, health, routes, reloads),
        found=len(matching),
        rows=[_row(status, target, health[target.label]) for target in matching[:cut]],
        vendors=[_group(*each, health, status) for each in _grouped(targets, lambda target: target.vendor)],
        models=[_group(*each, health, status) for each in models[:cut]],
        models_found=len(models),
        routes=routes[:cut],
        routes_found=len(routes),
        limits=limits[:MOST_LIMITS],
        limits_more=max(0, len(limits) - MOST_LIMITS),
        whole=Traffic.of(status.recent.whole, status.recent.seconds),
        reloads=reloads,
        warnings=[str(warning) for warning in warnings],
        vendor_names=sorted({target.vendor for target in targets}),
    )


def _error_share(use: RecentUse) -> float:
    """Return the share of the calls that failed; 0 if there were no calls."""
    return use.errors / use.requests if use.requests else 0.0


def _row(status: ProcessStatus, target: Target, health: Health) -> DeploymentRow:
    label = target.label
    noted, limited = status.last_failures.get(label), status.limited.get(label)
    return DeploymentRow(
        name=label,
        vendor=target.vendor,
        model=target.model_key,
        health=health,
        probe=status.unavailable.get(label, 0.0) if Health.HALF_OPEN <= health <= Health.OPEN else None,
        reason="" if noted is None else noted.text,
        failed=None if noted is None else noted.when,
        limit="" if limited is None else str(limited),
        traffic=Traffic.of(status.recent.deployments.get(label, NO_USE), status.recent.seconds),
    )


def _grouped(targets: Iterable[Target], key: Callable[[Target], str]) -> list[tuple[str, list[Target]]]:
    found: dict[str, list[Target]] = {}
    for target in targets:
        found.setdefault(key(target), []).append(target)
    return sorted(found.items())


def _group(name: str, targets: Sequence[Target], health: Mapping[str, Health], status: ProcessStatus) -> GroupRow:
    known = status.recent.deployments
    use = sum_of([known[target.label] for target in targets if target.label in known])
    troubled = sum(1 for target in targets if health[target.label])
    return GroupRow(name, targets[0].vendor, len(targets), troubled, Traffic.of(use, status.recent.seconds))
