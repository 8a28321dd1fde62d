"""The compiled configuration, immutable and built as a whole or not at all; and the holder of the current one."""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, tzinfo
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from config.allowed_names import covers
from config.load_config import Loaded
from config.problem import ConfigError, Path, Problem
from config.sections.route_section import RouteSection
from config.sections.server_section import SurfaceName, SurfaceSettings
from config.sections.team_section import TeamKey, TeamSection
from config.table.inheritance import IMPLICIT_DEPLOYMENT, effective_settings
from config.table.table_schema import GatewayConfig
from config.time_zones import zone_named
from providers.list_prices.list_prices import NO_LIST_PRICES, ListPrices
from providers.profiles.load_profiles import load_profiles
from providers.target import NO_MEDIA, Media, Target
from proxy.hedging.hedge_rules import HedgeRules, model_hedge
from proxy.limits.limit import ALL, UNLIMITED, EachUser, Limits, ScopeBudget, TeamLimits
from proxy.request_record import NO_TEAM
from proxy.routing.affinity_rules import BUILT_IN, OFF, AffinityRules, member_group, model_affinity, under_policy
from proxy.routing.build_target import make_target, unknown_profile
from proxy.routing.compile_limits import NO_LIMITS, LimitCompiler, ScopeLimits, TargetLimits, compile_each_user
from proxy.routing.route_settings import CacheRules, RouteSettings, model_cache, route_settings
from proxy.routing.session_affinity import MemberGroup
from proxy.surfaces.registry import SURFACES
from proxy.surfaces.surface import REASONING_FIELDS

if TYPE_CHECKING:
    from proxy.routing.resolve_model import CachedNames

WILDCARD = "*"

BUILT_IN_VENDORS: dict[str, str] = {
    surface.name: surface.default_vendor for surface in SURFACES if surface.default_vendor
}
"""The default vendor of model names without a vendor, by surface. The configuration may set another one."""

_NO_TAGS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """One entry of `models`: its targets in the configured order, the policy that orders them, the rules of its
    response cache (`None`: no cache), and whether the list of models names it.

    `affinity` has the configured rules for conversations, `placing` the rules that apply under the policy. `group` has
    the targets that share the conversations (`None`: no affinity). `hedge` has the rules of second attempts.
    """

    name: str
    policy: str
    targets: tuple[Target, ...]
    cache: CacheRules | None = None
    listed: bool = True
    affinity: AffinityRules = BUILT_IN
    placing: AffinityRules = OFF
    group: MemberGroup | None = None
    hedge: HedgeRules | None = None


@dataclass(frozen=True, slots=True)
class RouteMember:
    """One target of a route: a model string, or another route's name."""

    name: str
    weight: int


@dataclass(frozen=True, slots=True, eq=False)
class Route:
    """A route: its members, the policy that orders the members, and whether the list of models names the route.
    `own_settings` has its configured settings; `settings_of` also follows a route with one member. `placing` and
    `group` have the same meaning as in Model."""

    name: str
    policy: str
    members: tuple[RouteMember, ...]
    own_settings: RouteSettings = field(default_factory=RouteSettings)
    listed: bool = True
    placing: AffinityRules = OFF
    group: MemberGroup | None = None


_AS_ROUTES: Mapping[str, Route] = MappingProxyType({})
"""The marker for "the routes that may be requested" as the default of `inner_routes`."""


@dataclass(frozen=True, slots=True, eq=False)
class Team:
    """A team and its rights, or the rights of one key of the team. `allow` has patterns of the names that clients may
    request. `routes` has the team's own routes that clients may request. `inner_routes` has all of the team's own
    routes: if a target of a route has the name of one of them, the team's own route is used.

    `on_unsupported`, `context_length_exceeded_behavior` and `media` override the settings of deployments; `None` keeps
    the deployment's setting. `extra_params` and `extra_headers` are true if the team's clients may send
    `inference_extra_params` and `inference_extra_headers`. All keys of the team share `limits` and the ledger's `tags`.
    """

    name: str
    allow: tuple[str, ...]
    routes: Mapping[str, Route]
    on_unsupported: Literal["error", "drop"] | None = None
    context_length_exceeded_behavior: Literal["truncate", "error"] | None = None
    extra_params: bool = True
    extra_headers: bool = True
    media: Media = NO_MEDIA
    limits: TeamLimits = NO_LIMITS
    tags: Mapping[str, str] = field(default_factory=lambda: _NO_TAGS)
    inner_routes: Mapping[str, Route] = field(default_factory=lambda: _AS_ROUTES)
    tenant: str = field(init=False)
    """The team's name. It is empty for the only team of a configuration without teams; no configured team can have the
    empty name."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "tenant", "" if self.name == NO_TEAM else self.name)
        if self.inner_routes is _AS_ROUTES:
            object.__setattr__(self, "inner_routes", self.routes)


@dataclass(frozen=True, slots=True, eq=False)
class Key:
    """A team's key. It expires at `ends` (Unix seconds; infinity: never). `name` is for the log, and may be empty.

    `team` has the rights of requests with this key. If the key's own `allow` list narrows the team's rights, `team` is
    a separate object with the same name. `label` is the name, or the first 8 hex digits of the key's digest if the key
    has no name. The scope of `limits` is `key TEAM/LABEL`.
    """

    team: Team
    ends: float = math.inf
    name: str = ""
    label: str = ""
    limits: Limits = UNLIMITED
    allow: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """One version of the configuration. `keys` has every team's key by its SHA-256 in hex. If it is empty, all clients
    are allowed.

    `wildcards` maps a vendor to its `vendor/*` entry, whose targets serve any model of that vendor. `default_vendors`,
    `default_models` and `reasoning_fields` are by surface name, `task_models` by surface name and task. `discover` are
    the vendors whose own lists define the models of their `vendor/*` entries. `cached_names` has the resolutions of
    `resolve_model.plan_for`, which hold as long as the configuration.

    `has_affinity` is true if at least one name has affinity; only then the conversation of each request is determined.

    `target_limits` has, by label, the scopes of the targets that have limits or budgets. `scopes` has the limits of
    every scope with limits, `budgets` the budgets, and `each_user` by team the limits of each end user. `zone` is the
    time zone of the periods of budgets. `out_of_service` has the labels of the targets that get no new requests.
    """

    digest: str
    models: Mapping[str, Model]
    wildcards: Mapping[str, Model]
    routes: Mapping[str, Route]
    teams: Mapping[str, Team]
    keys: Mapping[str, Key]
    default_vendors: Mapping[str, str]
    default_models: Mapping[str, str]
    task_models: Mapping[tuple[str, str], str]
    reasoning_fields: Mapping[str, tuple[str, ...]]
    discover: frozenset[str] = frozenset()
    target_limits: TargetLimits = field(default_factory=dict)
    scopes: Mapping[str, Limits] = field(default_factory=dict)
    budgets: Mapping[str, tuple[ScopeBudget, ...]] = field(default_factory=dict)
    each_user: Mapping[str, EachUser] = field(default_factory=dict)
    zone: tzinfo = UTC
    out_of_service: frozenset[str] = frozenset()
    has_affinity: bool = False
    cached_names: "CachedNames" = field(default_factory=dict, repr=False)

    def targets(self) -> Iterator[Target]:
        """Yield every configured deployment, including the deployments of `vendor/*`."""
        for model in (*self.models.values(), *self.wildcards.values()):
            yield from model.targets


ANYONE = Team(NO_TEAM, (WILDCARD,), MappingProxyType({}))
"""The team of every request in a configuration without teams."""

NO_KEY = Key(ANYONE)
"""The key of every request in a configuration without teams."""


@dataclass(slots=True, eq=False)
class CurrentSnapshot:
    """The holder of the current snapshot. A request reads `snapshot` once and uses that object to its end. `swap` is
    one assignment.

    `since` is the gateway's start in unix seconds, the `created` of every model. `now` returns unix seconds for keys.
    """

    snapshot: Snapshot
    since: int
    now: Callable[[], float] = time.time

    def swap(self, snapshot: Snapshot) -> None:
        """Make a new configuration current for requests that begin from now on."""
        self.snapshot = snapshot


@dataclass(frozen=True, slots=True)
class Compiled:
    """A compiled configuration, without the deployments that have problems, and these problems."""

    snapshot: Snapshot
    problems: tuple[Problem, ...]


def build_snapshot(loaded: Loaded, prices: ListPrices = NO_LIST_PRICES) -> Snapshot:
    """Compile a configuration with the vendors' profiles. Raises ConfigError with every problem."""
    compiled = compile_table(loaded, prices)
    if compiled.problems:
        raise ConfigError(compiled.problems)
    return compiled.snapshot


def compile_table(loaded: Loaded, prices: ListPrices = NO_LIST_PRICES) -> Compiled:
    """Compile the valid part of a configuration with the vendors' profiles and list prices."""
    config = loaded.config
    problems = [
        unknown_profile(name, profile, loaded)
        for name, vendor in config.vendors.items()
        if (profile := vendor.profile or name) not in load_profiles()
    ]
    problems.extend(_undiscoverable(loaded))
    # The loader has already reported models whose vendor is missing.
    known = [name for name in config.models if _vendor(name) in config.vendors]
    every = [_model(loaded, name, problems, prices) for name in known]
    compiled = {model.name: model for model in every if model.targets}
    limits = LimitCompiler()
    limits.client(ALL, config.limits, config.budget)
    teams = {name: _team(name, team, limits, config) for name, team in config.teams.items()}
    surfaces = config.server.surfaces
    routes = _routes(config.routes, config)
    own = [team.routes.values() for team in teams.values()]
    snapshot = Snapshot(
        digest=loaded.digest,
        models=MappingProxyType({name: model for name, model in compiled.items() if not _is_wildcard(name)}),
        wildcards=MappingProxyType({_vendor(name): model for name, model in compiled.items() if _is_wildcard(name)}),
        routes=MappingProxyType(routes),
        teams=MappingProxyType(teams),
        keys=MappingProxyType(dict(_keys(config.teams, teams, limits))),
        default_vendors=MappingProxyType(BUILT_IN_VENDORS | _given(surfaces, lambda surface: surface.default_vendor)),
        default_models=MappingProxyType(_given(surfaces, lambda surface: surface.default_model)),
        reasoning_fields=MappingProxyType(
            {name: REASONING_FIELDS[each.reasoning_field] for name, each in surfaces.items()}
        ),
        discover=frozenset(name for name, vendor in config.vendors.items() if vendor.discover),
        task_models=MappingProxyType(
            {(name, task): model for name, each in surfaces.items() for task, model in each.task_models.items()}
        ),
        target_limits=MappingProxyType(dict(_target_limits(loaded, compiled.values(), limits))),
        scopes=MappingProxyType(limits.scopes),
        budgets=MappingProxyType(limits.budgets),
        each_user=MappingProxyType(compile_each_user(config)),
        zone=zone_named(config.server.timezone),
        out_of_service=frozenset(
            target.label for model in compiled.values() for target in model.targets if target.out_of_service
        ),
        has_affinity=_any_affinity([*compiled.values(), *routes.values(), *chain.from_iterable(own)]),
    )
    return Compiled(snapshot, tuple(sorted(problems)))


def _any_affinity(names: Iterable[Model | Route]) -> bool:
    """Return whether one of the names has affinity, or sends the digest of conversations to vendors."""
    return any(each.group is not None or _rules_of(each).send for each in names)


def _rules_of(name: Model | Route) -> AffinityRules:
    return name.affinity if isinstance(name, Model) else name.own_settings.affinity


def _undiscoverable(loaded: Loaded) -> Iterator[Problem]:
    for name, vendor in loaded.config.vendors.items():
        profile = load_profiles().get(vendor.profile or name)
        if vendor.discover and profile is not None and profile.model_list is None:
            path: Path = ("vendors", name, "discover")
            message = f"the profile {profile.name!r} has no list of models that could be fetched"
            yield Problem.at(loaded.locate(path), path, message)


def _given(
    surfaces: Mapping[SurfaceName, SurfaceSettings],
    read: Callable[[SurfaceSettings], str | None],
) -> dict[str, str]:
    return {name: value for name, settings in surfaces.items() if (value := read(settings))}


def _vendor(name: str) -> str:
    return name.partition("/")[0]


def _is_wildcard(name: str) -> bool:
    return name.partition("/")[2] == WILDCARD


def _model(loaded: Loaded, name: str, problems: list[Problem], prices: ListPrices) -> Model:
    model = loaded.config.models[name]
    targets: list[Target] = []
    for deployment in model.deployments or (IMPLICIT_DEPLOYMENT,):
        settings = effective_settings(loaded.config, _vendor(name), name, deployment)
        made = make_target(name, deployment, settings, loaded, prices)
        if isinstance(made, Target):
            targets.append(made)
        else:
            problems.extend(problem for problem in made if problem not in problems)
    affinity = model_affinity(loaded.config, name)
    placing = under_policy(affinity, model.policy, written=model.affinity is not None)
    away = [position for position, target in enumerate(targets) if target.out_of_service]
    labels, weights = [target.label for target in targets], [target.weight for target in targets]
    group = member_group(name, model.policy, labels, weights, away)
    cache, hedge = model_cache(loaded.config, name), model_hedge(loaded.config, name)
    return Model(name, model.policy, tuple(targets), cache, model.listed, affinity, placing, group, hedge)


def _target_limits(loaded: Loaded, models: Iterable[Model], limits: LimitCompiler) -> Iterator[tuple[str, ScopeLimits]]:
    """Yield the label of each target that has limits, and the scopes of these limits."""
    config = loaded.config
    vendors = {
        name: limits.upstream(f"vendor {name}", vendor.limits, vendor.budget) for name, vendor in config.vendors.items()
    }
    for model in models:
        section = config.models[model.name]
        own = limits.upstream(f"model {model.name}", section.limits, section.budget)
        for target in model.targets:
            deployment = section.deployments.get(target.deployment)
            scope = f"deployment {target.label}"
            least = UNLIMITED
            if deployment is not None:
                least = limits.upstream(scope, deployment.limits, deployment.budget)
            every = (
                *((f"vendor {target.vendor}", vendors[target.vendor]), (f"model {model.name}", own), (scope, least)),
            )
            if found := tuple(each for each in every if each[1] or each[0] in limits.budgets):
                yield target.label, found


def _keys(
    sections: Mapping[str, TeamSection], teams: Mapping[str, Team], limits: LimitCompiler
) -> Iterator[tuple[str, Key]]:
    """Yield every team's keys by their digests. Keys of a team for the same names share one Team object."""
    for name, section in sections.items():
        narrowed: dict[tuple[str, ...], Team] = {}
        for _, _, own in section.every_key():
            team, allow = teams[name], None if own.models is None else tuple(own.models)
            if allow is not None:
                team = narrowed.setdefault(allow, _narrowed(team, allow))
            yield own.digest.removeprefix("sha256:"), _key(own, team, allow, limits)


def _key(own: TeamKey, team: Team, allow: tuple[str, ...] | None, limits: LimitCompiler) -> Key:
    return Key(team, own.ends, own.name or "", own.label, limits.key(team.name, own), allow)


def _narrowed(team: Team, names: tuple[str, ...]) -> Team:
    """Return a team's rights, narrowed to the names that a key may use; the team may use each of them. A name of one of
    the team's own routes still means that route, and does not grant a model of the same name."""
    granted = tuple(name for name in names if name not in team.routes or any(covers(each, name) for each in team.allow))
    routes = {name: route for name, route in team.routes.items() if any(covers(pattern, name) for pattern in names)}
    return replace(team, allow=granted, routes=MappingProxyType(routes))


def _team(name: str, team: TeamSection, limits: LimitCompiler, config: GatewayConfig) -> Team:
    schemes = team.media.schemes
    return Team(
        name,
        tuple(team.models),
        MappingProxyType(_routes(team.routes, config)),
        on_unsupported=team.on_unsupported,
        context_length_exceeded_behavior=team.context_length_exceeded_behavior,
        extra_params=team.inference_extra_params,
        extra_headers=team.inference_extra_headers,
        media=Media(None if schemes is None else frozenset(schemes), team.media.allow_private),
        limits=limits.team(name, team),
        tags=MappingProxyType(team.tags) if team.tags else _NO_TAGS,
    )


def _routes(routes: Mapping[str, RouteSection], config: GatewayConfig) -> dict[str, Route]:
    return {name: _route(name, route, config) for name, route in routes.items()}


def _route(name: str, route: RouteSection, config: GatewayConfig) -> Route:
    members = tuple(RouteMember(member.target, member.weight) for member in route.targets)
    settings = route_settings(route, config.defaults)
    placing = under_policy(settings.affinity, route.policy, written=route.affinity is not None)
    names, weights = [member.name for member in members], [member.weight for member in members]
    group = member_group(name, route.policy, names, weights)
    return Route(name, route.policy, members, settings, route.listed, placing, group)
