"""The names by which a team may use a model that only its vendor's own list contains."""

from collections.abc import Iterator

from providers.target import Target
from proxy.routing.resolve_model import WILDCARD_DEPLOYMENT, WILDCARD_MODEL, Match, find, granted, unexpanded
from proxy.routing.snapshot import Snapshot, Team


def each_discovered(
    snapshot: Snapshot, team: Team, vendor: str, model: str
) -> Iterator[tuple[str, tuple[Target, ...]]]:
    """Yield the names by which the team may use a model of `vendor/*`, with the targets of the entry. The names follow
    the rules of `plan_for` and `each_visible`. Yield nothing if the name leads to a route, to another entry, or to a
    deployment."""
    whole = _leads(snapshot, team, f"{vendor}/{model}")
    if whole is None or whole.rule != WILDCARD_MODEL or not whole.model.listed:
        return
    targets = whole.model.targets
    mine = granted(snapshot, team, whole, whole.model.name)
    if mine:
        yield whole.model.name, targets
    if len(targets) == 1 and mine:
        return
    for target in targets:
        name = f"{whole.model.name}/{target.deployment}"
        found = _leads(snapshot, team, name)
        if found is not None and found.rule == WILDCARD_DEPLOYMENT and granted(snapshot, team, found, name):
            yield name, (target,)


def _leads(snapshot: Snapshot, team: Team, name: str) -> Match | None:
    if name in team.routes or name in snapshot.routes:
        return None
    return find(snapshot, name, unexpanded)
