"""Fits a request to a model that refuses some settings while reasoning is on, such as Claude at hosts with another API
than Anthropic's, and OpenAI's models from gpt-5.1 on.

Claude cannot think if a call is forced: the fields that request thinking are left out and reported as dropped. Sampling
settings that Anthropic refuses while reasoning is on are refused here too. The dialects of Anthropic's API apply these
rules themselves, since the rules also depend on the conversation and on the limit.

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

_DECIDING_DIALECTS: Final = frozenset({"anthropic", "anthropic_vertex", "bedrock", "bedrock_anthropic"})
"""Dialects that decide themselves whether the model thinks. For these dialects only the fields that the client adds to
the body are read here."""

_FIELDS: Final = ("thinking", "reasoning_effort")
_ADDED_FIELDS: Final = (*_FIELDS, "reasoning")
"""Names of fields that request thinking if the client adds them to the vendor's body."""

_REQUESTING_KEYS: Final = frozenset({"type", "enabled", "effort", "max_tokens", "budget_tokens"})


def fit_beside_thinking(
    request: UnifiedRequest, target: Target, facts: ModelFacts
) -> tuple[UnifiedRequest, tuple[str, ...]]:
    """Return the request in the form that the model accepts while it thinks (the same object if nothing changes), and
    the fields that were left out. Raises Refusal for a setting that the model does not accept while it thinks."""
    asked = _fields_requesting_thinking(request, target)
    if not asked and not (facts.thinks_unasked and _leaves_choice_to_model(request)):
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
    """Return whether candidates are ranked: `best_of` requests more candidates than the client receives."""
    return (params.get("best_of") or 1) > (params.get("n") or 1)


def _fields_requesting_thinking(request: UnifiedRequest, target: Target) -> tuple[str, ...]:
    """Return the fields that request thinking from the target's model."""
    params, extra = request.params, request.extra_params or {}
    if not extra and "thinking" not in params and "reasoning_effort" not in params:
        return ()
    added = [name for name in _ADDED_FIELDS if _is_on(extra.get(name))]
    if target.profile.dialect in _DECIDING_DIALECTS:
        return tuple(added)
    given = [name for name in _FIELDS if _is_on(params.get(name))]
    if given:
        table = target.dialect.capabilities(request, target)
        given = [name for name in given if not table[name].refused]
    return tuple(dict.fromkeys((*given, *added)))


def _leaves_choice_to_model(request: UnifiedRequest) -> bool:
    """Return whether the client leaves the choice of thinking to the model."""
    extra = request.extra_params or {}
    return not any(request.params.get(name) is not None for name in _FIELDS) and extra.keys().isdisjoint(_ADDED_FIELDS)


def _is_on(value: object) -> bool:
    if not isinstance(value, Mapping):
        return value not in (None, "none", False, 0)
    if value.get("type") == "disabled" or value.get("enabled") is False or value.get("effort") == "none":
        return False
    return not _REQUESTING_KEYS.isdisjoint(value)


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
    """Return the reason why the model does not accept the value of a field while it thinks; `None` if it accepts the
    value."""
    if value is None or is_neutral(name, value):
        return None
    if name in facts.thinking_refuses:
        return "it does not go with thinking"
    low, high = facts.thinking.get(name, (-math.inf, math.inf))
    if not isinstance(value, int | float) or low <= value <= high:
        return None
    return f"beside thinking it must be {low:g}" if low == high else f"beside thinking it must be at least {low:g}"
