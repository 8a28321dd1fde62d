"""What only the whole table can tell: names that lead nowhere, circles, weights of zero, doubled keys, open doors.

Never vendor knowledge: whether a profile exists or a base_url is needed is checked where profiles are known. A name
that came out of a reference is never repeated in a message.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from config.addresses import address_fault, listens_on_loopback
from config.misshapen_routes import written_names
from config.problems import Path, Problem, did_you_mean, shown
from config.reserved_names import RESERVED_ROUTES, RESERVED_TEAMS, taken
from config.schema import DeploymentSettings, GatewayConfig, Route
from config.settings import IMPLICIT_DEPLOYMENT, Inheritance, deployment_inheritance, vendor_inheritance
from config.tree import MapNode, Node, find, key_position, value_position
from config.web_origins import ANY_ORIGIN

_MOST_HINTS: Final = 20
"""Nearest names are sought for this many problems: a search over thousands of names takes milliseconds."""


@dataclass(frozen=True, slots=True)
class Names:
    """Every name written in the table, those of refused entries included, so that one mistake is not reported twice."""

    vendors: Set[str]
    models: Mapping[str, Set[str]]
    routes: Set[str]

    @classmethod
    def of(cls, root: Node) -> "Names":
        models = {name: _keys(root, ("models", name, "deployments")) for name in _keys(root, ("models",))}
        return cls(_keys(root, ("vendors",)), models, _keys(root, ("routes",)))

    def knows(self, name: str) -> bool:
        """Whether a request for this name would find a route, a model, one of its deployments or a `vendor/*`."""
        return name in self.routes or name in self.models or self._is_deployment(name) or self._is_wild(name)

    def _is_deployment(self, name: str) -> bool:
        model, _, deployment = name.rpartition("/")
        return model in self.models and deployment in (self.models[model] or {IMPLICIT_DEPLOYMENT})

    def _is_wild(self, name: str) -> bool:
        vendor, slash, rest = name.partition("/")
        return bool(slash and rest) and f"{vendor}/*" in self.models

    def all(self) -> Iterator[str]:
        """Those that may be recommended: not the models of a vendor that there is not."""
        yield from self.routes
        for model, deployments in self.models.items():
            if model.partition("/")[0] not in self.vendors:
                continue
            yield model
            yield from (f"{model}/{deployment}" for deployment in deployments)


def _keys(root: Node, path: Path) -> Set[str]:
    node, _, depth = find(root, path)
    return node.entries.keys() if isinstance(node, MapNode) and depth == len(path) else frozenset()


@dataclass(slots=True)
class Table:
    """What the checks look at. `referenced`: paths of values that came out of references. `faulty`: dotted paths of
    which something has been told already; what stood there is not in `config`."""

    config: GatewayConfig
    root: Node
    referenced: Set[Path]
    faulty: Set[str] = frozenset()
    names: Names = field(init=False)
    hints: int = 0

    def __post_init__(self) -> None:
        self.names = Names.of(self.root)

    def at_key(self, path: Path, message: str) -> Problem:
        return Problem.at(key_position(self.root, path), path, message)

    def at_value(self, path: Path, message: str) -> Problem:
        written = path[: find(self.root, path)[2]]
        return Problem.at(value_position(self.root, path), written, message)

    def no_such(self, kind: str, name: str, path: Path, known: Iterable[str], below: str = "") -> str:
        """`no vendor named x; did you mean y?`, without the name when it came out of a reference; `below` as in
        `did_you_mean`."""
        if any(path[:length] in self.referenced for length in range(1, len(path) + 1)):
            return f"the value of this reference is no {kind}"
        self.hints += 1
        return f"no {kind} named {shown(name)}{did_you_mean(name, known, below) if self.hints <= _MOST_HINTS else ''}"


Check = Callable[[Table], Iterable[Problem]]


def semantic_problems(table: Table) -> tuple[Problem, ...]:
    """Everything that makes the table unusable."""
    return tuple(problem for check in _CHECKS for problem in check(table))


# Models and vendors -------------------------------------------------------------------------------------------------


def _vendors_of_models(table: Table) -> Iterator[Problem]:
    for key in table.config.models:
        vendor, _, model = key.partition("/")
        if vendor not in table.names.vendors:
            told = table.no_such("vendor", vendor, (), table.names.vendors, below=model)
            only = list(table.names.vendors) if len(table.names.vendors) == 1 and "?" not in told else ()
            added = "".join(f"; a model of {shown(name)} is written {shown(f'{name}/{key}')}" for name in only)
            yield table.at_key(("models", key), told + added)


def _hidden_deployments(table: Table) -> Iterator[Problem]:
    for key, model in table.config.models.items():
        for name in model.deployments:
            if f"{key}/{name}" in table.names.models:
                path: Path = ("models", key, "deployments", name)
                yield table.at_key(path, "cannot be reached: the model of that very name is found first")


def _renamed_wildcards(table: Table) -> Iterator[Problem]:
    for key, model in table.config.models.items():
        if key.endswith("/*"):
            places: dict[Path, str | None] = {("models", key): model.upstream_model}
            places |= {
                ("models", key, "deployments", name): own.upstream_model for name, own in model.deployments.items()
            }
            for place, name in places.items():
                if name is not None:
                    yield table.at_key((*place, "upstream_model"), f"has no effect under {key}: names are passed on")


def levels(config: GatewayConfig) -> Iterator[tuple[Path, DeploymentSettings]]:
    """Every section that holds deployment settings."""
    yield ("defaults",), config.defaults
    for vendor_name, vendor in config.vendors.items():
        yield ("vendors", vendor_name), vendor
    for key, model in config.models.items():
        yield ("models", key), model
        for name, deployment in model.deployments.items():
            yield ("models", key, "deployments", name), deployment


def inheritances(config: GatewayConfig) -> Iterator[Inheritance]:
    """What every deployment inherits; for a vendor without models, what they would."""
    used = set()
    for key, model in config.models.items():
        vendor = key.partition("/")[0]
        if vendor in config.vendors:
            used.add(vendor)
            for name in model.deployments or (IMPLICIT_DEPLOYMENT,):
                yield deployment_inheritance(config, vendor, key, name)
    yield from (vendor_inheritance(config, vendor) for vendor in config.vendors if vendor not in used)


def _addresses(table: Table) -> Iterator[Problem]:
    seen = set()
    for inheritance in inheritances(table.config):
        url = inheritance.first("base_url", lambda s: s.base_url)
        allow_private = inheritance.first("allow_private", lambda s: s.allow_private) or False
        fault = address_fault(url, allow_private=allow_private) if url else None
        path = inheritance.origins.get("base_url", ())
        if fault and path not in seen:
            seen.add(path)
            yield table.at_value(path, fault)


def _two_credentials(table: Table) -> Iterator[Problem]:
    for path, level in levels(table.config):
        if level.api_key is not None and level.credentials is not None:
            yield table.at_key((*path, "credentials"), "excludes api_key, which stands beside it: keep one of them")


def _token_urls(table: Table) -> Iterator[Problem]:
    seen = set()
    for inheritance in inheritances(table.config):
        credentials = inheritance.first("credentials", lambda s: s.credentials)
        path = (*inheritance.origins.get("credentials", ()), "oidc", "token_url")
        if credentials is None or credentials.oidc is None or path in seen:
            continue
        allow_private = inheritance.first("allow_private", lambda s: s.allow_private) or False
        if fault := address_fault(credentials.oidc.token_url, allow_private=allow_private):
            seen.add(path)
            yield table.at_value(path, fault)


# Routes -------------------------------------------------------------------------------------------------------------


def route_maps(config: GatewayConfig) -> Iterator[tuple[Path, Mapping[str, Route]]]:
    """The routes of everybody, and those of each team."""
    yield ("routes",), config.routes
    for name, team in config.teams.items():
        yield ("teams", name, "routes"), team.routes


def _targets(table: Table) -> Iterator[Problem]:
    for path, routes in route_maps(table.config):
        own = _keys(table.root, path)
        for name, route in routes.items():
            for index, target in enumerate(route.targets):
                if target.target not in own and not table.names.knows(target.target):
                    here: Path = (*path, name, "targets", index, "target")
                    known = [*own, *table.names.all()]
                    yield table.at_value(here, table.no_such("model or route", target.target, here, known))


def _targets_of_misshapen(table: Table) -> Iterator[Problem]:
    for path, routes in route_maps(table.config):
        own = _keys(table.root, path)
        for name in [each for each in own if each not in routes]:
            here: Path = (*path, name)
            for place, target in written_names(find(table.root, here)[0], here):
                if target not in own and not table.names.knows(target):
                    known = [*own, *table.names.all()]
                    yield table.at_value(place, table.no_such("model or route", target, place, known))


def _circles(table: Table) -> Iterator[Problem]:
    # Inside any route a team asks for, the team's own names come first, so a circle may run through both. It is told
    # where it leaves the map under test for the last time; one that never enters it is another map's.
    shared = table.config.routes
    for path, own in route_maps(table.config):
        routes = {**shared, **own}
        for circle in _circles_from(own, routes):
            for name, following in [step for step in pairwise(circle) if step[0] in own][-1:]:
                index = [target.target for target in own[name].targets].index(following)
                here: Path = (*path, name, "targets", index, "target")
                yield table.at_value(here, f"a circle of routes: {' -> '.join(map(shown, circle))}")


def _circles_from(starts: Iterable[str], routes: Mapping[str, Route]) -> Iterator[list[str]]:
    """Every circle first met on the way down from the starts, as its names, the first of them again at the end."""
    done: set[str] = set()
    for start in starts:
        # Walked with a stack of its own: a chain of routes may be longer than the interpreter's.
        trail = {start: _steps(start, routes)} if start not in done else {}
        while trail:
            name = next(reversed(trail))
            following = next(trail[name], None)
            if following is None:
                done.add(name)
                del trail[name]
            elif following in trail:
                names = list(trail)
                yield [*names[names.index(following) :], following]
            elif following not in done:
                trail[following] = _steps(following, routes)


def _steps(name: str, routes: Mapping[str, Route]) -> Iterator[str]:
    return (target.target for target in routes[name].targets if target.target in routes)


def _reserved_names(table: Table) -> Iterator[Problem]:
    for name in sorted(table.config.teams.keys() & RESERVED_TEAMS):
        yield table.at_key(("teams", name), taken("team", RESERVED_TEAMS))
    for path, routes in route_maps(table.config):
        for name in sorted(routes.keys() & RESERVED_ROUTES):
            yield table.at_key((*path, name), taken("route", RESERVED_ROUTES))


def _fallbacks(table: Table) -> Iterator[Problem]:
    for path, routes in route_maps(table.config):
        own = _keys(table.root, path)
        for name, route in routes.items():
            for kind, names in (
                ("context_window", route.fallbacks.context_window),
                ("content_filter", route.fallbacks.content_filter),
            ):
                for index, fallback in enumerate(names):
                    here: Path = (*path, name, "fallbacks", kind, index)
                    if fallback in own or fallback in table.names.routes:
                        yield table.at_value(here, "must be a model or a deployment, not a route")
                    elif not table.names.knows(fallback):
                        yield table.at_value(here, table.no_such("model", fallback, here, table.names.all()))


def _zero_weights(table: Table) -> Iterator[Problem]:
    message = "the weights sum to zero: nothing could be chosen"
    for key, model in table.config.models.items():
        weights = [deployment.weight for deployment in model.deployments.values()]
        if model.policy != "priority" and weights and not sum(weights):
            yield table.at_key(("models", key, "deployments"), message)
    for path, routes in route_maps(table.config):
        for name, route in routes.items():
            if route.policy != "priority" and not sum(target.weight for target in route.targets):
                yield table.at_key((*path, name, "targets"), message)


# Teams, surfaces, listeners -----------------------------------------------------------------------------------------


def _allowed_names(table: Table) -> Iterator[Problem]:
    for team_name, team in table.config.teams.items():
        own = _keys(table.root, ("teams", team_name, "routes"))
        for index, allowed in enumerate(team.models):
            path: Path = ("teams", team_name, "models", index)
            if allowed.endswith("/*"):
                if not any(model.startswith(allowed[:-1]) for model in table.names.models):
                    vendors = {f"{model.partition('/')[0]}/*" for model in table.names.models}
                    yield table.at_value(path, table.no_such("vendor with models", allowed, path, vendors))
            elif allowed != "*" and allowed not in own and not table.names.knows(allowed):
                yield table.at_value(path, table.no_such("model or route", allowed, path, table.names.all()))


def _doubled_keys(table: Table) -> Iterator[Problem]:
    first: dict[str, tuple[str, Path]] = {}
    for team_name, team in table.config.teams.items():
        for index, own in enumerate(team.keys):
            path: Path = ("teams", team_name, "keys", index, "key")
            if own.key in first:
                owner, at = first[own.key]
                place = value_position(table.root, at)
                yield table.at_value(path, f"the same key belongs to team {shown(owner)} already, at {place}")
            first.setdefault(own.key, (team_name, path))


def _surface_defaults(table: Table) -> Iterator[Problem]:
    names = table.names
    for surface, settings in table.config.server.surfaces.items():
        path: Path = ("server", "surfaces", surface)
        vendor, model = settings.default_vendor, settings.default_model
        if vendor and vendor not in names.vendors:
            here = (*path, "default_vendor")
            yield table.at_value(here, table.no_such("vendor", vendor, here, names.vendors))
        if model and not names.knows(model) and not (vendor and names.knows(f"{vendor}/{model}")):
            here = (*path, "default_model")
            yield table.at_value(here, table.no_such("model or route", model, here, names.all()))


def _open_admin(table: Table) -> Iterator[Problem]:
    admin = table.config.server.admin
    has_token = admin.token is not None or "server.admin.token" in table.faulty
    if not has_token and not listens_on_loopback(admin.host):
        message = "the admin listener needs a token to listen on another address than loopback"
        yield table.at_value(("server", "admin", "host"), message)


def _any_origin(table: Table) -> Iterator[Problem]:
    config = table.config
    for index, origin in enumerate(config.server.cors.origins):
        if origin == ANY_ORIGIN and not config.teams:
            message = "without teams any web page could use the keys: list the origins, or add teams"
            yield table.at_value(("server", "cors", "origins", index), message)


_CHECKS: Final[tuple[Check, ...]] = (
    _vendors_of_models,
    _hidden_deployments,
    _renamed_wildcards,
    _addresses,
    _two_credentials,
    _token_urls,
    _targets,
    _targets_of_misshapen,
    _circles,
    _reserved_names,
    _fallbacks,
    _zero_weights,
    _allowed_names,
    _doubled_keys,
    _surface_defaults,
    _open_admin,
    _any_origin,
)
