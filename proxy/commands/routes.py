"""`dragoman routes`: what every name of a table resolves to, in aligned columns. Never how a name is resolved."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from urllib.parse import urlsplit

from providers.dialect import Target
from proxy.commands.team import find_team
from proxy.reload import Source
from proxy.routing import allowed, plan
from proxy.snapshot import WILDCARD, Route, Snapshot, Team
from proxy.terminal import Ink, paint

Row = tuple[str, ...]

MODEL_COLUMNS: Row = ("MODEL", "DEPLOYMENT", "POLICY", "WEIGHT", "PROFILE", "UPSTREAM MODEL", "HOST")
ROUTE_COLUMNS: Row = ("ROUTE", "TEAM", "POLICY", "WEIGHT", "TARGET", "DEPLOYMENTS")

NONE = "-"


def routes(source: Source, team: str | None) -> int:
    """Print the table's models and routes, or only what one team may ask for."""
    snapshot = source.load().snapshot
    asking = find_team(snapshot, team)
    teams = tuple(snapshot.teams.values()) if team is None else (asking,)
    shared = {
        name: each for name, each in snapshot.routes.items() if allowed(asking, name) and name not in asking.routes
    }
    print_columns(MODEL_COLUMNS, [*model_rows(snapshot, asking), *wildcard_rows(snapshot, asking)])
    own = [row for each in teams for row in route_rows(snapshot, each, each.routes, each.name)]
    if found := [*route_rows(snapshot, asking, shared, NONE), *own]:
        print()
        print_columns(ROUTE_COLUMNS, found)
    return 0


def model_rows(snapshot: Snapshot, team: Team) -> Iterator[Row]:
    """A row for each deployment the team may reach by a model's name, or only by the deployment's own."""
    for model in (*snapshot.models.values(), *snapshot.wildcards.values()):
        whole = allowed(team, model.name)
        policy = model.policy if len(model.targets) > 1 else NONE
        for target in model.targets:
            if whole:
                yield _row(model.name, policy, target)
            elif allowed(team, target.name):
                yield _row(target.name, NONE, target)


def wildcard_rows(snapshot: Snapshot, team: Team) -> Iterator[Row]:
    """Rows for the names of the team's allow list that only a `vendor/*` answers to."""
    for name in team.allow:
        if WILDCARD in name or name in team.routes or name in snapshot.routes:
            continue
        targets = plan(snapshot, team, name, "", _no_draw).targets
        if targets[0].row.endswith("/" + WILDCARD):
            yield from (_row(name, NONE, target) for target in targets)


def _row(name: str, policy: str, target: Target) -> Row:
    weight = str(target.weight) if policy == "weighted" else NONE
    host = urlsplit(target.base_url).netloc
    return (name, target.deployment, policy, weight, target.profile.name, target.upstream_model, host)


def route_rows(snapshot: Snapshot, team: Team, shown: Mapping[str, Route], owner: str) -> Iterator[Row]:
    """A row for each target of the routes, with every deployment it leads to as `team` would get there."""
    anything = replace(team, allow=(WILDCARD,))
    for route in shown.values():
        for member in route.members:
            targets = plan(snapshot, anything, member.name, "", _no_draw).targets
            weight = str(member.weight) if route.policy == "weighted" else NONE
            yield (route.name, owner, route.policy, weight, member.name, ", ".join(each.name for each in targets))


def _no_draw() -> float:
    return 0.0


def print_columns(heads: Row, rows: Sequence[Row]) -> None:
    """Print rows under their heads, each column as wide as its widest cell."""
    widths = [max(len(row[column]) for row in (heads, *rows)) for column in range(len(heads))]
    for row in (heads, *rows):
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        print(paint(line, Ink.BOLD) if row is heads else line)
