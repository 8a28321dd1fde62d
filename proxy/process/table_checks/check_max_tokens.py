"""Warns of deployments that refuse a request without `max_tokens`, or for which the limit is a guess: their vendors
require a limit on the tokens of a response, and the configuration sets none.

The dialects report this; there is no list of such vendors.
"""

from collections.abc import Iterator
from typing import Final

from config.load_config import Loaded
from config.problem import Path, Problem
from providers.dialects.guessed_limits import guessed_limit
from providers.failure import Refusal
from providers.profile import Profile
from providers.target import Target
from providers.unified_request import SHORTEST_PROMPTS, Operation, UnifiedRequest
from proxy.routing.snapshot import WILDCARD, Model, Snapshot

_LIMIT: Final = "max_tokens"


def needed_limits(loaded: Loaded, snapshot: Snapshot) -> tuple[Problem, ...]:
    """Return a warning for each model that needs a limit, or for each of its deployments if only some of them need
    one."""
    known: dict[Profile, bool] = {}
    found: list[Problem] = []
    for model in (*snapshot.models.values(), *snapshot.wildcards.values()):
        without = {
            target: reason
            for target in model.targets
            if target.max_output_tokens is None and (reason := _reason(target, known))
        }
        found.extend(Problem.at(loaded.locate(path), path, reason) for path, reason in _placed(model, without))
    return tuple(found)


def _reason(target: Target, known: dict[Profile, bool]) -> str | None:
    """Return why a target needs a limit, or `None`. `known` caches by profile whether requests without a limit are
    refused."""
    profile = target.profile.for_model(*target.model_names)
    if profile not in known:
        known[profile] = any(_refused_field(target, operation) == _LIMIT for operation in SHORTEST_PROMPTS)
    if known[profile]:
        return (
            f"requests without max_tokens are refused here: the profile {target.profile.name!r} requires a limit on "
            "the tokens of a response; set max_output_tokens"
        )
    # The models that a wildcard serves are unknown before they are requested, and one number may not fit them all.
    guess = None if target.model_key.endswith(WILDCARD) else guessed_limit(target)
    if guess is None:
        return None
    return (
        f"requests without max_tokens get {guess} tokens at most here: the profile {target.profile.name!r} "
        f"requires a number, and the limit of the model {target.upstream_model!r} is unknown; set max_output_tokens"
    )


def _placed(model: Model, without: dict[Target, str]) -> Iterator[tuple[Path, str]]:
    """Yield each path that lacks a limit, with the reason. If all deployments of a model lack a limit, the path is the
    model's."""
    here: Path = ("models", model.name)
    if len(without) == len(model.targets) and without:
        yield (*here, "max_output_tokens"), next(iter(without.values()))
        return
    for target, reason in without.items():
        yield (*here, "deployments", target.deployment, "max_output_tokens"), reason


def _refused_field(target: Target, operation: Operation) -> str | None:
    """Return the field for which a minimal request is refused, or `None`."""
    try:
        target.dialect.encode(UnifiedRequest(operation, target.model, SHORTEST_PROMPTS[operation], {}), target)
    except Refusal as refusal:
        return refusal.param
    return None
