"""Warn of settings that are valid but probably not intended.

- Secrets that are written in the config file.
- An API key that is sent to several vendors.
- Weights, cooldowns, discovery and teams without effect.
- Addresses that are probably no collector of OpenTelemetry.
- A `hedge` at a name with one deployment, which leaves no deployment for a second attempt.
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
    ConfigCheck,
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
_PRIVATE_SUFFIXES: Final = (".internal", ".local", ".lan", ".localdomain", ".svc", ".cluster.local")
"""Endings of names that the public DNS does not have."""


def doubtful_collectors(context: CheckContext) -> Iterator[Problem]:
    """Yield a warning for each address that is probably no collector."""
    server = context.config.server
    payloads = None if server.payload_log is None else server.payload_log.otlp
    for path, section in ((("server", "tracing"), server.tracing), (("server", "payload_log", "otlp"), payloads)):
        if section is not None:
            at: Path = (*path, "endpoint")
            yield from (context.at_value(at, doubt) for doubt in _doubts_about(section.endpoint))


def _doubts_about(endpoint: str) -> Iterator[str]:
    parts = urlsplit(endpoint)
    signal = next((each for each in _SIGNALS if parts.path.rstrip("/").endswith(each)), None)
    if signal is not None:
        yield f"{signal} is appended to this address: leave it out"
    if parts.port == _GRPC_PORT:
        yield "4317 is the port of OTLP over gRPC; the gateway sends OTLP over HTTP, whose port is 4318"
    if parts.scheme == "http" and _is_public(parts.hostname or ""):
        yield "plain http sends headers and exported data in the clear: write https"


def _is_public(host: str) -> bool:
    """Return whether a host is on the internet, judged by its text. Names without a dot belong to the operator's own
    network."""
    network, name = reach(host), host.rstrip(".").lower()
    return network == "public" or (network == "unknown" and "." in name and not name.endswith(_PRIVATE_SUFFIXES))


_MOST_NESTED_ROUTES = 16
"""The most routes within routes that are followed. Another check reports circles."""


def doubtful_hedges(context: CheckContext) -> Iterator[Problem]:
    """Yield a warning for each `hedge` at a name with one deployment."""
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
            count = _reachable_deployments(context, own, str(at[-1]), _MOST_NESTED_ROUTES)
        if count < 2:
            yield context.at_key((*at, "hedge"), "has no effect: the name leads to one deployment")


def _reachable_deployments(context: CheckContext, own: Mapping[str, RouteSection], name: str, steps: int) -> int:
    """Return how many deployments a name leads to, as far as is known: 1, or 2 for two and more. A team's own routes
    come first."""
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
    return min(2, sum(_reachable_deployments(context, own, each, steps - 1) for each in names))


_SHELL_NAME: Final = re.compile(r"\$[A-Z_][A-Z0-9_]*")
_VARIABLE: Final = re.compile(r"\$[A-Z]+(_[A-Z]+)+")
"""A reference in shell form whose name is certainly not a password: words in capitals joined by `_`."""


def doubtful_settings(context: CheckContext) -> tuple[Problem, ...]:
    """Return every warning about settings."""
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
            # The name is shown only if it cannot be a password.
            meant = node.text[1:] if _VARIABLE.fullmatch(node.text) else "VAR"
            yield context.at_value(
                path, f'this text is sent unchanged, with the $: a reference is written "${{{meant}}}"'
            )
        elif path[-2] != "headers":
            yield context.at_value(
                path, 'the secret is written in the config file itself; write "${VAR}" or "${file:PATH}"'
            )


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
    """Warn of an affinity at a name with the policy priority, under which it has no effect."""
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
            yield context.at_value(path, f"is below cooldown ({duration(cooldown)}), which is reduced to it")


def _idle_white_space(context: CheckContext) -> Iterator[Problem]:
    """Warn of a `keep_alive_json` if all its deployments have `keep_alive: off`."""
    used: dict[Path, bool] = {}
    key = "timeouts.keep_alive_json"
    for inheritance in inheritances(context.config):
        is_on = inheritance.first(key, lambda s: s.timeouts.keep_alive_json)
        interval = inheritance.first("timeouts.keep_alive", lambda s: s.timeouts.keep_alive)
        if is_on:
            path = inheritance.origins[key]
            used[path] = used.get(path, False) or interval != "off"
    for path in (path for path, has_effect in used.items() if not has_effect):
        yield context.at_value(path, "has no effect: keep_alive is off")


def _is_faulty(context: CheckContext, path: Path) -> bool:
    return dotted(path) in context.faulty


def _is_idle(policy: str, member: DeploymentSection | RouteTarget) -> bool:
    """Return whether a weight is written that the policy ignores. Every policy but priority observes a weight of 0."""
    if policy in ("weighted", "least_busy") or "weight" not in member.model_fields_set:
        return False
    return policy == "priority" or member.weight > 0


def _no_names(context: CheckContext) -> Iterator[Problem]:
    if not context.names.models and not context.faulty:
        yield context.at_key(("models",), "no models: every request would get 404")
    for name, team in context.config.teams.items():
        if not team.models and not team.routes:
            yield context.at_key(("teams", name), "this team may request no names: list models, or write routes")


_EMBEDDING_MODEL: Final = re.compile(r"embed|(?:^|[/_.-])(?:bge|gte|e5|voyage|text2vec)-|minilm", re.IGNORECASE)
"""Names of models that make embeddings, as far as a name shows it."""


def _mixed_spaces(context: CheckContext) -> Iterator[Problem]:
    """Warn of routes over several models that, by their names, make embeddings: such routes refuse requests for
    embeddings. Models with other names may make embeddings too; that is not known here."""
    for at, routes in route_maps(context.config):
        for name, route in routes.items():
            named = dict.fromkeys(_model_named(context, member.target) for member in route.targets)
            models = [*filter(_EMBEDDING_MODEL.search, named)]
            if len(models) > 1 and not route.same_space:
                listed = " and ".join(map(shown, models))
                reason = f"{listed} may have different vector spaces"
                message = f"embeddings are refused here: {reason}; if they share one, write same_space: true"
                yield context.at_key((*at, name), message)


def _settings_behind_choices(context: CheckContext) -> Iterator[Problem]:
    """Warn of settings of a route that do not apply if it is requested through another route with several targets."""
    for at, own in route_maps(context.config):
        routes = {**context.config.routes, **own}
        for name, route in own.items():
            for index, member in enumerate(route.targets if len(route.targets) > 1 else ()):
                hidden = _settings_of(member.target, routes) - route.model_fields_set
                if hidden:
                    listed = " and ".join(each for each in ROUTE_SETTINGS if each in hidden)
                    message = f"{listed} of this route: without effect here, since there are other targets"
                    meant = f"{message}; if intended for {shown(name)}, write it there"
                    yield context.at_value((*at, name, "targets", index, "target"), meant)


def _settings_of(name: str, routes: Mapping[str, RouteSection]) -> Set[str]:
    """Return the names of the settings that are written at a route, or at the routes that it leads to as its only
    target. The search ends at a circle of routes, which another check reports."""
    written: set[str] = set()
    visited: set[str] = set()
    while name in routes and name not in visited:
        visited.add(name)
        written |= routes[name].model_fields_set.intersection(ROUTE_SETTINGS)
        if len(routes[name].targets) > 1:
            break
        name = routes[name].targets[0].target
    return written


def _replaced_fallbacks(context: CheckContext) -> Iterator[Problem]:
    """Warn of a route's `fallbacks` that replace the fallbacks of its only target and lack one of their kinds. An empty
    mapping or list is no reason to warn: it turns fallbacks off explicitly."""
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
                verb = "does" if len(lost) == 1 else "do"
                message = f"replaces all fallbacks of {shown(source)}: its {' and '.join(lost)} {verb} not apply here"
                yield context.at_key((*at, name, "fallbacks"), f"{message}; write it here too, or an empty list")


def _fallbacks_of(name: str, routes: Mapping[str, RouteSection]) -> tuple[str, FallbacksSection]:
    """Return the fallbacks that apply to a name, and the route that has them. Return empty fallbacks for a circle."""
    visited: set[str] = set()
    while name in routes and name not in visited:
        visited.add(name)
        if "fallbacks" in routes[name].model_fields_set:
            return name, routes[name].fallbacks
        if len(routes[name].targets) > 1:
            break
        name = routes[name].targets[0].target
    return name, FallbacksSection()


def _model_named(context: CheckContext, target: str) -> str:
    """Return the model of a route's target. The target may be one of the model's deployments."""
    model = target.rpartition("/")[0]
    return model if target not in context.config.models and model in context.config.models else target


def _nothing_to_discover(context: CheckContext) -> Iterator[Problem]:
    for name, vendor in context.config.vendors.items():
        if vendor.discover and f"{name}/*" not in context.config.models:
            message = f"has no effect: discovered models are listed under {name}/*, which is missing in models"
            yield context.at_value(("vendors", name, "discover"), message)


_CHECKS: Final[tuple[ConfigCheck, ...]] = (
    _literal_secrets,
    _shared_key,
    _idle_weights,
    _idle_affinity,
    doubtful_hedges,
    _capped_cooldowns,
    _idle_white_space,
    _no_names,
    _mixed_spaces,
    _settings_behind_choices,
    _replaced_fallbacks,
    _nothing_to_discover,
    doubtful_collectors,
)
