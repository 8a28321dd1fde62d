"""Warn of deployments that refuse every request without `max_tokens`: their vendors require a limit on the tokens of an
answer, and the table has none. Their dialects say so; there is no list of such vendors."""

from collections.abc import Iterator
from typing import Final

from config.load_config import Loaded
from config.problem import Path, Problem
from providers.failure import Refusal
from providers.profile import Profile
from providers.target import Target
from providers.unified_request import SHORTEST_PROMPTS, Operation, UnifiedRequest
from proxy.routing.snapshot import Model, Snapshot

_LIMIT: Final = "max_tokens"


def needed_limits(loaded: Loaded, snapshot: Snapshot) -> tuple[Problem, ...]:
    """Return a warning for each model that needs a limit, or for those of its deployments that need one."""
    known: dict[Profile, bool] = {}
    found: list[Problem] = []
    for model in (*snapshot.models.values(), *snapshot.wildcards.values()):
        without = [each for each in model.targets if each.max_output_tokens is None and _needs_limit(each, known)]
        found.extend(Problem.at(loaded.locate(path), path, _message(without[0])) for path in _paths(model, without))
    return tuple(found)


def _needs_limit(target: Target, known: dict[Profile, bool]) -> bool:
    """Return whether its dialect refuses a request without a limit; `known` has the results so far, by profile."""
    profile = target.profile.for_model(target.model, target.upstream_model)
    if profile not in known:
        known[profile] = any(_refused_field(target, operation) == _LIMIT for operation in SHORTEST_PROMPTS)
    return known[profile]


def _paths(model: Model, without: list[Target]) -> Iterator[Path]:
    here: Path = ("models", model.name)
    if len(without) == len(model.targets):
        yield (*here, "max_output_tokens")
        return
    for target in without:
        yield (*here, "deployments", target.deployment, "max_output_tokens")


def _message(target: Target) -> str:
    return (
        f"requests without max_tokens are refused here: the profile {target.profile.name!r} must be told the most "
        "tokens of an answer; set max_output_tokens"
    )


def _refused_field(target: Target, operation: Operation) -> str | None:
    """Return the field for which a minimal request is refused, or None."""
    try:
        target.dialect.encode(UnifiedRequest(operation, target.model, SHORTEST_PROMPTS[operation], {}), target)
    except Refusal as refusal:
        return refusal.param
    return None
