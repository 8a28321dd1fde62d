"""From a model string to the ordered targets that may answer it.

Never awaits, reads a clock or draws by itself; the load, live state and draws, is an argument.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches

from providers.dialect import Target
from providers.failure import FailureKind
from proxy.errors import GatewayError, model_hidden, model_not_allowed, model_not_found
from proxy.load import IDLE, Load, LoadOf
from proxy.policies import POLICIES
from proxy.snapshot import WILDCARD, Model, Route, Snapshot, Team, expand

_NO_SEGMENT = frozenset({"", ".", ".."})

NEAREST = 3

MOST_COMPARED = 250
"""Names a wrong one is compared with: nothing else is served meanwhile, and 1,000 comparisons take 40 ms."""


@dataclass(frozen=True, slots=True)
class Step:
    """How a name was resolved, for `explain` and for people: which rule matched and what it gave."""

    rule: str
    name: str


@dataclass(frozen=True, slots=True)
class Plan:
    """Where a request may go, best first, and `fallbacks` where it goes when they fail for what it holds.

    `asked` is the client's string, `label` the table's name for it (bounded, for metrics), `by_route` whether a route
    chose the model, so that the answer must name the one that served.
    """

    asked: str
    label: str
    targets: tuple[Target, ...]
    by_route: bool
    steps: tuple[Step, ...]
    fallbacks: Mapping[FailureKind, tuple[Target, ...]] = field(default_factory=dict)

    def served_name(self, target: Target) -> str:
        """The `model` of the answer: the client's own string when it names that model, else `vendor/model_name`."""
        return f"{target.vendor}/{target.model}" if self.by_route else self.asked


def plan(snapshot: Snapshot, team: Team, name: str, surface: str, load: Load) -> Plan:
    """Resolve `name` as the team may use it.

    Order: the team's route, a route, an exact model or deployment, `vendor/*`, the surface's default vendor. Raises
    GatewayError: 403 for a name that the team may not ask for but knows from those it may, 404 for any other. What a
    team cannot know of is answered alike whether the table has it or not.
    """
    route = team.routes.get(name)
    if route is not None:
        return _route_plan(snapshot, team, route, name, "team route", load)
    route = snapshot.routes.get(name)
    if route is not None:
        if not covered(team, name):
            raise _unavailable(snapshot, team, name, name, model_hidden)
        return _route_plan(snapshot, team, route, name, "route", load)
    found = _find(snapshot, name)
    canonical = name
    steps: tuple[Step, ...] = ()
    if found is None and (vendor := snapshot.default_vendors.get(surface)) is not None:
        canonical = f"{vendor}/{name}"
        found = _find(snapshot, canonical)
        steps = (Step("default vendor", vendor),)
    if found is None:
        raise _unavailable(snapshot, team, name, name, model_not_found)
    if not _granted(snapshot, team, found, canonical):
        raise _unavailable(snapshot, team, name, canonical, model_hidden)
    targets = tuple(_ordered(found, load))
    return Plan(name, found.label, targets, False, (*steps, Step(found.rule, canonical)))


@dataclass(frozen=True, slots=True)
class _Found:
    model: Model
    label: str
    rule: str
    deployment: str | None = None


def _find(snapshot: Snapshot, name: str) -> _Found | None:
    model = snapshot.models.get(name)
    if model is not None:
        return _Found(model, model.name, "model")
    # Model names may hold slashes and the longest key wins, so only the last segment can be a deployment.
    head, _, tail = name.rpartition("/")
    model = snapshot.models.get(head)
    if model is not None and any(target.deployment == tail for target in model.targets):
        return _Found(model, model.name, "deployment", tail)
    vendor, _, rest = name.partition("/")
    row = snapshot.wildcards.get(vendor)
    # Some vendors have the model in the path of the URL; the table's own names have no such segments either.
    if row is None or not _NO_SEGMENT.isdisjoint(rest.split("/")):
        return None
    inner, _, pinned = rest.rpartition("/")
    if inner and any(target.deployment == pinned for target in row.targets):
        return _Found(expand(row, inner), row.name, "vendor/* deployment", pinned)
    return _Found(expand(row, rest), row.name, "vendor/*")


def _ordered(found: _Found, load: Load) -> Iterator[Target]:
    targets = found.model.targets
    if found.deployment is not None:
        return (target for target in targets if target.deployment == found.deployment)
    if len(targets) == 1:
        return iter(targets)
    members = LoadOf(load, found.label, lambda position: targets[position : position + 1])
    order = POLICIES[found.model.policy]([target.weight for target in targets], members)
    return (targets[position] for position in order)


def _route_plan(snapshot: Snapshot, team: Team, route: Route, name: str, rule: str, load: Load) -> Plan:
    steps = [Step(rule, route.name)]
    targets = tuple(dict.fromkeys(_expand_route(snapshot, team, route, load, steps)))
    fallbacks = {kind: tuple(_named(snapshot, names, load)) for kind, names in route.fallbacks.items()}
    return Plan(name, route.name, targets, True, tuple(steps), fallbacks)


def _named(snapshot: Snapshot, names: Sequence[str], load: Load) -> Iterator[Target]:
    """The targets of models and deployments, in the order of their names."""
    for name in names:
        found = _find(snapshot, name)
        if found is not None:
            yield from _ordered(found, load)


def _expand_route(snapshot: Snapshot, team: Team, route: Route, load: Load, steps: list[Step]) -> Iterator[Target]:
    """Depth first, so that a member's own deployments are tried before the next member.

    A team's own routes come before the table's. The loader refuses cycles, so this ends. What a granted route expands
    to is the operator's word: the allow list is not asked again.
    """

    def reach(position: int) -> Sequence[Target]:
        # Which deployments there are does not depend on the order they would be tried in.
        return tuple(_expand_member(snapshot, team, route.members[position].name, IDLE, []))

    members = LoadOf(load, route.name, reach)
    for position in POLICIES[route.policy]([member.weight for member in route.members], members):
        yield from _expand_member(snapshot, team, route.members[position].name, load, steps)


def _expand_member(snapshot: Snapshot, team: Team, name: str, load: Load, steps: list[Step]) -> Iterator[Target]:
    inner = team.routes.get(name) or snapshot.routes.get(name)
    if inner is not None:
        steps.append(Step("route", inner.name))
        yield from _expand_route(snapshot, team, inner, load, steps)
        return
    found = _find(snapshot, name)
    if found is not None:
        steps.append(Step(found.rule, name))
        yield from _ordered(found, load)


def _granted(snapshot: Snapshot, team: Team, found: _Found, name: str) -> bool:
    """Whether the allow list grants what `name` was found to be.

    A deployment is also granted with its model. Under a `vendor/*` row the words before a deployment may name something
    else of the table, and a grant of that is none of the row's model.
    """
    if allowed(snapshot, team, name):
        return True
    if found.deployment is None or not allowed(snapshot, team, found.model.name):
        return False
    whole = _find(snapshot, found.model.name)
    return whole is not None and (whole.label, whole.deployment) == (found.label, None)


def _unavailable(
    snapshot: Snapshot, team: Team, asked: str, canonical: str, unknown: Callable[[str, tuple[str, ...]], GatewayError]
) -> GatewayError:
    """What a team is told that may not have a name. The work is the same whether the table has the name or not, so that
    time does not tell either."""
    if knows(snapshot, team, canonical):
        return model_not_allowed(asked)
    return unknown(asked, nearest(snapshot, team, asked))


def knows(snapshot: Snapshot, team: Team, name: str) -> bool:
    """Whether what a team may ask for tells it of a name: the model of a deployment that is granted by itself, and the
    models and deployments behind its routes, which answers name."""
    for pattern in team.allow:
        if pattern.rpartition("/")[0] == name and (found := _find(snapshot, pattern)) and found.deployment:
            return True
    routes = [*team.routes.values(), *(route for each, route in snapshot.routes.items() if covered(team, each))]
    return any(
        name in (target.name, f"{target.vendor}/{target.model}")
        for route in routes
        for target in _behind(snapshot, team, route)
    )


def _behind(snapshot: Snapshot, team: Team, route: Route) -> Iterator[Target]:
    """Every target that a route may lead to, in no order that means anything."""
    yield from _expand_route(snapshot, team, route, IDLE, [])
    for names in route.fallbacks.values():
        yield from _named(snapshot, names, IDLE)


def allowed(snapshot: Snapshot, team: Team, name: str) -> bool:
    """Whether the allow list covers the name of a model or of a deployment. A name that is also a route's is a grant of
    the route, which hides the model."""
    return any(
        covers(pattern, name) and (pattern != name or (name not in snapshot.routes and name not in team.routes))
        for pattern in team.allow
    )


def covered(team: Team, route: str) -> bool:
    """Whether the allow list covers the name of a route."""
    return any(covers(pattern, route) for pattern in team.allow)


def covers(pattern: str, name: str) -> bool:
    """Whether one pattern of an allow list covers a name: `*`, `vendor/*`, or the name itself."""
    return pattern in (WILDCARD, name) or (pattern.endswith("/*") and name.startswith(pattern[:-1]))


def visible(snapshot: Snapshot, team: Team) -> Sequence[str]:
    """Every name the team may ask for, as the models list shows them: routes first, wildcard rows left out. A route
    hides the model or deployment of its name."""
    return tuple(dict.fromkeys(each_visible(snapshot, team)))


def each_visible(snapshot: Snapshot, team: Team) -> Iterator[str]:
    """The same names one by one, for callers that must not take long at a time; a name may come again."""
    routes = snapshot.routes
    yield from team.routes
    yield from (name for name in routes if covered(team, name))
    for model in snapshot.models.values():
        whole = allowed(snapshot, team, model.name)
        if whole and model.name not in routes:
            yield model.name
        if len(model.targets) > 1 or not whole:
            own = (target.name for target in model.targets if whole or allowed(snapshot, team, target.name))
            yield from (name for name in own if name not in routes)


def nearest(snapshot: Snapshot, team: Team, name: str) -> tuple[str, ...]:
    """Up to three names the team may ask for that look like `name`.

    A name's tail counts, since litellm and dspy cut the first segment off. In a large table those of the same vendor
    are compared first.
    """
    names = visible(snapshot, team)
    tails = [candidate for candidate in names if candidate.partition("/")[2] == name]
    vendor = name.partition("/")[0]
    likely = sorted(names, key=lambda candidate: candidate.partition("/")[0] != vendor)
    close = get_close_matches(name, likely[:MOST_COMPARED], NEAREST, 0.6)
    return tuple(dict.fromkeys([*tails, *close]))[:NEAREST]
