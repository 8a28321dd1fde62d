"""What works but is hardly meant: secrets written out, keys shared by vendors, weights and teams without effect.

Never anything that makes a table unusable.
"""

import re
from collections.abc import Iterator
from typing import Final

from pydantic import SecretStr

from config.problems import Path, Problem, dotted, shown
from config.schema import Deployment, GatewayConfig, RouteTarget
from config.semantics import Check, Table, inheritances, levels, route_maps
from config.tree import ScalarNode, find

_SHELL_NAME: Final = re.compile(r"\$[A-Z_][A-Z0-9_]*")
_VARIABLE: Final = re.compile(r"\$[A-Z]+(_[A-Z]+)+")
"""What the shell would replace, and what nobody takes for a password."""


def semantic_warnings(table: Table) -> tuple[Problem, ...]:
    """Everything that works but is hardly meant."""
    return tuple(problem for check in _WARNINGS for problem in check(table))


def _secrets(config: GatewayConfig) -> Iterator[tuple[Path, SecretStr | None]]:
    for path, level in levels(config):
        yield (*path, "api_key"), level.api_key
        yield from (((*path, "headers", name), value) for name, value in level.headers.items())
        if level.credentials is not None and level.credentials.oidc is not None:
            yield (*path, "credentials", "oidc", "client_secret"), level.credentials.oidc.client_secret
    yield ("server", "admin", "token"), config.server.admin.token


def _literal_secrets(table: Table) -> Iterator[Problem]:
    for path, secret in _secrets(table.config):
        node = find(table.root, path)[0]
        if not secret or path in table.referenced or not isinstance(node, ScalarNode):
            continue
        if _SHELL_NAME.fullmatch(node.text):
            # The name is shown only where it cannot be a password.
            meant = node.text[1:] if _VARIABLE.fullmatch(node.text) else "VAR"
            yield table.at_value(path, f'this is sent as it stands, $ and all: a reference is "${{{meant}}}"')
        elif path[-2] != "headers":
            yield table.at_value(path, 'the secret is written in the table itself; write "${VAR}" or "${file:PATH}"')


def _shared_key(table: Table) -> Iterator[Problem]:
    vendors, defaults = table.config.vendors, table.config.defaults
    without = [
        name
        for name, vendor in vendors.items()
        if vendor.api_key is None and vendor.credentials is None and not _is_faulty(table, ("vendors", name, "api_key"))
    ]
    for key, shared in (("api_key", defaults.api_key), ("credentials", defaults.credentials)):
        if shared and len(without) > 1:
            words = "this key is" if key == "api_key" else "these credentials are"
            named = ", ".join(map(shown, without))
            yield table.at_value(("defaults", key), f"{words} sent to {len(without)} vendors: {named}")


def _idle_weights(table: Table) -> Iterator[Problem]:
    for key, model in table.config.models.items():
        for name, deployment in model.deployments.items():
            if _is_idle(model.policy, deployment) and not _is_faulty(table, ("models", key, "policy")):
                path: Path = ("models", key, "deployments", name, "weight")
                yield table.at_key(path, f"has no effect under policy {model.policy}")
    for at, routes in route_maps(table.config):
        for name, route in routes.items():
            for index, target in enumerate(route.targets):
                if _is_idle(route.policy, target) and not _is_faulty(table, (*at, name, "policy")):
                    path = (*at, name, "targets", index, "weight")
                    yield table.at_key(path, f"has no effect under policy {route.policy}")


def _capped_cooldowns(table: Table) -> Iterator[Problem]:
    seen = set()
    key = "circuit_breaker.longest_cooldown"
    for inheritance in inheritances(table.config):
        cooldown = inheritance.first("circuit_breaker.cooldown", lambda s: s.circuit_breaker.cooldown)
        longest = inheritance.first(key, lambda s: s.circuit_breaker.longest_cooldown)
        path = inheritance.origins.get(key, ())
        if cooldown is not None and longest is not None and longest < cooldown and path not in seen:
            seen.add(path)
            yield table.at_value(path, f"is below cooldown ({cooldown:g}s), which is cut to it")


def _is_faulty(table: Table, path: Path) -> bool:
    return dotted(path) in table.faulty


def _is_idle(policy: str, member: Deployment | RouteTarget) -> bool:
    """Whether a weight is written where the policy does not ask for it; most ask at least whether it is 0."""
    if policy in ("weighted", "least_busy") or "weight" not in member.model_fields_set:
        return False
    return policy == "priority" or member.weight > 0


def _nothing_to_ask_for(table: Table) -> Iterator[Problem]:
    if not table.names.models and not table.faulty:
        yield table.at_key(("models",), "no models: every request would be answered with 404")
    for name, team in table.config.teams.items():
        if not team.models and not team.routes:
            yield table.at_key(("teams", name), "this team may ask for nothing: list models, or write routes")


_WARNINGS: Final[tuple[Check, ...]] = (
    _literal_secrets,
    _shared_key,
    _idle_weights,
    _capped_cooldowns,
    _nothing_to_ask_for,
)
