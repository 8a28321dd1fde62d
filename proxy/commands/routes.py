"""`dragoman routes`: what every name of a table resolves to, in aligned columns, and settings not as built in.

Never how a name is resolved.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from urllib.parse import urlsplit

from providers.dialect import CircuitBreaker, Retries, RetryBudget, Target
from providers.permits import Media, Permits
from proxy.commands.team import find_team
from proxy.health_rules import HealthRules
from proxy.load import IDLE
from proxy.policies import WEIGHED
from proxy.reload import Source
from proxy.retries import RetryRules
from proxy.routing import allowed, covered, plan
from proxy.snapshot import FALLBACKS, WILDCARD, Route, Snapshot, Team
from proxy.terminal import Ink, paint

Row = tuple[str, ...]

Setting = tuple[str, str | bool | int | None, str | bool | int | None]
"""A setting's key, its value and the built-in one."""

MODEL_COLUMNS: Row = ("MODEL", "DEPLOYMENT", "POLICY", "WEIGHT", "PROFILE", "UPSTREAM MODEL", "HOST")
ROUTE_COLUMNS: Row = ("ROUTE", "TEAM", "POLICY", "WEIGHT", "TARGET", "DEPLOYMENTS")
TEAM_COLUMNS: Row = ("TEAM", "SETTINGS")
SETTINGS = TEAM_COLUMNS[-1]

NONE = "-"


def routes(source: Source, team: str | None) -> int:
    """Print the table's models and routes, or only what one team may ask for."""
    snapshot = source.load().snapshot
    asking = find_team(snapshot, team)
    teams = tuple(snapshot.teams.values()) if team is None else (asking,)
    shared = {
        name: each for name, each in snapshot.routes.items() if covered(asking, name) and name not in asking.routes
    }
    print_models([*model_rows(snapshot, asking), *wildcard_rows(snapshot, asking)])
    own = [row for each in teams for row in route_rows(snapshot, each, each.routes, each.name)]
    for heads, rows in (
        (ROUTE_COLUMNS, [*route_rows(snapshot, asking, shared, NONE), *own]),
        (TEAM_COLUMNS, [(each.name, told) for each in teams if (told := team_settings(each)) != NONE]),
    ):
        if rows:
            print()
            print_columns(heads, rows)
    return 0


def model_rows(snapshot: Snapshot, team: Team) -> Iterator[Row]:
    """A row for each deployment the team may reach by a model's name, or only by the deployment's own; its settings are
    those that hold for the team."""
    for model in (*snapshot.models.values(), *snapshot.wildcards.values()):
        whole = allowed(snapshot, team, model.name)
        policy = model.policy if len(model.targets) > 1 else NONE
        for target in model.targets:
            if whole:
                yield _row(team, model.name, policy, target)
            elif allowed(snapshot, team, target.name):
                yield _row(team, target.name, NONE, target)


def wildcard_rows(snapshot: Snapshot, team: Team) -> Iterator[Row]:
    """Rows for the names of the team's allow list that only a `vendor/*` answers to."""
    for name in team.allow:
        if WILDCARD in name or name in team.routes or name in snapshot.routes:
            continue
        targets = plan(snapshot, team, name, "", IDLE).targets
        if targets[0].row.endswith("/" + WILDCARD):
            yield from (_row(team, name, NONE, target) for target in targets)


def _row(team: Team, name: str, policy: str, target: Target) -> Row:
    weight = str(target.weight) if policy in WEIGHED else NONE
    host = urlsplit(target.base_url).netloc
    settings = target_settings(team, target)
    return (name, target.deployment, policy, weight, target.profile.name, target.upstream_model, host, settings)


def target_settings(team: Team, target: Target) -> str:
    """What holds at a deployment for a team's requests, where that is not what is built in."""
    return _differing(
        ("on_unsupported", team.on_unsupported or target.on_unsupported, "error"),
        ("context_length_exceeded_behavior", team.context_behavior or target.context_behavior, None),
        ("concurrent", target.concurrent, None),
        ("retries.attempts", target.retries.attempts, Retries().attempts),
        ("retries.safety", target.retries.safety, Retries().safety),
        ("retries.same_deployment", target.retries.same_deployment, Retries().same_deployment),
        *_budget(target.retries.budget),
        *_circuit_breaker(target.circuit_breaker),
        *_permitted(target.permits),
        *_media(team.media.over(target.permits.media)),
    )


def team_settings(team: Team) -> str:
    """What the table says of a team itself, where that is not what is built in."""
    return _differing(
        ("on_unsupported", team.on_unsupported, None),
        ("context_length_exceeded_behavior", team.context_behavior, None),
        ("inference_extra_params", team.extra_params, True),
        ("inference_extra_headers", team.extra_headers, True),
        *_media(team.media),
    )


def _budget(own: RetryBudget) -> Iterator[Setting]:
    built_in, rules = RetryRules(), RetryRules().of(own)
    yield "retries.budget.share", f"{rules.per_request:g}", f"{built_in.per_request:g}"
    yield "retries.budget.per_second", f"{rules.per_second:g}", f"{built_in.per_second:g}"
    yield "retries.budget.least", f"{rules.least:g}", f"{built_in.least:g}"


def _circuit_breaker(own: CircuitBreaker) -> Iterator[Setting]:
    built_in, rules = HealthRules(), HealthRules().of(own)
    yield "circuit_breaker.failures", rules.failures, built_in.failures
    yield "circuit_breaker.cooldown", f"{rules.cooldown:g}s", f"{built_in.cooldown:g}s"
    yield "circuit_breaker.longest_cooldown", f"{rules.longest_cooldown:g}s", f"{built_in.longest_cooldown:g}s"


def _permitted(permits: Permits) -> Iterator[Setting]:
    yield "allow_fields", _listed(permits.fields), _listed(())
    yield "allow_headers", _listed(permits.headers), _listed(())


def _media(media: Media) -> Iterator[Setting]:
    yield "media.schemes", None if media.schemes is None else _listed(media.schemes), None
    yield "media.allow_private", media.allow_private or False, False


def _listed(names: Collection[str]) -> str:
    return f"[{', '.join(sorted(names))}]"


def _differing(*settings: Setting) -> str:
    """Key, value and built-in value of each setting, written as in the table."""
    return ", ".join(f"{key}: {str(value).lower()}" for key, value, built_in in settings if value != built_in) or NONE


def route_rows(snapshot: Snapshot, team: Team, shown: Mapping[str, Route], owner: str) -> Iterator[Row]:
    """A row for each target of the routes, with every deployment it leads to as `team` would get there, and for each
    they fall back to."""
    for route in shown.values():
        for member in route.members:
            weight = str(member.weight) if route.policy in WEIGHED else NONE
            yield (route.name, owner, route.policy, weight, member.name, _reached(snapshot, team, member.name))
        for kind, names in route.fallbacks.items():
            for name in names:
                yield (route.name, owner, f"on {FALLBACKS[kind]}", NONE, name, _reached(snapshot, team, name))


def _reached(snapshot: Snapshot, team: Team, name: str) -> str:
    """Every deployment that a name of a route leads to: there the allow list is not asked."""
    anything = replace(team, allow=(WILDCARD,))
    return ", ".join(target.name for target in plan(snapshot, anything, name, "", IDLE).targets)


def print_models(rows: Sequence[Row]) -> None:
    """Print the rows of models, with their settings when one of them has some."""
    if any(row[-1] != NONE for row in rows):
        print_columns((*MODEL_COLUMNS, SETTINGS), rows)
    else:
        print_columns(MODEL_COLUMNS, [row[:-1] for row in rows])


def print_columns(heads: Row, rows: Sequence[Row]) -> None:
    """Print rows under their heads, each column as wide as its widest cell."""
    widths = [max(len(row[column]) for row in (heads, *rows)) for column in range(len(heads))]
    for row in (heads, *rows):
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        print(paint(line, Ink.BOLD) if row is heads else line)
