"""Writers of the reasoning settings, `reasoning_effort` and Anthropic's `thinking`, by the rules of the model.

A setting that a model cannot honour exactly becomes the nearest setting that the model accepts, and is reported as
emulated. For a model that does not reason, every effort except `none` is refused.

Sources: the sources of `providers.dialects.gemini.models`; the errors "Thinking is not enabled for this model" and
"Budget 0 is invalid. This model only works in thinking mode." as quoted in pydantic-ai 2.68.0, November 2026.
"""

from collections.abc import Mapping

from providers.dialects.gemini.model_path import service_of
from providers.dialects.gemini.models import BUDGETS, EFFORT_WORDS, ZERO_BUDGET_ON_VERTEX, ReasoningRule, reasoning_rule
from providers.dialects.shared.request_body import FieldWriter, RequestBody
from providers.target import Target

_CONFIG = "generationConfig.thinkingConfig"
_EFFORT, _THINKING = "reasoning_effort", "thinking"
NO_REASONING = "the model does not reason"


def rule_of(target: Target) -> ReasoningRule:
    """Return the rule for the reasoning settings of a target's model."""
    return reasoning_rule(*target.model_names)


def _put_effort(draft: RequestBody, value: object) -> None:
    rule = rule_of(draft.target)
    if value is True:
        return  # the model's default counts
    if isinstance(value, int) and not isinstance(value, bool):
        _put_budget(draft, rule, _EFFORT, value)
        if value != 0:
            _request_thoughts(draft)
        return
    word = "none" if value is False else value
    if not isinstance(word, str) or word not in EFFORT_WORDS:
        raise draft.invalid(_EFFORT, f"must be one of {', '.join(EFFORT_WORDS)}, or a number of tokens")
    _put_word(draft, rule, _EFFORT, word)
    if word != "none":
        _request_thoughts(draft)


def _request_thoughts(draft: RequestBody) -> None:
    """Request the vendor's thoughts, which become the response's `reasoning_content`."""
    draft.put(f"{_CONFIG}.includeThoughts", True)


def _put_word(draft: RequestBody, rule: ReasoningRule, field: str, word: str) -> None:
    if word == "none" and _takes_zero_budget(draft.target):
        draft.put(f"{_CONFIG}.thinkingBudget", 0)
    elif rule.levels:
        level, exact = rule.level(word)
        draft.put(f"{_CONFIG}.thinkingLevel", level)
        if not exact:
            draft.emulated.append(field)
    else:
        tokens = rule.budget(BUDGETS[word])
        draft.put(f"{_CONFIG}.thinkingBudget", _below_limit(draft, rule, tokens))
        if tokens != BUDGETS[word]:
            draft.emulated.append(field)


def _put_budget(draft: RequestBody, rule: ReasoningRule, field: str, tokens: int) -> None:
    # Models with levels also accept a budget, and apply its bounds themselves.
    budget = tokens if rule.levels else rule.budget(tokens)
    if budget >= (draft.params.get("max_tokens") or budget + 1):
        budget = _below_limit(draft, rule, budget)
    draft.put(f"{_CONFIG}.thinkingBudget", budget)
    if budget != tokens:
        draft.emulated.append(field)


def _below_limit(draft: RequestBody, rule: ReasoningRule, budget: int) -> int:
    """Return the budget, lowered to half the token limit, which includes reasoning, but at least the model's
    minimum."""
    limit = draft.params.get("max_tokens")
    return budget if limit is None or budget <= 0 else min(budget, max(rule.least, limit // 2, 1))


def _takes_zero_budget(target: Target) -> bool:
    names = target.model_names
    return service_of(target) == "vertex" and any(ZERO_BUDGET_ON_VERTEX.search(name) for name in names)


def _put_thinking(draft: RequestBody, value: object) -> None:
    """Write Anthropic's `thinking`. Clients that send it expect the reasoning in the response."""
    match value:
        case {"type": "enabled" | "adaptive", **rest}:
            budget = rest.get("budget_tokens")
            if isinstance(budget, int):
                _put_budget(draft, rule_of(draft.target), _THINKING, budget)
            _request_thoughts(draft)
        case {"type": "disabled"}:
            _put_word(draft, rule_of(draft.target), _THINKING, "none")
        case _:
            raise draft.invalid(_THINKING, "must have the type 'enabled', 'adaptive' or 'disabled'")


def _refuse_effort(draft: RequestBody, value: object) -> None:
    if value not in ("none", False, 0):
        raise draft.unsupported(_EFFORT, NO_REASONING)


def _refuse_thinking(draft: RequestBody, value: object) -> None:
    if not isinstance(value, dict) or value.get("type") != "disabled":
        raise draft.unsupported(_THINKING, NO_REASONING)


REASONING_WRITERS: Mapping[str, FieldWriter] = {_EFFORT: _put_effort, _THINKING: _put_thinking}
"""Writers of the reasoning settings for models that reason."""

REFUSING_WRITERS: Mapping[str, FieldWriter] = {_EFFORT: _refuse_effort, _THINKING: _refuse_thinking}
"""Writers that refuse the reasoning settings, for models that do not reason."""
