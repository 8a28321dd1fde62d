"""Writers of the settings of thinking, `reasoning_effort` and Anthropic's `thinking`, by what the model takes.

What a model cannot do exactly becomes the nearest setting that it takes, and is named as emulated. A model that does
not think is only refused an effort: `none` is what it does.

Sources: see `providers.dialects.gemini.models`; the errors "Thinking is not enabled for this model" and "Budget 0 is
invalid. This model only works in thinking mode." as pydantic-ai 2.68.0 records them, November 2026.
"""

from collections.abc import Mapping

from providers.dialects.gemini.model_path import service_of
from providers.dialects.gemini.models import BUDGETS, STOPS_ON_VERTEX, WORDS, ThinkingRule, thinking_rule
from providers.dialects.shared.request_body import FieldWriter, RequestBody
from providers.target import Target

_CONFIG = "generationConfig.thinkingConfig"
_EFFORT, _THINKING = "reasoning_effort", "thinking"
_SILENT = "the model does not think"


def rule_of(target: Target) -> ThinkingRule:
    """Return how a target's model is told how much to think."""
    return thinking_rule(*target.model_names)


def _put_effort(draft: RequestBody, value: object) -> None:
    rule = rule_of(draft.target)
    if value is True:
        return  # the model's default
    if isinstance(value, int) and not isinstance(value, bool):
        _put_budget(draft, rule, _EFFORT, value)
        if value != 0:
            _show(draft)
        return
    word = "none" if value is False else value
    if not isinstance(word, str) or word not in WORDS:
        raise draft.invalid(_EFFORT, f"must be one of {', '.join(WORDS)}, or a number of tokens")
    _put_word(draft, rule, _EFFORT, word)
    if word != "none":
        _show(draft)


def _show(draft: RequestBody) -> None:
    """Ask for the thoughts, which the answer's `reasoning_content` is made of."""
    draft.put(f"{_CONFIG}.includeThoughts", True)


def _put_word(draft: RequestBody, rule: ThinkingRule, field: str, word: str) -> None:
    if word == "none" and _stops_on_vertex(draft.target):
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


def _put_budget(draft: RequestBody, rule: ThinkingRule, field: str, tokens: int) -> None:
    # Models with levels take a budget in their place, and see to its bounds themselves.
    budget = tokens if rule.levels else rule.budget(tokens)
    if budget >= (draft.params.get("max_tokens") or budget + 1):
        budget = _below_limit(draft, rule, budget)
    draft.put(f"{_CONFIG}.thinkingBudget", budget)
    if budget != tokens:
        draft.emulated.append(field)


def _below_limit(draft: RequestBody, rule: ThinkingRule, budget: int) -> int:
    """Return a budget of at most half the answer's limit, which counts thinking, or the least that the model takes."""
    limit = draft.params.get("max_tokens")
    return budget if limit is None or budget <= 0 else min(budget, max(rule.least, limit // 2, 1))


def _stops_on_vertex(target: Target) -> bool:
    names = target.model_names
    return service_of(target) == "vertex" and any(STOPS_ON_VERTEX.search(name) for name in names)


def _put_thinking(draft: RequestBody, value: object) -> None:
    """Write Anthropic's form of the setting, whose clients expect the thoughts in the answer."""
    match value:
        case {"type": "enabled" | "adaptive", **rest}:
            budget = rest.get("budget_tokens")
            if isinstance(budget, int):
                _put_budget(draft, rule_of(draft.target), _THINKING, budget)
            _show(draft)
        case {"type": "disabled"}:
            _put_word(draft, rule_of(draft.target), _THINKING, "none")
        case _:
            raise draft.invalid(_THINKING, "must have the type 'enabled', 'adaptive' or 'disabled'")


def _refuse_effort(draft: RequestBody, value: object) -> None:
    if value not in ("none", False, 0):
        raise draft.unsupported(_EFFORT, _SILENT)


def _refuse_thinking(draft: RequestBody, value: object) -> None:
    if not isinstance(value, dict) or value.get("type") != "disabled":
        raise draft.unsupported(_THINKING, _SILENT)


THINKING: Mapping[str, FieldWriter] = {_EFFORT: _put_effort, _THINKING: _put_thinking}
"""Writers for models that think."""

NO_THINKING: Mapping[str, FieldWriter] = {_EFFORT: _refuse_effort, _THINKING: _refuse_thinking}
"""Writers for models that do not."""

SILENT_REASON = _SILENT
