"""The routing table compiled: everything a request needs to know, immutable, built whole or not at all.

Never holds mutable state, awaits, or a configuration model below `build_snapshot`.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Literal

from config import schema as config_schema
from config.loader import Loaded
from config.problems import ConfigError, Problem
from config.server import SurfaceName, SurfaceSettings
from config.settings import IMPLICIT_DEPLOYMENT, effective
from providers.dialect import Target
from providers.failure import FailureKind
from providers.permits import NO_MEDIA, Media
from providers.profiles import load_profiles
from proxy.record import NO_TEAM
from proxy.surfaces.registry import SURFACES
from proxy.targets import make_target, unknown_profile

WILDCARD = "*"

FALLBACKS: Mapping[FailureKind, str] = {
    FailureKind.CONTEXT_LENGTH: "context_window",
    FailureKind.CONTENT_FILTER: "content_filter",
}
"""The failures that a route has lists of names for, and what the table calls them."""

BUILT_IN_VENDORS: dict[str, str] = {row.name: row.default_vendor for row in SURFACES if row.default_vendor}
"""Whose a bare model name is on a surface, when the table does not say."""


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """One row of `models`: its targets in the order of the table, and how to choose among them."""

    name: str
    policy: str
    targets: tuple[Target, ...]


@dataclass(frozen=True, slots=True)
class RouteMember:
    """One target of a route: a model string, or another route's name."""

    name: str
    weight: int


@dataclass(frozen=True, slots=True, eq=False)
class Route:
    """A name over models. `fallbacks` are the names to turn to after a failure of a kind."""

    name: str
    policy: str
    members: tuple[RouteMember, ...]
    fallbacks: Mapping[FailureKind, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Team:
    """Who may ask for what. `allow` are patterns over names, `routes` the team's own meanings.

    `on_unsupported`, `context_behavior` and `media` are the team's own word where the deployment's would count (None =
    the deployment's). `extra_params` and `extra_headers` say whether the team's clients may send
    `inference_extra_params` and `inference_extra_headers`.
    """

    name: str
    allow: tuple[str, ...]
    routes: Mapping[str, Route]
    on_unsupported: Literal["error", "drop"] | None = None
    context_behavior: Literal["truncate", "error"] | None = None
    extra_params: bool = True
    extra_headers: bool = True
    media: Media = NO_MEDIA

    @property
    def tenant(self) -> str:
        """Its name where there are several; empty for the one that everybody is in a table without teams."""
        return "" if self is ANYONE else self.name


@dataclass(frozen=True, slots=True)
class Key:
    """A team's key, until `ends`, in unix seconds; infinity where the table does not say. `name` is for the log, empty
    where it has none."""

    team: Team
    ends: float = math.inf
    name: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """One version of the table. `keys` holds every team's by the SHA-256 in hex; empty means open to everyone.

    `wildcards` maps a vendor to its `vendor/*` row, whose targets stand for any model of that vendor.
    `default_vendors` and `default_models` are by surface name.
    """

    digest: str
    models: Mapping[str, Model]
    wildcards: Mapping[str, Model]
    routes: Mapping[str, Route]
    teams: Mapping[str, Team]
    keys: Mapping[str, Key]
    default_vendors: Mapping[str, str]
    default_models: Mapping[str, str]

    def targets(self) -> Iterator[Target]:
        """Every deployment of the table, wildcard rows included."""
        for model in (*self.models.values(), *self.wildcards.values()):
            yield from model.targets


ANYONE = Team(NO_TEAM, (WILDCARD,), MappingProxyType({}))
"""Who asks where the table has no teams."""

NO_KEY = Key(ANYONE)
"""What everybody asks with there."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """A table joined with what the vendors' rows say; with problems, without the deployments that have them."""

    snapshot: Snapshot
    problems: tuple[Problem, ...]


def build_snapshot(loaded: Loaded) -> Snapshot:
    """Join what the operator wrote with what the vendors' rows say. Raises ConfigError with every problem found."""
    compiled = compile_table(loaded)
    if compiled.problems:
        raise ConfigError(compiled.problems)
    return compiled.snapshot


def compile_table(loaded: Loaded) -> Compiled:
    """The same, as far as the table is sound."""
    config = loaded.config
    problems = [
        unknown_profile(name, profile, loaded)
        for name, vendor in config.vendors.items()
        if (profile := vendor.profile or name) not in load_profiles()
    ]
    # A row whose vendor is missing has been reported by the loader.
    known = [name for name in config.models if _vendor(name) in config.vendors]
    every = [_model(loaded, name, problems) for name in known]
    compiled = {model.name: model for model in every if model.targets}
    teams = {name: _team(name, team) for name, team in config.teams.items()}
    surfaces = config.server.surfaces
    snapshot = Snapshot(
        digest=loaded.digest,
        models=MappingProxyType({name: model for name, model in compiled.items() if not _is_wildcard(name)}),
        wildcards=MappingProxyType({_vendor(name): model for name, model in compiled.items() if _is_wildcard(name)}),
        routes=MappingProxyType(_routes(config.routes)),
        teams=MappingProxyType(teams),
        keys=MappingProxyType(
            {
                own.key.removeprefix("sha256:"): Key(teams[name], own.ends, own.name or "")
                for name, team in config.teams.items()
                for own in team.keys
            }
        ),
        default_vendors=MappingProxyType(BUILT_IN_VENDORS | _given(surfaces, lambda surface: surface.default_vendor)),
        default_models=MappingProxyType(_given(surfaces, lambda surface: surface.default_model)),
    )
    return Compiled(snapshot, tuple(sorted(problems)))


def _given(
    surfaces: Mapping[SurfaceName, SurfaceSettings],
    read: Callable[[SurfaceSettings], str | None],
) -> dict[str, str]:
    return {name: value for name, settings in surfaces.items() if (value := read(settings))}


def _vendor(name: str) -> str:
    return name.partition("/")[0]


def _is_wildcard(name: str) -> bool:
    return name.partition("/")[2] == WILDCARD


def _model(loaded: Loaded, name: str, problems: list[Problem]) -> Model:
    model = loaded.config.models[name]
    targets: list[Target] = []
    for deployment in model.deployments or (IMPLICIT_DEPLOYMENT,):
        settings = effective(loaded.config, _vendor(name), name, deployment)
        made = make_target(name, deployment, settings, loaded)
        if isinstance(made, Target):
            targets.append(made)
        else:
            problems.extend(problem for problem in made if problem not in problems)
    return Model(name, model.policy, tuple(targets))


def _team(name: str, team: config_schema.Team) -> Team:
    schemes = team.media.schemes
    return Team(
        name,
        tuple(team.models),
        MappingProxyType(_routes(team.routes)),
        on_unsupported=team.on_unsupported,
        context_behavior=team.context_length_exceeded_behavior,
        extra_params=team.inference_extra_params,
        extra_headers=team.inference_extra_headers,
        media=Media(None if schemes is None else frozenset(schemes), team.media.allow_private),
    )


def _routes(routes: Mapping[str, config_schema.Route]) -> dict[str, Route]:
    return {
        name: Route(
            name,
            route.policy,
            tuple(RouteMember(member.target, member.weight) for member in route.targets),
            MappingProxyType(_fallbacks(route.fallbacks)),
        )
        for name, route in routes.items()
    }


def _fallbacks(lists: config_schema.Fallbacks) -> dict[FailureKind, tuple[str, ...]]:
    return {kind: tuple(names) for kind, key in FALLBACKS.items() if (names := getattr(lists, key))}


@lru_cache(maxsize=4096)
def expand(model: Model, name: str) -> Model:
    """A wildcard row made concrete for one model name of its vendor (`name` without the vendor).

    Cached, because dialects compile a target once and clients repeat names; bounded, because clients choose them.
    """
    targets = tuple(replace(target, model=name, upstream_model=name) for target in model.targets)
    return Model(f"{model.targets[0].vendor}/{name}", model.policy, targets)
