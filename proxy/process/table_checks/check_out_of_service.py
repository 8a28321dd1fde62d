"""Warns of names without a target, because all of their deployments are out of service."""

from collections.abc import Iterator
from itertools import chain
from typing import Final

from config.load_config import Loaded
from config.problem import Path, Problem, shown
from config.table.inheritance import deployment_inheritance
from providers.target import Target
from proxy.routing.resolve_model import reached, targets_of_names
from proxy.routing.snapshot import Snapshot

_MOST_NAMED: Final = 5
"""The most names that one warning lists."""


def unserved_names(loaded: Loaded, snapshot: Snapshot) -> tuple[Problem, ...]:
    """Return a warning for each `out_of_service` that leaves names of the configuration or of a team without a
    target."""
    if not snapshot.out_of_service:
        return ()
    names: dict[Path, list[str]] = {}
    for name, targets in _every_name(snapshot):
        if all(target.out_of_service for target in targets):
            names.setdefault(_written_at(loaded, targets[0]), []).append(name)
    return tuple(Problem.at(loaded.locate(path), path, _message(left)) for path, left in names.items())


def _every_name(snapshot: Snapshot) -> Iterator[tuple[str, tuple[Target, ...]]]:
    """Yield each name that leads to a deployment, with all deployments that it leads to."""
    of_teams = (
        (f"{name} of team {team.name}", reached(snapshot, team, name))
        for team in snapshot.teams.values()
        for name in team.routes
    )
    return ((name, targets) for name, targets in chain(targets_of_names(snapshot), of_teams) if targets)


def _written_at(loaded: Loaded, target: Target) -> Path:
    inherited = deployment_inheritance(loaded.config, target.vendor, target.model_key, target.deployment)
    inherited.first("out_of_service", lambda level: level.out_of_service)
    return inherited.origins["out_of_service"]


def _message(names: list[str]) -> str:
    listed = ", ".join(map(shown, names[:_MOST_NAMED]))
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"requests for {listed}{more} are refused with 503: every deployment there is out of service"
