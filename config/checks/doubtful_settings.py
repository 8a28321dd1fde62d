"""Warn of settings that work but are hardly intended: secrets in the table, keys sent to several vendors, weights,
cooldowns, discovery and teams without effect, addresses that hardly lead to a collector of OpenTelemetry, and a `hedge`
at a name with one deployment, which leaves none for a second attempt.
"""

import re
from collections.abc import Iterator, Mapping, Set
from typing import Final
from urllib.parse import urlsplit

from pydantic import SecretStr

from config.addresses import reach
from config.checks.check_answer_cache import cache_sections
from config.checks.check_between_sections import (
    CheckContext,
    TableCheck,
    choices,
    inheritances,
    levels,
    route_maps,
)
from config.problem import Path, Problem, dotted, shown
from config.reading.yaml_tree import ScalarNode, find
from config.sections.affinity_section import AffinitySection
from config.sections.route_section import ROUTE_SETTINGS, FallbacksSection, RouteSection, RouteTarget
from config.table.table_schema import DeploymentSection, GatewayConfig
from config.units import duration

_GRPC_PORT: Final = 4317
_SIGNALS: Final = ("/v1/traces", "/v1/metrics", "/v1/logs")
_INSIDE: Final = (".internal", ".local", ".lan", ".localdomain", ".svc", ".cluster.local")
"""Endings of names that the public DNS does not have."""


def doubtful_collectors(context: CheckContext) -> Iterator[Problem]:
    """Yield a warning for each doubt about an address of a collector."""
    server = context.config.server
    payloads = None if server.payload_log is None else server.payload_log.otlp
    for path, section in ((("server", "tracing"), server.tracing), (("server", "payload_log", "otlp"), payloads)):
        if section is not None:
            at: Path = (*path, "endpoint")
            yield from (context.at_value(at, doubt) for doubt in _doubts(section.endpoint))


def _doubts(endpoint: str) -> Iterator[str]:
    parts = urlsplit(endpoint)
    signal = next((each for each in _SIGNALS if parts.path.rstrip("/").endswith(each)), None)
    if signal is not None:
        yield f"{signal} is added to what is written here: leave it out"
    if parts.port == _GRPC_PORT:
        yield "4317 is the port of OTLP over gRPC; OTLP over HTTP, which is spoken here, has 4318"
    if parts.scheme == "http" and _is_public(parts.hostname or ""):
        yield "plain http sends headers and what is exported in the clear: write https"


def _is_public(host: str) -> bool:
    """Return whether a host is on the internet, as far as its text tells. Names without a dot are of a network of the
    operator's own."""
    where, name = reach(host), host.rstrip(".").lower()
    return where == "public" or (where == "unknown" and "." in name and not name.endswith(_INSIDE))


_MOST_STEPS = 16
"""Routes within routes that are followed. A circle is another check's problem."""


def doubtful_hedges(context: CheckContext) -> Iterator[Problem]:
    """Yield a warning for each."""
    config, routes = context.config, dict(route_maps(context.config))
    for path, _, members in choices(config):
        at = path[:-1]
        named = config.models[str(at[1])] if at[0] == "models" else routes[at[:-1]][str(at[-1])]
        if named.hedge is None or named.hedge.mode == "off":
            continue
        if at[0] == "models":
            count = max(1, len(members))
        else:
            own = routes[at[:-1]] if at[0] == "teams" else {}
            count = _reached(context, own, str(at[-1]), _MOST_STEPS)
        if count < 2:
            yield context.at_key((*at, "hedge"), "has no effect: the name leads to one deployment")


def _reached(context: CheckContext, own: Mapping[str, RouteSection], name: str, steps: int) -> int:
    """Return how many deployments a name leads to, at most 2, as far as it is known; a team's own routes come first."""
    config = context.config
    route = own.get(name) or config.routes.get(name)
    if route is None:
        if context.names.is_deployment(name):
            return 1
        model = config.models.get(name) or config.models.get(f"{name.partition('/')[0]}/*")
        return 1 if model is None else min(2, max(1, len(model.deployments)))
    if not steps:
        return 2
    names = {target.target for target in route.targets}
    return min(2, sum(_reached(context, own, each, steps - 1) for each in names))


_SHELL_NAME: Final = re.compile(r"\$[A-Z_][A-Z0-9_]*")
_VARIABLE: Final = re.compile(r"\$[A-Z]+(_[A-Z]+)+")
"""A reference in shell form whose name is certainly not a password: words in capitals joined by `_`."""


def doubtful_settings(context: CheckContext) -> tuple[Problem, ...]:
    """Return every warning."""
    return tuple(problem for check in _CHECKS for problem in check(context))


def _secrets(config: GatewayConfig) -> Iterator[tuple[Path, SecretStr | None]]:
    for path, level in levels(config):
        yield (*path, "api_key"), level.api_key
        yield from (((*path, "headers", name), value) for name, value in level.headers.items())
        if level.credentials is not None and level.credentials.oidc is not None:
            yield (*path, "credentials", "oidc", "client_secret"), level.credentials.oidc.client_secret
    yield ("server", "admin", "token"), config.server.admin.token
    for path, cache in cache_sections(config):
        yield (*path, "secret"), cache.secret


def _literal_secrets(context: CheckContext) -> Iterator[Problem]:
    for path, secret in _secrets(context.config):
        node = find(context.root, path)[0]
        if not secret or path in context.referenced or not isinstance(node, ScalarNode):
            continue
        if _SHELL_NAME.fullmatch(node.text):
            # The name is shown only where it cannot be a password.
            meant = node.text[1:] if _VARIABLE.fullmatch(node.text) else "VAR"
            yield context.at_value(path, f'this is sent as it stands, $ and all: a reference is "${{{meant}}}"')
        elif path[-2] != "headers":
            yield context.at_value(path, 'the secret is written in the table itself; write "${VAR}" or "${file:PATH}"')


def _shared_key(context: CheckContext) -> Iterator[Problem]:
    vendors, defaults = context.config.vendors, context.config.defaults
    without = [
        name
        for name, vendor in vendors.items()
        if vendor.api_key is None
        and vendor.credentials is None
        and not _is_faulty(context, ("vendors", name, "api_key"))
    ]
    for key, shared in (("api_key", defaults.api_key), ("credentials", defaults.credentials)):
        if shared and len(without) > 1:
            words = "this key is" if key == "api_key" else "these credentials are"
            named = ", ".join(map(shown, without))
            yield context.at_value(("defaults", key), f"{words} sent to {len(without)} vendors: {named}")


def _idle_weights(context: CheckContext) -> Iterator[Problem]:
    for path, policy, members in choices(context.config):
        for at, member in members:
            if _is_idle(policy, member) and not _is_faulty(context, (*path[:-1], "policy")):
                yield context.at_key((*at, "weight"), f"has no effect under policy {policy}")


def _idle_affinity(context: CheckContext) -> Iterator[Problem]:
    """Warn of an affinity that is written at a name whose members its policy orders as they are written."""
    for path, policy, members in choices(context.config):
        at = path[:-1]
        written = _written_affinity(context.config, at)
        if policy != "priority" or len(members) < 2 or written is None or written.mode == "off" or written.send:
            continue
        if not _is_faulty(context, (*at, "policy")):
            yield context.at_key((*at, "affinity"), "has no effect under policy priority")


def _written_affinity(config: GatewayConfig, at: Path) -> AffinitySection | None:
    """Return the affinity that is written at a model, a route, or a team's own route."""
    if at[0] == "models":
        return config.models[str(at[1])].affinity
    routes = config.routes if at[0] == "routes" else config.teams[str(at[1])].routes
    return routes[str(at[-1])].affinity


def _capped_cooldowns(context: CheckContext) -> Iterator[Problem]:
    seen = set()
    key = "circuit_breaker.longest_cooldown"
    for inheritance in inheritances(context.config):
        cooldown = inheritance.first("circuit_breaker.cooldown", lambda s: s.circuit_breaker.cooldown)
        longest = inheritance.first(key, lambda s: s.circuit_breaker.longest_cooldown)
        path = inheritance.origins.get(key, ())
        if cooldown is not None and longest is not None and longest < cooldown and path not in seen:
            seen.add(path)
            yield context.at_value(path, f"is below cooldown ({duration(cooldown)}), which is cut to it")


def _idle_white_space(context: CheckContext) -> Iterator[Problem]:
    """Warn of a `keep_alive_json` whose deployments all have `keep_alive: off`."""
    used: dict[Path, bool] = {}
    key = "timeouts.keep_alive_json"
    for inheritance in inheritances(context.config):
        asked = inheritance.first(key, lambda s: s.timeouts.keep_alive_json)
        every = inheritance.first("timeouts.keep_alive", lambda s: s.timeouts.keep_alive)
        if asked:
            path = inheritance.origins[key]
            used[path] = used.get(path, False) or every != "off"
    for path in (path for path, has_effect in used.items() if not has_effect):
        yield context.at_value(path, "has no effect: keep_alive is off")


def _is_faulty(context: CheckContext, path: Path) -> bool:
    return dotted(path) in context.faulty


def _is_idle(policy: str, member: DeploymentSection | RouteTarget) -> bool:
    """Return whether a weight is written that the policy ignores; every policy but priority heeds a weight of 0."""
    if policy in ("weighted", "least_busy") or "weight" not in member.model_fields_set:
        return False
    return policy == "priority" or member.weight > 0


def _nothing_to_ask_for(context: CheckContext) -> Iterator[Problem]:
    if not context.names.models and not context.faulty:
        yield context.at_key(("models",), "no models: every request would be answered with 404")
    for name, team in context.config.teams.items():
        if not team.models and not team.routes:
            yield context.at_key(("teams", name), "this team may ask for nothing: list models, or write routes")


_EMBEDS: Final = re.compile(r"embed|(?:^|[/_.-])(?:bge|gte|e5|voyage|text2vec)-|minilm", re.IGNORECASE)
"""Names of models that make vectors, as far as names tell."""


def _mixed_spaces(context: CheckContext) -> Iterator[Problem]:
    """Warn of routes over several models whose names say that they make vectors; requests for vectors are refused
    there, whatever other models the route has. Models of other names may make vectors too, which is not known here."""
    for at, routes in route_maps(context.config):
        for name, route in routes.items():
            named = dict.fromkeys(_model_named(context, member.target) for member in route.targets)
            models = [*filter(_EMBEDS.search, named)]
            if len(models) > 1 and not route.same_space:
                listed = " and ".join(map(shown, models))
                message = f"embeddings are refused here: {listed} need not share a space; if they do, same_space: true"
                yield context.at_key((*at, name), message)


def _settings_behind_choices(context: CheckContext) -> Iterator[Problem]:
    """Warn of settings of a route that do not hold for requests by the name of another route, which chooses between it
    and other targets."""
    for at, own in route_maps(context.config):
        routes = {**context.config.routes, **own}
        for name, route in own.items():
            for index, member in enumerate(route.targets if len(route.targets) > 1 else ()):
                hidden = _settings_of(member.target, routes) - route.model_fields_set
                if hidden:
                    listed = " and ".join(each for each in ROUTE_SETTINGS if each in hidden)
                    message = f"{listed} of this route: without effect here, where other targets stand beside it"
                    meant = f"{message}; if meant for {shown(name)}, write it there"
                    yield context.at_value((*at, name, "targets", index, "target"), meant)


def _settings_of(name: str, routes: Mapping[str, RouteSection]) -> Set[str]:
    """Return the names of the settings that are written at a route, or at the route that it stands for. A circle of
    routes is an error of its own, so that it ends here."""
    written: set[str] = set()
    passed: set[str] = set()
    while name in routes and name not in passed:
        passed.add(name)
        written |= routes[name].model_fields_set.intersection(ROUTE_SETTINGS)
        if len(routes[name].targets) > 1:
            break
        name = routes[name].targets[0].target
    return written


def _replaced_fallbacks(context: CheckContext) -> Iterator[Problem]:
    """Warn of `fallbacks` of a route that replace the fallbacks of its only target and lack one of their kinds. An
    empty mapping or list turns them off on purpose."""
    for at, own in route_maps(context.config):
        routes = {**context.config.routes, **own}
        for name, route in own.items():
            written = route.fallbacks.model_fields_set
            if not written or len(route.targets) > 1:
                continue
            source, inherited = _fallbacks_of(route.targets[0].target, routes)
            lacking = [(kind, names) for kind, names in inherited if names and kind not in written]
            lost = [f"{kind} ({', '.join(map(shown, names))})" for kind, names in lacking]
            if lost:
                hold = "does" if len(lost) == 1 else "do"
                message = f"replaces all fallbacks of {shown(source)}: its {' and '.join(lost)} {hold} not hold here"
                yield context.at_key((*at, name, "fallbacks"), f"{message}; write it here too, or an empty list")


def _fallbacks_of(name: str, routes: Mapping[str, RouteSection]) -> tuple[str, FallbacksSection]:
    """Return the fallbacks that hold for a name, and the route that has them; no fallbacks for a circle."""
    passed: set[str] = set()
    while name in routes and name not in passed:
        passed.add(name)
        if "fallbacks" in routes[name].model_fields_set:
            return name, routes[name].fallbacks
        if len(routes[name].targets) > 1:
            break
        name = routes[name].targets[0].target
    return name, FallbacksSection()


def _model_named(context: CheckContext, target: str) -> str:
    """Return the model of a route's target, which may be one of its deployments."""
    model = target.rpartition("/")[0]
    return model if target not in context.config.models and model in context.config.models else target


def _nothing_to_discover(context: CheckContext) -> Iterator[Problem]:
    for name, vendor in context.config.vendors.items():
        if vendor.discover and f"{name}/*" not in context.config.models:
            message = f"has no effect: what is discovered is listed under {name}/*, which models does not have"
            yield context.at_value(("vendors", name, "discover"), message)


_CHECKS: Final[tuple[TableCheck, ...]] = (
    _literal_secrets,
    _shared_key,
    _idle_weights,
    _idle_affinity,
    doubtful_hedges,
    _capped_cooldowns,
    _idle_white_space,
    _nothing_to_ask_for,
    _mixed_spaces,
    _settings_behind_choices,
    _replaced_fallbacks,
    _nothing_to_discover,
    doubtful_collectors,
)
