"""The states of deployments, of routes with their targets, and of the gateway as a whole.

A route has no state of its own: its state follows from the states of the deployments that its targets lead to. The
gateway is well if a restart would work and no name fails. Pure.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from providers.target import Target
from proxy.admin.recent_requests import RecentUse
from proxy.admin.reload_history import PastReload
from proxy.admin.status import DeploymentState, GatewayView, ProcessStatus
from proxy.deployment_health.concurrency_limit import Limited
from proxy.routing.policies import WEIGHTED_POLICIES
from proxy.routing.resolve_model import inner_route, reached, settings_of
from proxy.routing.route_settings import FALLBACKS
from proxy.routing.snapshot import ANYONE, Route, RouteMember, Snapshot, Team

MOST_TARGETS: Final = 20
"""The most targets of a route that are shown, in the order of the config file: the first ones matter most."""


class Health(IntEnum):
    """The states of a deployment as the page names them, in order of severity."""

    UP = 0
    LIMITED = 1
    FAILING = 2
    HALF_OPEN = 3
    COOLING = 4
    OPEN = 5
    OUT_OF_SERVICE = 6


_HEALTH: Final[Mapping[DeploymentState, Health]] = {
    DeploymentState.HALF_OPEN: Health.HALF_OPEN,
    DeploymentState.COOLING: Health.COOLING,
    DeploymentState.OPEN: Health.OPEN,
}

SKIPPED: Final = frozenset({Health.COOLING, Health.OPEN, Health.OUT_OF_SERVICE})
"""States in which a deployment is not called."""

FEWEST_CALLS: Final = 5
"""The fewest calls in the last minutes with which a deployment can be FAILING. It is FAILING if more than half of its
calls fail."""


def health_of(status: ProcessStatus, target: Target) -> Health:
    """Return the state of a deployment."""
    if target.out_of_service:
        return Health.OUT_OF_SERVICE
    label = target.label
    state = status.states.get(label)
    if state is not None:
        return _HEALTH[state]
    if (recent := status.recent.deployments.get(label)) is not None and _mostly_fails(recent):
        return Health.FAILING
    limited = status.limited.get(label)
    return Health.LIMITED if limited is not None and _holds_back(limited) else Health.UP


def _mostly_fails(use: RecentUse) -> bool:
    """Return whether there were enough calls and more than half of them failed."""
    return use.requests >= FEWEST_CALLS and 2 * use.errors > use.requests


def _holds_back(limited: Limited) -> bool:
    """Return whether the limit holds requests back now, or was learned. A limit that the operator set is not a state by
    itself."""
    return limited.why != "operator" or limited.waiting > 0 or limited.in_flight >= limited.limit


@dataclass(frozen=True, slots=True)
class TargetOfRoute:
    """One target of a route. `share` is the share of the requests that go to it first by the weights, `None` if the
    route has no weights. `health` is the best state of its `deployments`, of which `up` may be called. `why` is the
    reason why the target is skipped, empty if it is not."""

    name: str
    share: float | None
    health: Health
    up: int
    deployments: int
    why: str

    @property
    def serves(self) -> bool:
        """Whether most calls of this target are expected to succeed."""
        return not self.why and self.health <= Health.LIMITED


class RouteState(IntEnum):
    """The states of a route, in order of severity. IN_PART: some targets are not up. FAILING: no target is up. DOWN:
    all targets are skipped."""

    UP = 0
    IN_PART = 1
    FAILING = 2
    DOWN = 3


@dataclass(frozen=True, slots=True)
class RouteRow:
    """A route of the config file or of a team: its strategy, its targets, of which `more` are left out, and its
    fallbacks by kind of failure, in words. `count`, `skipped` and `up` count the targets of the resolved route. The
    resolved route is the route itself, unless its only target is a route."""

    name: str
    team: str
    policy: str
    targets: Sequence[TargetOfRoute]
    more: int
    count: int
    skipped: int
    up: int
    fallbacks: Sequence[str]

    @property
    def state(self) -> RouteState:
        """The state, by the targets of the resolved route: an alias has the state of its route."""
        if self.skipped == self.count:
            return RouteState.DOWN
        if not self.up:
            return RouteState.FAILING
        return RouteState.UP if self.up == self.count else RouteState.IN_PART


def route_rows(snapshot: Snapshot, status: ProcessStatus) -> list[RouteRow]:
    """Return every route of the config file and its teams, the worst first."""
    owned = [(route, ANYONE) for route in snapshot.routes.values()]
    owned += [(route, team) for team in snapshot.teams.values() for route in team.routes.values()]
    rows = [_row(snapshot, status, route, team) for route, team in owned]
    return sorted(rows, key=lambda row: (-row.state, row.name, row.team))


def _row(snapshot: Snapshot, status: ProcessStatus, route: Route, team: Team) -> RouteRow:
    targets = _targets(snapshot, status, route, team)
    real = _stands_for(snapshot, team, route)
    deciding = targets if real is route else _targets(snapshot, status, real, team)
    settings = settings_of(snapshot, team, route)
    source = f" (of {settings.fallbacks_of})" if settings.fallbacks_of else ""
    return RouteRow(
        route.name,
        "" if team is ANYONE else team.name,
        route.policy,
        targets[:MOST_TARGETS],
        len(targets[MOST_TARGETS:]),
        len(deciding),
        sum(1 for target in deciding if target.why),
        sum(1 for target in deciding if target.serves),
        [f"on {FALLBACKS[kind]}{source}: {', '.join(names)}" for kind, names in settings.fallbacks.items()],
    )


def _stands_for(snapshot: Snapshot, team: Team, route: Route) -> Route:
    """Return the route that an alias resolves to through any number of aliases; the route itself if it is not an
    alias."""
    while len(route.members) == 1 and (inner := inner_route(snapshot, team, route.members[0].name)) is not None:
        route = inner
    return route


def _targets(snapshot: Snapshot, status: ProcessStatus, route: Route, team: Team) -> list[TargetOfRoute]:
    whole = sum(member.weight for member in route.members) if route.policy in WEIGHTED_POLICIES else 0
    return [_target(status, route, member, reached(snapshot, team, member.name), whole) for member in route.members]


def _target(
    status: ProcessStatus, route: Route, member: RouteMember, deployments: Sequence[Target], whole: int
) -> TargetOfRoute:
    states = {target.label: health_of(status, target) for target in deployments}
    best = min(states.values(), default=Health.OPEN)
    why = ""
    if not member.weight and route.policy != "priority":
        why = "weight 0: out of service"
    elif not states:
        why = "it leads to no deployment"
    elif best in SKIPPED:
        why = "; ".join(_reasons(status, states))
    up = sum(1 for health in states.values() if health not in SKIPPED)
    share = member.weight / whole if whole else None
    return TargetOfRoute(member.name, share, best, up, len(states), why)


_REASONS: Final = 3
"""The most deployments of a target whose reasons are shown."""


def _reasons(status: ProcessStatus, states: Mapping[str, Health]) -> Iterator[str]:
    """Yield the reason why each deployment of a target is not called; the last line counts the deployments left out."""
    every = list(states)
    for label in every[:_REASONS]:
        if states[label] is Health.OUT_OF_SERVICE:
            yield f"{f'{label} ' if len(every) > 1 else ''}out of service"
            continue
        noted = status.last_failures.get(label)
        wait = status.unavailable.get(label, 0.0)
        does = "cooldown" if status.states.get(label) is DeploymentState.COOLING else "circuit open"
        last = "" if noted is None else f" after {noted.text}"
        yield f"{f'{label} ' if len(every) > 1 else ''}{does}{last}, next probe in {wait:.0f} s"
    if len(every) > _REASONS:
        yield f"and {len(every) - _REASONS} more"


def failing_names(snapshot: Snapshot, status: ProcessStatus, routes: Iterable[RouteRow]) -> list[str]:
    """Return the names for which most requests fail, sorted: routes with no target up, and models with no deployment
    up. The name of a team's own route includes the team. A name that the operator took out of service also counts as
    failing."""
    failing = {
        f"{row.name} of team {row.team}" if row.team else row.name for row in routes if row.state >= RouteState.FAILING
    }
    failing |= {
        model.name
        for model in (*snapshot.models.values(), *snapshot.wildcards.values())
        if model.name not in snapshot.routes
        and all(health_of(status, target) > Health.LIMITED for target in model.targets)
    }
    return sorted(failing)


MOST_NAMES: Final = 5
"""The most failing names that are listed; the others are counted."""


class Level(IntEnum):
    """The state of a gateway, in order of severity. WELL: a restart would work, and no name fails."""

    WELL = 0
    TROUBLED = 1
    NOT_READY = 2


@dataclass(frozen=True, slots=True)
class GatewayState:
    """The state of a gateway, and the `reasons` if it is not well, each a clause. `failing` are the names with no
    target up; `refused` are the problems for which the config file on disk was refused, empty if it was accepted."""

    level: Level
    reasons: Sequence[str]
    failing: Sequence[str]
    refused: Sequence[str]


def gateway_state(
    view: GatewayView, health: Mapping[str, Health], routes: Iterable[RouteRow], reloads: Sequence[PastReload]
) -> GatewayState:
    """Return the state of a gateway. `health` is by deployment; `reloads` has the newest first. The config file is read
    at each change and at each reload, so the newest reload reflects the file on disk."""
    failing = failing_names(view.snapshot, view.status, routes)
    refused = reloads[0].problems if reloads else ()
    reasons = list(_troubles(health, failing, refused))
    if not view.status.ready:
        return GatewayState(Level.NOT_READY, ("it takes no requests now", *reasons), failing, refused)
    return GatewayState(Level.TROUBLED if reasons else Level.WELL, reasons, failing, refused)


def _troubles(health: Mapping[str, Health], failing: Sequence[str], refused: Sequence[str]) -> Iterator[str]:
    if refused:
        yield "the config file on disk is refused: a restart would fail"
    if failing:
        more = f" and {len(failing) - MOST_NAMES} more" if len(failing) > MOST_NAMES else ""
        yield f"no target is up of {', '.join(failing[:MOST_NAMES])}{more}"
    if troubled := sum(1 for each in health.values() if each):
        yield f"{troubled:,} of {len(health):,} deployment{'s' if len(health) != 1 else ''} not up"
