"""`dragoman routes`: print the deployments of every name of a configuration, and the settings that differ from the
defaults."""

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import urlsplit

from config.sections.section import built_in_section
from config.table.table_schema import DeploymentSettings
from config.units import duration, size
from providers.target import CircuitBreaker, Media, Permits, RetryBudget, Target
from proxy.cli.chosen_table import find_team
from proxy.cli.terminal import Style, paint
from proxy.deployment_health.circuit_breaker_rules import HealthRules
from proxy.dispatch.retry_rules import RetryRules
from proxy.hedging.hedged_requests import why_never
from proxy.process.load_table import Source
from proxy.routing.affinity_rules import AffinityRules
from proxy.routing.deployment_load import IDLE, Idle, MemberLoad
from proxy.routing.policies import WEIGHTED_POLICIES
from proxy.routing.resolve_model import allowed, covered, settings_of, whole_plan
from proxy.routing.route_settings import CACHED_REQUESTS, FALLBACKS, CacheRules
from proxy.routing.session_affinity import MemberGroup
from proxy.routing.snapshot import WILDCARD, Route, Snapshot, Team

Row = tuple[str, ...]

CacheRow = tuple[str, str, CacheRules]
"""A name, the team that owns it, and the rules of its cache."""

Setting = tuple[str, str | bool | int | None, str | bool | int | None]
"""A setting's key, its value and its default."""

MODEL_COLUMNS: Row = ("MODEL", "DEPLOYMENT", "POLICY", "WEIGHT", "PROFILE", "UPSTREAM MODEL", "HOST")
ROUTE_COLUMNS: Row = ("ROUTE", "TEAM", "POLICY", "WEIGHT", "TARGET", "DEPLOYMENTS")
AFFINITY_COLUMNS: Row = ("AFFINITY OF", "TEAM", "RULES", "AMONG THE MEMBERS OF")
TEAM_COLUMNS: Row = ("TEAM", "SETTINGS")
HEDGE_COLUMNS: Row = ("HEDGE OF", "TEAM", "RULES", "NO EFFECT SINCE")
_HEDGE_KEYS: Row = ("NAME", "TEAM", "RULES", "NO EFFECT SINCE")
_AFFINITY_KEYS: Row = ("NAME", "TEAM", "RULES", "AMONG")
CACHE_COLUMNS: Row = ("CACHE OF", "TEAM", "TTL", "STALE", "SCOPE", "WHERE", "MAX BYTES")
SETTINGS = TEAM_COLUMNS[-1]

NONE = "-"

_BUILT_IN: Final = built_in_section(DeploymentSettings)


@dataclass(frozen=True, slots=True)
class ResolvedTable:
    """The resolved names of a configuration as rows, for all teams or for one."""

    models: Sequence[Row]
    routes: Sequence[Row]
    teams: Sequence[Row]
    caches: Sequence[CacheRow]
    affinities: Sequence[Row]
    hedges: Sequence[Row]


Form = Callable[[ResolvedTable], Iterator[str]]
"""Formats the resolved configuration as lines."""


def routes(source: Source, team: str | None, form: Form) -> int:
    """Print the models and routes of the configuration, or only the names that one team may use."""
    for line in form(resolved_table(source.load().snapshot, team)):
        print(line)
    return 0


def resolved_table(snapshot: Snapshot, team: str | None) -> ResolvedTable:
    """Return the resolved names of a configuration, for one team or for all."""
    user = find_team(snapshot, team)
    teams = tuple(snapshot.teams.values()) if team is None else (user,)
    shared = {name: each for name, each in snapshot.routes.items() if covered(user, name) and name not in user.routes}
    models = [*model_rows(snapshot, user), *wildcard_rows(snapshot, user)]
    own = [row for each in teams for row in route_rows(snapshot, each, each.routes, each.name)]
    caches = [(name, NONE, settings_of(snapshot, user, each).cache) for name, each in shared.items()]
    caches += [
        (name, each.name, settings_of(snapshot, each, route).cache)
        for each in teams
        for name, route in each.routes.items()
    ]
    asked = dict.fromkeys(row[0] for row in models)
    named = (*snapshot.models.values(), *snapshot.wildcards.values())
    caches = [(each.name, NONE, each.cache) for each in named if each.name in asked] + caches
    return ResolvedTable(
        models,
        [*route_rows(snapshot, user, shared, NONE), *own],
        [(each.name, settings) for each in teams if (settings := team_settings(each)) != NONE],
        [(name, owner, rules) for name, owner, rules in caches if rules is not None],
        [
            *(row for name in (*asked, *shared) for row in affinity_rows(snapshot, user, name, NONE)),
            *(row for each in teams for name in each.routes for row in affinity_rows(snapshot, each, name, each.name)),
        ],
        [
            *(row for name in (*asked, *shared) for row in hedge_rows(snapshot, user, name, NONE)),
            *(row for each in teams for name in each.routes for row in hedge_rows(snapshot, each, name, each.name)),
        ],
    )


class _GroupRecorder(Idle):
    """A load of zero. It records the groups in which a conversation is placed, with their rules."""

    __slots__ = ("groups",)

    def __init__(self) -> None:
        self.groups: list[tuple[str, str]] = []

    def ordered(self, rules: AffinityRules, group: MemberGroup, members: MemberLoad) -> None:
        """Record the group and return `None`, so that the policy orders the members."""
        self.groups.append((rules.words, group.label))


def affinity_rows(snapshot: Snapshot, team: Team, name: str, owner: str) -> Iterator[Row]:
    """Yield a row for each set of rules by which a name places conversations. The row lists the models and routes
    among whose members it places them. There are no rows for a name that places none."""
    load = _GroupRecorder()
    if not name.endswith("/" + WILDCARD):
        whole_plan(snapshot, team, name, "", load)
    else:
        model = snapshot.wildcards[name.partition("/")[0]]
        load.groups += [(model.placing.words, name)] if model.placing.on and model.group is not None else []
    for rules in dict.fromkeys(rules for rules, _ in load.groups):
        labels = dict.fromkeys(label for words, label in load.groups if words == rules)
        yield name, owner, rules, ", ".join(labels)


def hedge_rows(snapshot: Snapshot, team: Team, name: str, owner: str) -> Iterator[Row]:
    """Yield a row with the rules by which a name makes second attempts, or the reason why it makes no second
    attempt. There is no row if there are no rules."""
    if name.endswith("/" + WILDCARD):
        model = snapshot.wildcards[name.partition("/")[0]]
        rules, targets = model.hedge, model.targets
    else:
        found = whole_plan(snapshot, team, name, "", IDLE)
        rules, targets = found.hedge, found.targets
    if rules is not None:
        yield name, owner, rules.words, why_never(targets) or NONE


def text_lines(table: ResolvedTable) -> Iterator[str]:
    """Yield aligned tables with headings. Tables without rows are omitted."""
    yield from columns(*model_columns(table.models))
    caches = [(name, owner, *_cache_cells(rules)) for name, owner, rules in table.caches]
    tables = ((ROUTE_COLUMNS, table.routes), (TEAM_COLUMNS, table.teams), (AFFINITY_COLUMNS, table.affinities))
    for heads, rows in (*tables, (HEDGE_COLUMNS, table.hedges), (CACHE_COLUMNS, caches)):
        if rows:
            yield ""
            yield from columns(heads, rows)
    if caches:
        yield f"Caches are for {CACHED_REQUESTS}."


def _cache_cells(rules: CacheRules) -> Row:
    stale = duration(rules.stale) if rules.stale else NONE
    return duration(rules.ttl), stale, rules.scope, str(rules.facts["where"]), size(rules.max_bytes)


def json_lines(table: ResolvedTable) -> Iterator[str]:
    """Yield one JSON object: the rows by the names of their columns, with null for empty cells."""
    caches = [{"name": name, "team": _cell(owner), **rules.facts} for name, owner, rules in table.caches]
    facts: dict[str, object] = {
        "models": _named((*MODEL_COLUMNS, SETTINGS), table.models),
        "routes": _named(ROUTE_COLUMNS, table.routes),
        "teams": _named(TEAM_COLUMNS, table.teams),
        "affinities": _named(_AFFINITY_KEYS, table.affinities),
        "hedges": _named(_HEDGE_KEYS, table.hedges),
        "caches": caches,
        "caches_are_for": CACHED_REQUESTS if caches else None,
    }
    yield json.dumps(facts, indent=2, ensure_ascii=False)


def _named(heads: Row, rows: Sequence[Row]) -> list[dict[str, str | None]]:
    names = [head.lower().replace(" ", "_") for head in heads]
    return [{name: _cell(cell) for name, cell in zip(names, row, strict=True)} for row in rows]


def _cell(text: str) -> str | None:
    return None if text == NONE else text


FORMS: Final[Mapping[str, Form]] = {"text": text_lines, "json": json_lines}
"""Output formats by the value of `--output`."""


def model_rows(snapshot: Snapshot, team: Team) -> Iterator[Row]:
    """Yield a row for each deployment that the team may use, with its settings. Its name is the model's, or the
    deployment's own if the team may use only the deployment."""
    for model in (*snapshot.models.values(), *snapshot.wildcards.values()):
        whole = allowed(snapshot, team, model.name)
        policy = model.policy if len(model.targets) > 1 else NONE
        for target in model.targets:
            if whole:
                yield _row(team, model.name, policy, target)
            elif allowed(snapshot, team, target.name):
                yield _row(team, target.name, NONE, target)


def wildcard_rows(snapshot: Snapshot, team: Team) -> Iterator[Row]:
    """Yield rows for the names of the team's allow list that match only a `vendor/*`."""
    for name in team.allow:
        if WILDCARD in name or name in team.routes or name in snapshot.routes:
            continue
        targets = whole_plan(snapshot, team, name, "", IDLE).targets
        if targets[0].model_key.endswith("/" + WILDCARD):
            yield from (_row(team, name, NONE, target) for target in targets)


def _row(team: Team, name: str, policy: str, target: Target) -> Row:
    weight = str(target.weight) if policy in WEIGHTED_POLICIES else NONE
    host = urlsplit(target.base_url).netloc
    settings = target_settings(team, target)
    return (name, target.deployment, policy, weight, target.profile.name, target.upstream_model, host, settings)


def target_settings(team: Team, target: Target) -> str:
    """Return the settings of a deployment for a team's requests that differ from the defaults."""
    return _differing(
        ("out_of_service", target.out_of_service, False),
        ("on_unsupported", team.on_unsupported or target.on_unsupported, _BUILT_IN.on_unsupported),
        (
            "context_length_exceeded_behavior",
            team.context_length_exceeded_behavior or target.context_length_exceeded_behavior,
            None,
        ),
        ("concurrent", target.concurrent, None),
        ("input_type", target.input_type, None),
        ("retries.attempts", target.retries.attempts, _BUILT_IN.retries.attempts),
        ("retries.safety", target.retries.safety, _BUILT_IN.retries.safety),
        ("retries.same_deployment", target.retries.same_deployment, _BUILT_IN.retries.same_deployment),
        *_budget(target.retries.budget),
        *_circuit_breaker(target.circuit_breaker),
        *_permitted(target.permits),
        *_media(team.media.over(target.permits.media)),
    )


def team_settings(team: Team) -> str:
    """Return the settings of a team that differ from the defaults."""
    return _differing(
        ("on_unsupported", team.on_unsupported, None),
        ("context_length_exceeded_behavior", team.context_length_exceeded_behavior, None),
        ("inference_extra_params", team.extra_params, True),
        ("inference_extra_headers", team.extra_headers, True),
        *_media(team.media),
    )


def _budget(own: RetryBudget) -> Iterator[Setting]:
    built_in = RetryRules().budget
    rules = built_in.of(own)
    yield "retries.budget.share", f"{rules.per_request:g}", f"{built_in.per_request:g}"
    yield "retries.budget.per_second", f"{rules.per_second:g}", f"{built_in.per_second:g}"
    yield "retries.budget.least", f"{rules.least:g}", f"{built_in.least:g}"


def _circuit_breaker(own: CircuitBreaker) -> Iterator[Setting]:
    built_in, rules = HealthRules(), HealthRules().of(own)
    yield "circuit_breaker.failures", rules.failures, built_in.failures
    yield "circuit_breaker.cooldown", duration(rules.cooldown), duration(built_in.cooldown)
    yield "circuit_breaker.longest_cooldown", duration(rules.longest_cooldown), duration(built_in.longest_cooldown)


def _permitted(permits: Permits) -> Iterator[Setting]:
    yield "allow_fields", _listed(permits.fields), _listed(())
    yield "allow_headers", _listed(permits.headers), _listed(())


def _media(media: Media) -> Iterator[Setting]:
    yield "media.schemes", None if media.schemes is None else _listed(media.schemes), None
    yield "media.allow_private", media.allow_private or False, False


def _listed(names: Collection[str]) -> str:
    return f"[{', '.join(sorted(names))}]"


def _differing(*settings: Setting) -> str:
    """Format the settings whose value differs from the default, as in the config file."""
    return ", ".join(f"{key}: {str(value).lower()}" for key, value, built_in in settings if value != built_in) or NONE


def route_rows(snapshot: Snapshot, team: Team, shown: Mapping[str, Route], owner: str) -> Iterator[Row]:
    """Yield a row for each target of the routes and of their fallbacks, with its deployments."""
    for route in shown.values():
        for member in route.members:
            weight = str(member.weight) if route.policy in WEIGHTED_POLICIES else NONE
            yield (route.name, owner, route.policy, weight, member.name, _reached(snapshot, team, member.name))
        settings = settings_of(snapshot, team, route)
        source = f" of {settings.fallbacks_of}" if settings.fallbacks_of else ""
        for kind, names in settings.fallbacks.items():
            for name in names:
                yield (route.name, owner, f"on {FALLBACKS[kind]}{source}", NONE, name, _reached(snapshot, team, name))


def _reached(snapshot: Snapshot, team: Team, name: str) -> str:
    """Return the deployments of a name in a route. The allow list does not apply to them."""
    anything = replace(team, allow=(WILDCARD,))
    return ", ".join(target.name for target in whole_plan(snapshot, anything, name, "", IDLE).targets)


def model_columns(rows: Sequence[Row]) -> tuple[Row, Sequence[Row]]:
    """Return the headings and rows of models. The column of settings is included if any model has settings."""
    if any(row[-1] != NONE for row in rows):
        return (*MODEL_COLUMNS, SETTINGS), rows
    return MODEL_COLUMNS, [row[:-1] for row in rows]


def print_columns(heads: Row, rows: Sequence[Row]) -> None:
    """Print rows under their headings."""
    for line in columns(heads, rows):
        print(line)


def columns(heads: Row, rows: Sequence[Row]) -> Iterator[str]:
    """Yield rows under their headings, with aligned columns."""
    widths = [max(len(row[column]) for row in (heads, *rows)) for column in range(len(heads))]
    for row in (heads, *rows):
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        yield paint(line, Style.BOLD) if row is heads else line
