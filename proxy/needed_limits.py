"""Deployments that refuse every client who sends no `max_tokens`, found by asking their dialects.

Their vendors must be told the most tokens of an answer, and the table names no number. Never a list of such vendors.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from config.loader import Loaded
from config.problems import Path, Problem
from providers.dialect import Target
from providers.failure import Refusal
from providers.profiles import Profile
from providers.unified import ChatPrompt, Operation, Prompt, TextPrompt, UnifiedRequest
from proxy.snapshot import Model, Snapshot

_LIMIT: Final = "max_tokens"
_PROMPTS: Final[Mapping[Operation, Prompt]] = {
    Operation.CHAT: ChatPrompt(({"role": "user", "content": "a"},)),
    Operation.COMPLETIONS: TextPrompt(("a",)),
}


def needed_limits(loaded: Loaded, snapshot: Snapshot) -> tuple[Problem, ...]:
    """A warning for each model without a number where one is needed; where only some of its deployments are, for each
    of those."""
    asked: dict[Profile, bool] = {}
    found: list[Problem] = []
    for model in (*snapshot.models.values(), *snapshot.wildcards.values()):
        without = [each for each in model.targets if each.max_output_tokens is None and _needs_limit(each, asked)]
        found.extend(Problem.at(loaded.locate(path), path, _message(without[0])) for path in _paths(model, without))
    return tuple(found)


def _needs_limit(target: Target, asked: dict[Profile, bool]) -> bool:
    """Whether its dialect refuses a request for want of the number: once for each row, which is all they go by."""
    row = target.profile.for_model(target.model, target.upstream_model)
    if row not in asked:
        asked[row] = any(_refused_for(target, operation) == _LIMIT for operation in _PROMPTS)
    return asked[row]


def _paths(model: Model, without: list[Target]) -> Iterator[Path]:
    """Where the number is missing."""
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


def _refused_for(target: Target, operation: Operation) -> str | None:
    """The field for which the plainest request of all is refused."""
    try:
        target.dialect.encode(UnifiedRequest(operation, target.model, _PROMPTS[operation], {}), target)
    except Refusal as refusal:
        return refusal.param
    return None
