"""Resolves a model string to the ordered targets that may serve it. The `load` argument provides the load of the
deployments and random numbers."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import TypeAlias

from config.allowed_names import covers
from providers.frozen_record import frozen
from providers.target import Target
from proxy.errors import GatewayError, model_hidden, model_not_allowed, model_not_found
from proxy.routing.affinity_rules import AffinityRules
from proxy.routing.deployment_load import IDLE, Load, MemberLoad, RecordingLoad
from proxy.routing.expand_wildcard import expand
from proxy.routing.in_service import plan_in_service
from proxy.routing.policies import POLICIES
from proxy.routing.request_plan import Plan, Step
from proxy.routing.route_settings import RouteSettings
from proxy.routing.session_affinity import MemberGroup
from proxy.routing.snapshot import ANYONE, Model, Route, Snapshot, Team

WILDCARD_MODEL = "vendor/*"
WILDCARD_DEPLOYMENT = "vendor/* deployment"
"""The rules by which a name leads to a `vendor/*` entry, or to one of its deployments."""

_NO_SEGMENT = frozenset({"", ".", ".."})

MAX_SUGGESTIONS = 3

MAX_COMPARED = 250
"""The most names with which an unknown name is compared: 1,000 comparisons block the event loop for 40 ms."""

MAX_CACHED_NAMES = 1024
"""The most names whose resolution is cached."""


@frozen
class Match:
    model: Model
    label: str
    rule: str
    deployment: str | None = None


@frozen(eq=False)
class _ResolvedName:
    """The entry or route that a name leads to, and the steps to it. It does not depend on the load."""

    asked: str
    found: Match | Route
    steps: tuple[Step, ...]


CachedNames: TypeAlias = dict[tuple[Team, str, str], Plan | _ResolvedName]
"""The cached resolution of a name by team, name and surface. If the load decides the order of the targets, the cached
value is only the resolved name."""


def plan_for(snapshot: Snapshot, team: Team, name: str, surface: str, load: Load) -> Plan:
    """Resolve `name` for the team to deployments in service.

    Raises GatewayError as `whole_plan` does, and with status 503 if no deployment is in service.
    """
    cached = snapshot.cached_names.get((team, name, surface))
    whole = cached if isinstance(cached, Plan) else whole_plan(snapshot, team, name, surface, load)
    return plan_in_service(whole) if snapshot.out_of_service else whole


def whole_plan(snapshot: Snapshot, team: Team, name: str, surface: str, load: Load) -> Plan:
    """Resolve `name` for the team to deployments in and out of service.

    The order is: the team's route, a route, an exact model or deployment, `vendor/*`, the surface's default vendor.
    Raises GatewayError with status 403 for a name that the team may not use but knows from the names that it may use.
    For every other unusable name the status is 404, with the same error for an existing and a missing name.

    The resolution of a name is cached until the next configuration. The order of its targets is cached too if it does
    not depend on the load.
    """
    key = (team, name, surface)
    cached = snapshot.cached_names.get(key)
    if cached is None:
        cached = _resolve(snapshot, team, name, surface)
        recording = RecordingLoad(load)
        made = _ordered(snapshot, team, cached, recording)
        if len(snapshot.cached_names) >= MAX_CACHED_NAMES:
            # Clients choose the names under `vendor/*`, so their number must be bounded.
            snapshot.cached_names.clear()
        snapshot.cached_names[key] = cached if recording.used else made
        return made
    return cached if isinstance(cached, Plan) else _ordered(snapshot, team, cached, load)


def _resolve(snapshot: Snapshot, team: Team, name: str, surface: str) -> _ResolvedName:
    """Return the resolution of a name. Raises the errors of `whole_plan`."""
    route = team.routes.get(name)
    if route is not None:
        return _ResolvedName(name, route, (Step("team route", route.name),))
    route = snapshot.routes.get(name)
    if route is not None:
        if not covered(team, name):
            raise _unavailable(snapshot, team, name, name, model_hidden)
        return _ResolvedName(name, route, (Step("route", route.name),))
    found = find(snapshot, name)
    canonical = name
    steps: tuple[Step, ...] = ()
    if found is None and (vendor := snapshot.default_vendors.get(surface)) is not None:
        canonical = f"{vendor}/{name}"
        found = find(snapshot, canonical)
        steps = (Step("default vendor", vendor),)
    if found is None:
        raise _unavailable(snapshot, team, name, name, model_not_found)
    if not granted(snapshot, team, found, canonical):
        raise _unavailable(snapshot, team, name, canonical, model_hidden)
    return _ResolvedName(name, found, (*steps, Step(found.rule, canonical)))


def _ordered(snapshot: Snapshot, team: Team, resolved: _ResolvedName, load: Load) -> Plan:
    """Return the plan of a name, with its targets ordered by the load."""
    found = resolved.found
    if isinstance(found, Route):
        return _plan_route(snapshot, team, found, resolved, load)
    plan = (resolved.asked, found.label, tuple(_order_targets(found, load)), False, resolved.steps)
    return Plan(*plan, {}, {}, False, found.model.cache, found.model.affinity, found.model.hedge)


def find(snapshot: Snapshot, name: str, under_wildcard: Callable[[Model, str], Model] = expand) -> Match | None:
    """Return the entry that a name leads to. `under_wildcard` creates the model for a name under a `vendor/*` entry."""
    model = snapshot.models.get(name)
    if model is not None:
        return Match(model, model.name, "model")
    # Model names may contain slashes and the longest key wins, so only the last segment can be a deployment.
    head, _, tail = name.rpartition("/")
    model = snapshot.models.get(head)
    if model is not None and any(target.deployment == tail for target in model.targets):
        return Match(model, model.name, "deployment", tail)
    vendor, _, rest = name.partition("/")
    wildcard = snapshot.wildcards.get(vendor)
    # Some vendors have the model in the URL's path. Therefore a name with a `.` or `..` segment is refused; configured
    # names have no such segments either.
    if wildcard is None or not _NO_SEGMENT.isdisjoint(rest.split("/")):
        return None
    inner, _, pinned = rest.rpartition("/")
    if inner and any(target.deployment == pinned for target in wildcard.targets):
        return Match(under_wildcard(wildcard, inner), wildcard.name, WILDCARD_DEPLOYMENT, pinned)
    return Match(under_wildcard(wildcard, rest), wildcard.name, WILDCARD_MODEL)


def _order_targets(found: Match, load: Load, above: AffinityRules | None = None) -> Iterator[Target]:
    """Return the targets of an entry in the order of attempts. `above` are the affinity rules of a route whose only
    member is this entry; they replace the entry's own rules."""
    model, targets = found.model, found.model.targets
    if found.deployment is not None:
        return (target for target in targets if target.deployment == found.deployment)
    if len(targets) == 1:
        return iter(targets)
    members = MemberLoad(load, found.label, lambda position: targets[position : position + 1])
    order = _by_conversation(above or model.placing, model.group, members)
    if order is None:
        order = POLICIES[model.policy]([target.weight for target in targets], members)
    return (targets[position] for position in order)


def _by_conversation(rules: AffinityRules, group: MemberGroup | None, members: MemberLoad) -> Sequence[int] | None:
    """Return the order of members for the request's conversation; `None` if the policy decides the order."""
    return members.ordered(rules, group) if rules.on and group is not None else None


def _plan_route(snapshot: Snapshot, team: Team, route: Route, resolved: _ResolvedName, load: Load) -> Plan:
    steps = [*resolved.steps]
    targets = tuple(dict.fromkeys(_expand_route(snapshot, team, route, load, steps)))
    settings = settings_of(snapshot, team, route)
    fallbacks = {kind: tuple(_targets_of(snapshot, names, load)) for kind, names in settings.fallbacks.items()}
    found = (resolved.asked, route.name, targets, True, tuple(steps), fallbacks)
    return Plan(*found, {}, settings.same_space, settings.cache, settings.affinity, settings.hedge)


def settings_of(snapshot: Snapshot, team: Team, route: Route) -> RouteSettings:
    """Return the settings for requests that name a route: the route's own settings, and the settings of the route or
    model that it stands for, through any number of intermediate names."""
    settings = route.own_settings
    while len(route.members) == 1:
        name = route.members[0].name
        inner = inner_route(snapshot, team, name)
        if inner is None:
            found = find(snapshot, name)
            if found is None:
                return settings
            model = found.model
            return settings.over(RouteSettings(cache=model.cache, affinity=model.affinity, hedge=model.hedge), name)
        settings = settings.over(inner.own_settings, inner.name)
        route = inner
    return settings


def _targets_of(snapshot: Snapshot, names: Sequence[str], load: Load) -> Iterator[Target]:
    for name in names:
        found = find(snapshot, name)
        if found is not None:
            yield from _order_targets(found, load)


def _expand_route(
    snapshot: Snapshot, team: Team, route: Route, load: Load, steps: list[Step], above: AffinityRules | None = None
) -> Iterator[Target]:
    """Yield the targets of a route depth first: all deployments of a member before the next member.

    A team's own routes come before the configured ones. The loader refuses cycles, so this ends. The allow list does
    not apply to the members of a granted route. `above` has the same meaning as in `_order_targets`.
    """
    own = route.own_settings
    if len(route.members) == 1:
        above = above or (own.affinity if "affinity" in own.written else None)
        yield from _expand_member(snapshot, team, route.members[0].name, load, steps, above)
        return

    def reach(position: int) -> Sequence[Target]:
        # The set of deployments does not depend on the load.
        return tuple(_expand_member(snapshot, team, route.members[position].name, IDLE, []))

    members = MemberLoad(load, route.name, reach)
    order = _by_conversation(above or route.placing, route.group, members)
    if order is None:
        order = POLICIES[route.policy]([member.weight for member in route.members], members)
    for position in order:
        yield from _expand_member(snapshot, team, route.members[position].name, load, steps)


def _expand_member(
    snapshot: Snapshot, team: Team, name: str, load: Load, steps: list[Step], above: AffinityRules | None = None
) -> Iterator[Target]:
    inner = inner_route(snapshot, team, name)
    if inner is not None:
        steps.append(Step("route", inner.name))
        yield from _expand_route(snapshot, team, inner, load, steps, above)
        return
    found = find(snapshot, name)
    if found is not None:
        steps.append(Step(found.rule, name))
        yield from _order_targets(found, load, above)


def inner_route(snapshot: Snapshot, team: Team, name: str) -> Route | None:
    """Return the route that a name means inside another route. A team's own routes come first."""
    return team.inner_routes.get(name) or snapshot.routes.get(name)


def granted(snapshot: Snapshot, team: Team, found: Match, name: str) -> bool:
    """Return whether the allow list grants the entry that `name` matched.

    A deployment is also granted with its model. Under `vendor/*` the name before a deployment may be another configured
    entry, whose grant does not count for this one.
    """
    if allowed(snapshot, team, name):
        return True
    if found.deployment is None or not allowed(snapshot, team, found.model.name):
        return False
    whole = find(snapshot, found.model.name, unexpanded)
    return whole is not None and (whole.label, whole.deployment) == (found.label, None)


def _unavailable(
    snapshot: Snapshot, team: Team, asked: str, canonical: str, unknown: Callable[[str, tuple[str, ...]], GatewayError]
) -> GatewayError:
    """Return the error for an unavailable name. The timing must not reveal whether the name exists, so the work is the
    same in both cases."""
    if knows(snapshot, team, canonical):
        return model_not_allowed(asked)
    return unknown(asked, nearest(snapshot, team, asked))


def knows(snapshot: Snapshot, team: Team, name: str) -> bool:
    """Return whether the team knows a name from its grants. It knows the model of a granted deployment, and the models
    and deployments behind its routes, because responses name them."""
    for pattern in team.allow:
        if pattern.rpartition("/")[0] == name and (found := find(snapshot, pattern)) and found.deployment:
            return True
    routes = [*team.routes.values(), *(route for each, route in snapshot.routes.items() if covered(team, each))]
    return any(
        name in (target.name, f"{target.vendor}/{target.model}")
        for route in routes
        for target in _reachable(snapshot, team, route)
    )


def _reachable(snapshot: Snapshot, team: Team, route: Route) -> Iterator[Target]:
    yield from _expand_route(snapshot, team, route, IDLE, [])
    for names in settings_of(snapshot, team, route).fallbacks.values():
        yield from _targets_of(snapshot, names, IDLE)


def targets_of_names(snapshot: Snapshot) -> Iterator[tuple[str, tuple[Target, ...]]]:
    """Yield every route and every entry of `models` with all of its targets, without fallbacks for a kind of failure. A
    route hides the model of its name."""
    for route in snapshot.routes.values():
        yield route.name, tuple(dict.fromkeys(_expand_route(snapshot, ANYONE, route, IDLE, [])))
    for model in (*snapshot.models.values(), *snapshot.wildcards.values()):
        if model.name not in snapshot.routes:
            yield model.name, model.targets


def reached(snapshot: Snapshot, team: Team, name: str) -> tuple[Target, ...]:
    """Return the deployments that a name leads to within a route of the team, in the configured order."""
    return tuple(dict.fromkeys(_expand_member(snapshot, team, name, IDLE, [])))


def allowed(snapshot: Snapshot, team: Team, name: str) -> bool:
    """Return whether the allow list grants a model or deployment. If a route has the same name, the list grants only
    the route."""
    return any(
        covers(pattern, name) and (pattern != name or (name not in snapshot.routes and name not in team.routes))
        for pattern in team.allow
    )


def covered(team: Team, route: str) -> bool:
    """Return whether the allow list covers the name of a route."""
    return any(covers(pattern, route) for pattern in team.allow)


def visible(snapshot: Snapshot, team: Team) -> Sequence[str]:
    """Return every listed name that the team may use, in the order of the list of models. Routes come first, and
    `vendor/*` entries are left out. A route hides the model or deployment of its name."""
    return tuple(dict.fromkeys(each_visible(snapshot, team)))


def each_visible(snapshot: Snapshot, team: Team) -> Iterator[str]:
    """Yield the names of `visible` one by one, for callers that must yield to other work. Names may repeat."""
    routes = {**snapshot.routes, **team.routes}
    yield from (name for name, route in team.routes.items() if route.listed)
    yield from (name for name, route in snapshot.routes.items() if route.listed and covered(team, name))
    for model in snapshot.models.values():
        if not model.listed:
            continue
        whole = allowed(snapshot, team, model.name)
        if whole and model.name not in routes:
            yield model.name
        if len(model.targets) > 1 or not whole:
            own = (target.name for target in model.targets if whole or allowed(snapshot, team, target.name))
            yield from (name for name in own if name not in routes)


def unexpanded(wildcard: Model, name: str) -> Model:
    """Return a `vendor/*` entry under a model's name with its unchanged targets. The result is not cached, because
    whole lists of names would evict used models from the cache of `expand`."""
    return replace(wildcard, name=f"{wildcard.targets[0].vendor}/{name}")


def nearest(snapshot: Snapshot, team: Team, name: str) -> tuple[str, ...]:
    """Return up to three names that the team may use and that resemble `name`.

    A name without its first segment is compared too, because litellm and dspy remove that segment. If there are many
    names, the names of the same vendor are compared first.
    """
    names = visible(snapshot, team)
    tails = [candidate for candidate in names if candidate.partition("/")[2] == name]
    vendor = name.partition("/")[0]
    likely = sorted(names, key=lambda candidate: candidate.partition("/")[0] != vendor)
    close = get_close_matches(name, likely[:MAX_COMPARED], MAX_SUGGESTIONS, 0.6)
    return tuple(dict.fromkeys([*tails, *close]))[:MAX_SUGGESTIONS]
