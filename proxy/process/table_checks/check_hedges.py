"""Warns of a `hedge` without effect, because no name that uses it can have a second attempt. Names with one deployment
are a warning of `config.checks.doubtful_settings`."""

from collections.abc import Iterator

from config.load_config import Loaded
from config.problem import Path, Problem
from config.table.inheritance import model_inheritance
from config.table.table_schema import GatewayConfig
from providers.target import Target
from proxy.hedging.hedged_requests import ONE_DEPLOYMENT, why_never
from proxy.routing.deployment_load import IDLE
from proxy.routing.resolve_model import whole_plan
from proxy.routing.snapshot import ANYONE, Snapshot, Team


def idle_hedges(loaded: Loaded, snapshot: Snapshot) -> tuple[Problem, ...]:
    """Return a warning for each `hedge` without effect."""
    reasons: dict[Path, list[str | None]] = {}
    for path, targets in _every_name(loaded.config, snapshot):
        reasons.setdefault(path, []).append(why_never(targets))
    found = []
    for path, whys in reasons.items():
        others = [why for why in whys if why != ONE_DEPLOYMENT]
        if others and others[0] is not None and None not in others:
            found.append(Problem.at(loaded.locate(path), path, f"has no effect: {others[0]}"))
    return tuple(found)


def _every_name(config: GatewayConfig, snapshot: Snapshot) -> Iterator[tuple[Path, tuple[Target, ...]]]:
    """Yield, for each name with second attempts, the path of its `hedge` and the deployments that the name leads to."""
    for model in (*snapshot.models.values(), *snapshot.wildcards.values()):
        if model.hedge is not None:
            yield _of_model(config, model.name), model.targets
    for name, route in config.routes.items():
        if route.hedge is not None:
            yield from _of_route(snapshot, ANYONE, name, ("routes", name, "hedge"))
        elif len(route.targets) > 1:
            yield from _of_route(snapshot, ANYONE, name, ("defaults", "hedge"))
    for team in snapshot.teams.values():
        for name in team.routes:
            if config.teams[team.name].routes[name].hedge is not None:
                yield from _of_route(snapshot, team, name, ("teams", team.name, "routes", name, "hedge"))


def _of_model(config: GatewayConfig, name: str) -> Path:
    levels = model_inheritance(config, name)
    levels.first("hedge", lambda level: level.hedge)
    return levels.origins["hedge"]


def _of_route(snapshot: Snapshot, team: Team, name: str, path: Path) -> Iterator[tuple[Path, tuple[Target, ...]]]:
    plan = whole_plan(snapshot, team, name, "", IDLE)
    if plan.hedge is not None:
        yield path, plan.targets
