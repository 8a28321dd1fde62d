"""Check sections against each other: unknown names, circular routes, weights of zero, duplicate keys, open listeners.

Other code checks whether a profile exists and whether it needs a base_url, since only that code knows the profiles. No
message repeats a name that came from a reference.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from config.addresses import address_fault, listens_on_loopback
from config.checks.misshapen_routes import written_names
from config.problem import Path, Problem, did_you_mean, shown
from config.reading.yaml_tree import MapNode, Node, find, key_position, value_position
from config.reserved_names import RESERVED_ROUTES, RESERVED_TEAMS, reserved_name_message
from config.sections.log_section import EVERY_TEAM
from config.sections.route_section import RouteSection, RouteTarget
from config.table.inheritance import IMPLICIT_DEPLOYMENT, Inheritance, deployment_inheritance, vendor_inheritance
from config.table.table_schema import DeploymentSection, DeploymentSettings, GatewayConfig
from config.web_origins import ANY_ORIGIN

_MOST_HINTS: Final = 20
"""The most problems whose message suggests similar names. A search over thousands of names takes milliseconds."""


@dataclass(frozen=True, slots=True)
class ConfiguredNames:
    """Every name in the configuration. It includes the names of invalid entries, so that one mistake is reported
    once."""

    vendors: Set[str]
    models: Mapping[str, Set[str]]
    routes: Set[str]

    @classmethod
    def of(cls, root: Node) -> "ConfiguredNames":
        models = {name: keys_below(root, ("models", name, "deployments")) for name in keys_below(root, ("models",))}
        return cls(keys_below(root, ("vendors",)), models, keys_below(root, ("routes",)))

    def knows(self, name: str) -> bool:
        """Return whether the name is a route, a model or a deployment, or matches a pattern `vendor/*`."""
        return name in self.routes or name in self.models or self.is_deployment(name) or self._matches_wildcard(name)

    def counted_as(self, name: str) -> str:
        """Return the key of the configuration under which requests for a known name are counted."""
        if name in self.routes or name in self.models:
            return name
        return name.rpartition("/")[0] if self.is_deployment(name) else f"{name.partition('/')[0]}/*"

    def is_deployment(self, name: str) -> bool:
        """Return whether the name is a deployment of an entry of `models`."""
        model, _, deployment = name.rpartition("/")
        return model in self.models and deployment in (self.models[model] or {IMPLICIT_DEPLOYMENT})

    def _matches_wildcard(self, name: str) -> bool:
        vendor, slash, rest = name.partition("/")
        return bool(slash and rest) and f"{vendor}/*" in self.models

    def all(self) -> Iterator[str]:
        """Yield the names that hints may suggest. Models of a vendor that is missing are left out."""
        yield from self.routes
        for model, deployments in self.models.items():
            if model.partition("/")[0] not in self.vendors:
                continue
            yield model
            yield from (f"{model}/{deployment}" for deployment in deployments)


def keys_below(root: Node, path: Path) -> Set[str]:
    """Return the keys that are written in the mapping at a path."""
    node, _, depth = find(root, path)
    return node.entries.keys() if isinstance(node, MapNode) and depth == len(path) else frozenset()


@dataclass(slots=True)
class CheckContext:
    """The input of the checks. `referenced` holds the paths of values that came from references. `faulty` holds the
    dotted paths with an earlier problem; their values are not in `config`."""

    config: GatewayConfig
    root: Node
    referenced: Set[Path]
    faulty: Set[str] = frozenset()
    names: ConfiguredNames = field(init=False)
    hints: int = 0

    def __post_init__(self) -> None:
        self.names = ConfiguredNames.of(self.root)

    def at_key(self, path: Path, message: str) -> Problem:
        return Problem.at(key_position(self.root, path), path, message)

    def at_value(self, path: Path, message: str) -> Problem:
        written = path[: find(self.root, path)[2]]
        return Problem.at(value_position(self.root, path), written, message)

    def no_such(self, kind: str, name: str, path: Path, known: Iterable[str], below: str = "") -> str:
        """Return a message such as `no vendor named x; did you mean y?`. A name from a reference is not repeated.
        `below` is passed to `did_you_mean`."""
        if any(path[:length] in self.referenced for length in range(1, len(path) + 1)):
            return f"the value of this reference is no {kind}"
        self.hints += 1
        return f"no {kind} named {shown(name)}{did_you_mean(name, known, below) if self.hints <= _MOST_HINTS else ''}"


ConfigCheck = Callable[[CheckContext], Iterable[Problem]]


def check_between_sections(context: CheckContext) -> tuple[Problem, ...]:
    """Return every problem between sections."""
    return tuple(problem for check in _CHECKS for problem in check(context))


# Models and vendors -------------------------------------------------------------------------------------------------


def _vendors_of_models(context: CheckContext) -> Iterator[Problem]:
    for key in context.config.models:
        vendor, _, model = key.partition("/")
        if vendor not in context.names.vendors:
            message = context.no_such("vendor", vendor, (), context.names.vendors, below=model)
            only = list(context.names.vendors) if len(context.names.vendors) == 1 and "?" not in message else ()
            added = "".join(f"; a model of {shown(name)} is written {shown(f'{name}/{key}')}" for name in only)
            yield context.at_key(("models", key), message + added)


def _hidden_deployments(context: CheckContext) -> Iterator[Problem]:
    for key, model in context.config.models.items():
        for name in model.deployments:
            if f"{key}/{name}" in context.names.models:
                path: Path = ("models", key, "deployments", name)
                yield context.at_key(path, "cannot be reached: the model of the same name is found first")


def _renamed_wildcards(context: CheckContext) -> Iterator[Problem]:
    for key, model in context.config.models.items():
        if key.endswith("/*"):
            upstream_models: dict[Path, str | None] = {("models", key): model.upstream_model}
            upstream_models |= {
                ("models", key, "deployments", name): own.upstream_model for name, own in model.deployments.items()
            }
            for path, name in upstream_models.items():
                if name is not None:
                    yield context.at_key(
                        (*path, "upstream_model"), f"has no effect under {key}: each name is sent unchanged"
                    )


def levels(config: GatewayConfig) -> Iterator[tuple[Path, DeploymentSettings]]:
    """Yield the path and value of every section that holds deployment settings."""
    yield ("defaults",), config.defaults
    for vendor_name, vendor in config.vendors.items():
        yield ("vendors", vendor_name), vendor
    for key, model in config.models.items():
        yield ("models", key), model
        for name, deployment in model.deployments.items():
            yield ("models", key, "deployments", name), deployment


def inheritances(config: GatewayConfig) -> Iterator[Inheritance]:
    """Yield the levels of every deployment, and of every vendor without models."""
    used = set()
    for key, model in config.models.items():
        vendor = key.partition("/")[0]
        if vendor in config.vendors:
            used.add(vendor)
            for name in model.deployments or (IMPLICIT_DEPLOYMENT,):
                yield deployment_inheritance(config, vendor, key, name)
    yield from (vendor_inheritance(config, vendor) for vendor in config.vendors if vendor not in used)


def _addresses(context: CheckContext) -> Iterator[Problem]:
    seen = set()
    for inheritance in inheritances(context.config):
        allow_private = inheritance.first("allow_private", lambda s: s.allow_private) or False
        for path, url in _urls(inheritance):
            if path not in seen and (fault := address_fault(url, allow_private=allow_private)):
                seen.add(path)
                yield context.at_value(path, fault)


def _urls(inheritance: Inheritance) -> Iterator[tuple[Path, str]]:
    if url := inheritance.first("base_url", lambda s: s.base_url):
        yield inheritance.origins["base_url"], url
    credentials = inheritance.first("credentials", lambda s: s.credentials)
    if credentials is not None and credentials.oidc is not None:
        yield (*inheritance.origins["credentials"], "oidc", "token_url"), credentials.oidc.token_url


def _two_credentials(context: CheckContext) -> Iterator[Problem]:
    for path, level in levels(context.config):
        if level.api_key is not None and level.credentials is not None:
            yield context.at_key(
                (*path, "credentials"), "cannot be used with api_key, which is also written here: keep one of them"
            )


# Routes -------------------------------------------------------------------------------------------------------------


def route_maps(config: GatewayConfig) -> Iterator[tuple[Path, Mapping[str, RouteSection]]]:
    """Yield the path and value of the global routes, and of each team's routes."""
    yield ("routes",), config.routes
    for name, team in config.teams.items():
        yield ("teams", name, "routes"), team.routes


def _targets(context: CheckContext) -> Iterator[Problem]:
    for path, routes in route_maps(context.config):
        own = keys_below(context.root, path)
        for name, route in routes.items():
            for index, target in enumerate(route.targets):
                if target.target not in own and not context.names.knows(target.target):
                    here: Path = (*path, name, "targets", index, "target")
                    known = [*own, *context.names.all()]
                    yield context.at_value(here, context.no_such("model or route", target.target, here, known))


def _targets_of_misshapen(context: CheckContext) -> Iterator[Problem]:
    for path, routes in route_maps(context.config):
        own = keys_below(context.root, path)
        for name in [each for each in own if each not in routes]:
            here: Path = (*path, name)
            for target_path, target in written_names(find(context.root, here)[0], here):
                if target not in own and not context.names.knows(target):
                    known = [*own, *context.names.all()]
                    yield context.at_value(target_path, context.no_such("model or route", target, target_path, known))


def _circles(context: CheckContext) -> Iterator[Problem]:
    # Inside any route that a team requests, the team's own names come first, so a circle may run through both maps.
    # It is reported at the last step that leaves `own`. A circle that never enters `own` is reported with its own map.
    shared = context.config.routes
    for path, own in route_maps(context.config):
        routes = {**shared, **own}
        for circle in _circles_from(own, routes):
            for name, following in [step for step in pairwise(circle) if step[0] in own][-1:]:
                index = [target.target for target in own[name].targets].index(following)
                here: Path = (*path, name, "targets", index, "target")
                yield context.at_value(here, f"circular routes: {' -> '.join(map(shown, circle))}")


def _circles_from(starts: Iterable[str], routes: Mapping[str, RouteSection]) -> Iterator[list[str]]:
    """Yield every circle that a depth-first search finds from the starts: its names, with the first repeated at the
    end."""
    done: set[str] = set()
    for start in starts:
        # The search does not recurse, because a chain of routes may exceed the interpreter's recursion limit.
        trail = {start: _routes_after(start, routes)} if start not in done else {}
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
                trail[following] = _routes_after(following, routes)


def _routes_after(name: str, routes: Mapping[str, RouteSection]) -> Iterator[str]:
    return (target.target for target in routes[name].targets if target.target in routes)


def _reserved_names(context: CheckContext) -> Iterator[Problem]:
    for name in sorted(context.config.teams.keys() & RESERVED_TEAMS):
        yield context.at_key(("teams", name), reserved_name_message("team", RESERVED_TEAMS))
    for path, routes in route_maps(context.config):
        for name in sorted(routes.keys() & RESERVED_ROUTES):
            yield context.at_key((*path, name), reserved_name_message("route", RESERVED_ROUTES))


def _fallbacks(context: CheckContext) -> Iterator[Problem]:
    for path, routes in route_maps(context.config):
        own = keys_below(context.root, path)
        for name, route in routes.items():
            for kind, names in route.fallbacks:
                for index, fallback in enumerate(names):
                    here: Path = (*path, name, "fallbacks", kind, index)
                    if fallback in own or fallback in context.names.routes:
                        yield context.at_value(here, "must be a model or a deployment, not a route")
                    elif not context.names.knows(fallback):
                        yield context.at_value(here, context.no_such("model", fallback, here, context.names.all()))


Members = Sequence[tuple[Path, DeploymentSection | RouteTarget]]


def choices(config: GatewayConfig) -> Iterator[tuple[Path, str, Members]]:
    """Yield the path, policy and members of every choice: a model's deployments, or a route's targets."""
    for key, model in config.models.items():
        path: Path = ("models", key, "deployments")
        yield path, model.policy, [((*path, name), member) for name, member in model.deployments.items()]
    for at, routes in route_maps(config):
        for name, route in routes.items():
            path = (*at, name, "targets")
            yield path, route.policy, [((*path, index), member) for index, member in enumerate(route.targets)]


def _zero_weights(context: CheckContext) -> Iterator[Problem]:
    for path, policy, members in choices(context.config):
        if policy != "priority" and members and not sum(member.weight for _, member in members):
            yield context.at_key(path, "the weights sum to zero: no target could be chosen")


# Teams, surfaces, listeners -----------------------------------------------------------------------------------------


def _allowed_names(context: CheckContext) -> Iterator[Problem]:
    for team_name, team in context.config.teams.items():
        own = keys_below(context.root, ("teams", team_name, "routes"))
        for index, allowed in enumerate(team.models):
            yield from unknown_allowed_name(context, ("teams", team_name, "models", index), allowed, own)


def unknown_allowed_name(context: CheckContext, path: Path, allowed: str, own: Set[str]) -> Iterator[Problem]:
    """Yield a problem if a name in an allow list matches nothing. `own` are the names of the team's own routes."""
    if allowed.endswith("/*"):
        if not any(model.startswith(allowed[:-1]) for model in context.names.models):
            vendors = {f"{model.partition('/')[0]}/*" for model in context.names.models}
            yield context.at_value(path, context.no_such("vendor with models", allowed, path, vendors))
    elif allowed != "*" and allowed not in own and not context.names.knows(allowed):
        yield context.at_value(path, context.no_such("model or route", allowed, path, context.names.all()))


def _surface_defaults(context: CheckContext) -> Iterator[Problem]:
    names = context.names
    for surface, settings in context.config.server.surfaces.items():
        path: Path = ("server", "surfaces", surface)
        vendor, model = settings.default_vendor, settings.default_model
        if vendor and vendor not in names.vendors:
            here = (*path, "default_vendor")
            yield context.at_value(here, context.no_such("vendor", vendor, here, names.vendors))
        if model and not names.knows(model) and not (vendor and names.knows(f"{vendor}/{model}")):
            here = (*path, "default_model")
            yield context.at_value(here, context.no_such("model or route", model, here, names.all()))
        for task, name in settings.task_models.items():
            if not names.knows(name) and not (vendor and names.knows(f"{vendor}/{name}")):
                here = (*path, "task_models", task)
                yield context.at_value(here, context.no_such("model or route", name, here, names.all()))


def _open_admin(context: CheckContext) -> Iterator[Problem]:
    admin = context.config.server.admin
    has_token = admin.token is not None or "server.admin.token" in context.faulty
    if not has_token and not listens_on_loopback(admin.host):
        message = "the admin listener needs a token to listen on an address other than loopback"
        yield context.at_value(("server", "admin", "host"), message)


def _any_origin(context: CheckContext) -> Iterator[Problem]:
    config = context.config
    for index, origin in enumerate(config.server.cors.origins):
        if origin == ANY_ORIGIN and not config.teams:
            message = "without teams any web page could use the keys: list the origins, or add teams"
            yield context.at_value(("server", "cors", "origins", index), message)


def _logged_teams(context: CheckContext) -> Iterator[Problem]:
    log = context.config.server.payload_log
    for index, team in enumerate(() if log is None else log.teams):
        if team != EVERY_TEAM and team not in context.config.teams:
            path: Path = ("server", "payload_log", "teams", index)
            yield context.at_value(path, context.no_such("team", team, path, context.config.teams))


def _logged_models(context: CheckContext) -> Iterator[Problem]:
    log, teams = context.config.server.payload_log, context.config.teams
    own = {name for team in teams for name in keys_below(context.root, ("teams", team, "routes"))}
    for index, model in enumerate(() if log is None else log.models):
        yield from unknown_allowed_name(context, ("server", "payload_log", "models", index), model, own)


_CHECKS: Final[tuple[ConfigCheck, ...]] = (
    _vendors_of_models,
    _hidden_deployments,
    _renamed_wildcards,
    _addresses,
    _two_credentials,
    _targets,
    _targets_of_misshapen,
    _circles,
    _reserved_names,
    _fallbacks,
    _zero_weights,
    _allowed_names,
    _surface_defaults,
    _open_admin,
    _any_origin,
    _logged_teams,
    _logged_models,
)
