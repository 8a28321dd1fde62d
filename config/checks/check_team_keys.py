"""Check the keys of teams: digests written twice, names that their team may not request, teams without keys."""

from collections.abc import Iterator, Set

from config.allowed_names import covers
from config.checks.check_between_sections import CheckContext, keys_below, unknown_allowed_name
from config.problem import Path, Problem, shown
from config.reading.yaml_tree import key_position, value_position
from config.sections.limits_section import LimitsSection
from config.sections.team_section import TeamSection


def check_team_keys(context: CheckContext) -> tuple[Problem, ...]:
    """Return every problem of teams' keys."""
    return (
        *_without_keys(context),
        *_duplicate_digests(context),
        *_names_of_keys(context),
        *_different_limits_of_one_name(context),
    )


def _without_keys(context: CheckContext) -> Iterator[Problem]:
    for name, team in context.config.teams.items():
        if not team.keys and "keys_from" not in team.model_fields_set:
            path: Path = ("teams", name, "keys")
            if "keys" in keys_below(context.root, path[:-1]):
                yield context.at_value(path, "must not be empty")
            else:
                yield Problem.at(key_position(context.root, path), path, "required key is missing")


def _duplicate_digests(context: CheckContext) -> Iterator[Problem]:
    first: dict[str, tuple[str, Path]] = {}
    for team_name, team in context.config.teams.items():
        for kind, index, own in team.every_key():
            path: Path = ("teams", team_name, kind, index, own.digest_key)
            if own.digest in first:
                owner, at = first[own.digest]
                position = value_position(context.root, at)
                yield context.at_value(path, f"the same key already belongs to team {shown(owner)}, at {position}")
            first.setdefault(own.digest, (team_name, path))


def _names_of_keys(context: CheckContext) -> Iterator[Problem]:
    for team_name, team in context.config.teams.items():
        own = keys_below(context.root, ("teams", team_name, "routes"))
        for kind, index, key in team.every_key():
            for position, name in enumerate(key.models or ()):
                path: Path = ("teams", team_name, kind, index, "models", position)
                unknown = [*unknown_allowed_name(context, path, name, own)]
                if not unknown and not _may_request(context, team, own, name):
                    message = "the team may not request this name: a key can only narrow the names in its team's models"
                    yield context.at_value(path, message)
                yield from unknown


def _may_request(context: CheckContext, team: TeamSection, own: Set[str], name: str) -> bool:
    if name in own or any(covers(pattern, name) for pattern in team.models):
        return True
    model = name.rpartition("/")[0]
    hidden = model in own or model in context.names.routes
    return model in team.models and not hidden and context.names.is_deployment(name)


def _different_limits_of_one_name(context: CheckContext) -> Iterator[Problem]:
    """Yield a problem for keys of one name with different limits. Keys of one name share their limits, such as a key
    and the key that replaces it."""
    for team_name, team in context.config.teams.items():
        first: dict[str, tuple[LimitsSection, Path]] = {}
        for kind, index, own in team.every_key():
            path: Path = ("teams", team_name, kind, index)
            limits, at = first.setdefault(own.label, (own.limits, path))
            if limits != own.limits:
                position = value_position(context.root, at)
                message = f"another key of this name has other limits, at {position}: keys of one name count together"
                yield context.at_value((*path, "limits"), message)
