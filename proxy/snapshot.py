"""The routing table compiled: everything a request needs to know, immutable, built whole or not at all.

Never holds mutable state, awaits, or a configuration model below `build_snapshot`.
"""

import ipaddress
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType
from urllib.parse import urlsplit

from config.loader import ConfigError, Loaded, Problem
from config.schema import GatewayConfig
from config.settings import Settings, effective
from providers.auth import Credential
from providers.dialect import Target, Timeouts
from providers.profiles import Profile, load_profiles
from providers.registry import DIALECTS

DEFAULT_DEPLOYMENT = "default"
WILDCARD = "*"


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """One row of `models`: its targets in the order of the table, and how to choose among them."""

    name: str
    policy: str
    targets: tuple[Target, ...]
    window: int | None


@dataclass(frozen=True, slots=True)
class RouteMember:
    """One target of a route: a model string, or another route's name."""

    name: str
    weight: int


@dataclass(frozen=True, slots=True, eq=False)
class Route:
    """A name over models."""

    name: str
    policy: str
    members: tuple[RouteMember, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Team:
    """Who may ask for what. `allow` are patterns over names, `routes` the team's own meanings."""

    name: str
    allow: tuple[str, ...]
    routes: Mapping[str, Route]


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """One version of the table. `keys` maps the SHA-256 of a key, in hex, to its team; empty means open to everyone.

    `wildcards` maps a vendor to its `vendor/*` row, whose targets stand for any model of that vendor.
    `default_vendors` and `default_models` are by surface name.
    """

    digest: str
    models: Mapping[str, Model]
    wildcards: Mapping[str, Model]
    routes: Mapping[str, Route]
    teams: Mapping[str, Team]
    keys: Mapping[str, Team]
    default_vendors: Mapping[str, str]
    default_models: Mapping[str, str]

    def targets(self) -> Iterator[Target]:
        """Every deployment of the table, wildcard rows included."""
        for model in (*self.models.values(), *self.wildcards.values()):
            yield from model.targets


ANYONE = Team("anonymous", (WILDCARD,), MappingProxyType({}))
"""Who asks where the table has no teams."""


def build_snapshot(loaded: Loaded) -> Snapshot:
    """Join what the operator wrote with what the vendors' rows say. Raises ConfigError with every problem found."""
    config = loaded.config
    builder = _Builder(loaded, load_profiles())
    models: dict[str, Model] = {}
    wildcards: dict[str, Model] = {}
    for name in config.models:
        model = builder.model(name)
        vendor, _, rest = name.partition("/")
        if rest == WILDCARD:
            wildcards[vendor] = model
        else:
            models[name] = model
    if builder.problems:
        raise ConfigError(tuple(builder.problems))
    routes = {name: _route(name, route.policy, route.targets) for name, route in config.routes.items()}
    teams = {name: _team(config, name) for name in config.teams}
    keys = {key.removeprefix("sha256:"): teams[name] for name, team in config.teams.items() for key in team.keys}
    surfaces = config.server.surfaces
    return Snapshot(
        digest=loaded.digest,
        models=MappingProxyType(models),
        wildcards=MappingProxyType(wildcards),
        routes=MappingProxyType(routes),
        teams=MappingProxyType(teams),
        keys=MappingProxyType(keys),
        default_vendors=MappingProxyType({k: s.default_vendor for k, s in surfaces.items() if s.default_vendor}),
        default_models=MappingProxyType({k: s.default_model for k, s in surfaces.items() if s.default_model}),
    )


def _route(name: str, policy: str, targets: Mapping[str, int]) -> Route:
    return Route(name, policy, tuple(RouteMember(target, weight) for target, weight in targets.items()))


@lru_cache(maxsize=4096)
def expand(model: Model, name: str) -> Model:
    """A wildcard row made concrete for one model name of its vendor (`name` without the vendor).

    Cached, because dialects compile a target once and clients repeat names; bounded, because clients choose them.
    """
    targets = tuple(replace(target, model=name, upstream_model=name) for target in model.targets)
    return Model(f"{model.targets[0].vendor}/{name}", model.policy, targets, model.window)
