"""Fits a request to a model that excludes other settings while it thinks, such as Claude at hosts that do not speak its
maker's API, and OpenAI's models from gpt-5.1 on.

A forced call rules Claude's thinking out: the request goes without, and the fields that asked for it are named.
Sampling is refused as the maker refuses it. The dialects of Anthropic's API decide by the conversation too, and by the
limit.

Sources: "Extended thinking" page of Anthropic ("Thinking isn't compatible with temperature or top_k modifications as
well as forced tool use"); "Reasoning tokens" page of OpenRouter for `reasoning`, November 2026.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from providers.adaptation.allowed_tools import ALLOWED
from providers.failure import Refusal
from providers.models.facts import ModelFacts
from providers.request_fields import is_neutral
from providers.target import Target
from providers.unified_request import Params, UnifiedRequest

_SETTLED: Final = frozenset({"anthropic", "anthropic_vertex", "bedrock", "bedrock_anthropic"})
"""Dialects that decide by themselves whether the model thinks, but for members that the client adds to the body."""

_FIELDS: Final = ("thinking", "reasoning_effort")
_MEMBERS: Final = (*_FIELDS, "reasoning")
"""Names under which members that the client adds to the body ask for thinking."""

_ASKING: Final = frozenset({"type", "enabled", "effort", "max_tokens", "budget_tokens"})


def fit_beside_thinking(
    request: UnifiedRequest, target: Target, facts: ModelFacts
) -> tuple[UnifiedRequest, tuple[str, ...]]:
    """Return the request as the model takes it while it thinks, and the fields that were left out; the same object if
    nothing changes. Raises Refusal for a setting that the model does not take then."""
    asked = _asking(request, target)
    if not asked and not (facts.thinks_unasked and _is_unsaid(request)):
        return request, ()
    if asked and not facts.thinking_choice and _forces_call(request.params):
        return _without(request, asked), asked
    unasked = "" if asked else "; it thinks unless 'reasoning_effort' is 'none'"
    if "logprobs" in facts.thinking_refuses and _ranks(request.params):
        ranked = "candidates are ranked by log probabilities, which do not go with thinking"
        raise Refusal("best_of", f"'best_of' is not supported by {target.name}: {ranked}{unasked}.")
    for name in (*facts.thinking, *facts.thinking_refuses):
        if (why := why_not_thinking(name, request.params.get(name), facts)) is None:
            continue
        if name not in request.injected:
            raise Refusal(name, f"'{name}' is not supported by {target.name}: {why}{unasked}.")
        request = request.without({name})
    return request, ()


def _ranks(params: Params) -> bool:
    """Return whether the client wants the best of more candidates than it gets."""
    return (params.get("best_of") or 1) > (params.get("n") or 1)


def _asking(request: UnifiedRequest, target: Target) -> tuple[str, ...]:
    """Return the fields that ask the target's model to think."""
    params, extra = request.params, request.extra_params or {}
    if not extra and "thinking" not in params and "reasoning_effort" not in params:
        return ()
    added = [name for name in _MEMBERS if _is_on(extra.get(name))]
    if target.profile.dialect in _SETTLED:
        return tuple(added)
    given = [name for name in _FIELDS if _is_on(params.get(name))]
    if given:
        table = target.dialect.capabilities(request, target)
        given = [name for name in given if not table[name].refused]
    return tuple(dict.fromkeys((*given, *added)))


def _is_unsaid(request: UnifiedRequest) -> bool:
    """Return whether the client leaves it to the model whether it thinks."""
    extra = request.extra_params or {}
    return not any(request.params.get(name) is not None for name in _FIELDS) and extra.keys().isdisjoint(_MEMBERS)


def _is_on(value: object) -> bool:
    if not isinstance(value, Mapping):
        return value not in (None, "none", False, 0)
    if value.get("type") == "disabled" or value.get("enabled") is False or value.get("effort") == "none":
        return False
    return not _ASKING.isdisjoint(value)


def _forces_call(params: Params) -> bool:
    choice = params.get("tool_choice")
    if isinstance(choice, dict) and choice.get("type") == ALLOWED:
        held = choice.get(ALLOWED)
        choice = held.get("mode") if isinstance(held, dict) else None  # type: ignore[assignment]  # a word of a choice
    return bool(params.get("tools")) and (choice == "required" or isinstance(choice, dict))


def _without(request: UnifiedRequest, names: tuple[str, ...]) -> UnifiedRequest:
    extra = request.extra_params
    if extra is not None:
        extra = {name: value for name, value in extra.items() if name not in names}
    return replace(request.without(names), extra_params=extra)


def why_not_thinking(name: str, value: object, facts: ModelFacts) -> str | None:
    """Return why the model does not take the value of a field while it thinks, `None` if it does."""
    if value is None or is_neutral(name, value):
        return None
    if name in facts.thinking_refuses:
        return "it does not go with thinking"
    low, high = facts.thinking.get(name, (-math.inf, math.inf))
    if not isinstance(value, int | float) or low <= value <= high:
        return None
    return f"beside thinking it must be {low:g}" if low == high else f"beside thinking it must be at least {low:g}"
