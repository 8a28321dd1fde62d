"""Writes Claude's reasoning fields `thinking`, `output_config.effort` and `max_tokens`. These fields depend on each
other, on the model and on the conversation.

The vendor refuses `thinking` with a budget in three cases: in a tool loop that began without reasoning, if the
conversation ends in a text of the model that is to be continued, and beside a forced tool call. Beside a forced call
some models refuse every type of `thinking`. In these cases the request is sent without `thinking`, and
`x-dragoman-dropped` names the field. If such requests failed, a client that does not send `thinking` blocks back could
not use tools. A replaced setting is reported as emulated.

Sources: `anthropic` 2.12.0 type `ThinkingConfigParam`; "Extended thinking", "Adaptive thinking", "Effort", "Preserved
thinking" and "Errors" pages, November 2026; pydantic-ai 2.68.0 and litellm 1.109.1 for the budget of each effort word.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from providers.dialects.anthropic.blocks import is_thinking
from providers.dialects.anthropic.messages import Conversation
from providers.dialects.anthropic.tools import forces_call
from providers.dialects.shared.request_body import RequestBody
from providers.json_types import JsonObject, JsonValue
from providers.models.claude import (
    BUDGETS,
    EFFORT_WORDS,
    MIN_BUDGET,
    UNKNOWN,
    ClaudeModel,
    fit_budget,
)
from providers.target import Target
from providers.unified_request import DISPLAY, Params

EFFORT, THINKING = "reasoning_effort", "thinking"
_KNOWN_DISPLAYS = ("summarized", "omitted")
NO_REASONING = "this model does not reason"

BINDING_BETA = "thinking-binding-controls-2026-08-01"
"""The beta that `thinking.block_binding` requires. Without it the vendor refuses the field."""

TEXT_TOKENS = 4096
"""The tokens that are added to the reasoning budget for the text, if the gateway chooses the limit (pydantic-ai's
number)."""


@dataclass(slots=True)
class ThinkingSettings:
    """The reasoning settings of a request as it is sent.

    `thinking` is the vendor's field, or `None` for the model's default. `effort` is the effort word. `field` is the
    unified field that requested reasoning. `adjustable` is true if the gateway chose the budget, so that it may be made
    smaller.
    """

    thinking: JsonObject | None = None
    effort: str | None = None
    field: str = THINKING
    adjustable: bool = False

    @property
    def budget(self) -> int | None:
        """The reasoning budget in tokens, or `None` without a budget."""
        budget = self.thinking.get("budget_tokens") if self.thinking else None
        return budget if isinstance(budget, int) and self.kind == "enabled" else None

    @property
    def kind(self) -> JsonValue:
        """The type of `thinking`."""
        return self.thinking.get("type") if self.thinking else None


def fit_thinking(draft: RequestBody, model: ClaudeModel, thinking: JsonObject) -> ThinkingSettings:
    """Return the settings that replace a client's `thinking` on the model, for other APIs that have the same field. An
    inexact replacement is reported as emulated."""
    settings = ThinkingSettings({**thinking})
    _fit_type(draft, model, settings)
    return settings


def with_display(draft: RequestBody, thinking: JsonObject) -> JsonObject:
    """Return `thinking` with the `display` that the client of the Messages API requested, if its type is adaptive."""
    losses = draft.request.losses
    display = losses.display if losses is not None else None
    if thinking.get("type") != "adaptive" or display not in _KNOWN_DISPLAYS:
        return thinking
    return {**thinking, "display": display}


def honoured_fields(draft: RequestBody, thinking: JsonValue) -> tuple[str, ...]:
    """Return the fields that the translation left out although the `thinking` that is sent honours them."""
    losses, display = draft.request.losses, thinking.get("display") if isinstance(thinking, dict) else None
    return (DISPLAY,) if losses is not None and display is not None and display == losses.display else ()


def needed_betas(params: Params) -> Mapping[str, str]:
    """Return the headers that the requested `thinking` requires."""
    thinking = params.get("thinking")
    return {"anthropic-beta": BINDING_BETA} if thinking and "block_binding" in thinking else {}


def put_limit(draft: RequestBody, model: ClaudeModel) -> None:
    """Write `max_tokens`: the client's limit, else the configured limit, else the model's usual limit. The value is at
    most the model's maximum."""
    limit = draft.params.get("max_tokens", draft.target.max_output_tokens)
    if limit is None:
        draft.body["max_tokens"] = model.usual_output
        return
    if limit < 1:
        raise draft.invalid("max_tokens", "must be at least 1")
    draft.body["max_tokens"] = lowered = limit_within(draft.target, model, limit)
    if lowered < limit:
        draft.emulated.append("max_tokens")


def limit_within(target: Target, model: ClaudeModel, limit: int) -> int:
    """Return the limit, lowered to the model's maximum or to the configured maximum, whichever is higher: a beta may
    raise the model's maximum."""
    return min(limit, max(model.most_output or limit, target.max_output_tokens or 0))


def put_thinking(draft: RequestBody, model: ClaudeModel, conversation: Conversation) -> None:
    """Write `thinking` and `output_config.effort`. The conversation, the tools and the limit must be written before.

    Raises Refusal for an effort that the model cannot express.
    """
    settings = _requested_settings(draft, model)
    _fit_to_request(draft, model, settings, conversation.turns)
    if settings.thinking is not None:
        draft.body["thinking"] = with_display(draft, settings.thinking)
    if settings.effort is not None:
        draft.put("output_config.effort", settings.effort)
    # If reasoning is off, the vendor refuses `thinking` blocks in the last turn and ignores all other `thinking`
    # blocks.
    if _is_off(settings, model) and conversation.without_thinking():
        draft.dropped.append(THINKING)


def fit_client_thinking(draft: RequestBody, model: ClaudeModel, turns: Sequence[JsonObject]) -> bool:
    """Change `thinking` and `output_config.effort` of a client's own body to the form that the model accepts. Return
    whether the requested `thinking` had to be dropped.

    The client knows the rules of the model that it named, but does not know the model to which the gateway routes the
    request.
    """
    given = draft.body.get("thinking")
    if not isinstance(given, dict) or not isinstance(given.get("type"), str):
        # The vendor itself refuses such a value.
        _fit_effort(draft, model, ThinkingSettings())
        return False
    del draft.body["thinking"]
    settings = ThinkingSettings({**given})
    _fit_type(draft, model, settings)
    if settings.budget is not None and "max_tokens" in draft.emulated:
        # The gateway lowered the limit, so it may lower the budget too.
        settings.adjustable = True
    before = len(draft.dropped)
    _fit_to_request(draft, model, settings, turns)
    _fit_effort(draft, model, settings)
    if settings.thinking is not None:
        draft.body["thinking"] = settings.thinking
    return len(draft.dropped) > before


def _fit_effort(draft: RequestBody, model: ClaudeModel, settings: ThinkingSettings) -> None:
    """Write the effort word of the model that is nearest to the client's word. If the client sent no word, write the
    word that replaces its `thinking`, if there is such a word."""
    config = draft.body.get("output_config")
    word = config.get("effort") if isinstance(config, dict) else None
    if isinstance(config, dict) and isinstance(word, str) and word in EFFORT_WORDS:
        settings.effort = word if model is UNKNOWN else model.nearest_effort(word)
        if _lower_effort(model, settings) or settings.effort != word:
            draft.emulated.append("output_config.effort")
        rest = {name: value for name, value in config.items() if name != "effort"}
        draft.body["output_config"] = rest
        if not rest and settings.effort is None:
            del draft.body["output_config"]
    if settings.effort is not None:
        draft.put("output_config.effort", settings.effort)


def _fit_to_request(
    draft: RequestBody, model: ClaudeModel, settings: ThinkingSettings, turns: Sequence[JsonObject]
) -> None:
    """Fit the settings to the tool choice, the conversation and the limit."""
    forced = forces_call(draft.body.get("tool_choice"))
    if settings.kind == "enabled":
        if forced or _loop_lacks_thinking(turns):
            _drop_thinking(draft, settings)
        else:
            _fit_budget(draft, model, settings)
    elif settings.kind == "adaptive" and forced and model.unthinking_choice:
        _drop_thinking(draft, settings)


def samples_freely(draft: RequestBody) -> bool:
    """Return whether a body is sent without reasoning. Reasoning restricts the sampling settings."""
    thinking = draft.body.get("thinking")
    return not isinstance(thinking, dict) or thinking.get("type") == "disabled"


def _requested_settings(draft: RequestBody, model: ClaudeModel) -> ThinkingSettings:
    thinking, effort = draft.params.get("thinking"), draft.params.get("reasoning_effort")
    settings = ThinkingSettings(None if thinking is None else {**thinking})
    _fit_type(draft, model, settings)
    if effort is None:
        return settings
    if isinstance(effort, str) and effort in BUDGETS:
        _set_by_word(draft, model, settings, effort)
    elif effort is False or effort == "none":
        _switch_off(draft, model, settings, EFFORT)
    elif isinstance(effort, int) and not isinstance(effort, bool) and "enabled" in model.thinking and effort > 0:
        if thinking is None:
            settings.thinking, settings.field, settings.adjustable = _enabled(max(effort, MIN_BUDGET)), EFFORT, True
    else:
        raise draft.invalid(EFFORT, f"must be 'none' or one of {', '.join(EFFORT_WORDS)}")
    return settings


def _fit_type(draft: RequestBody, model: ClaudeModel, settings: ThinkingSettings) -> None:
    """Change the client's `thinking` to a type that the model accepts, because a request may be routed to another model
    than the client named."""
    kind = settings.kind
    if kind is None or kind in model.thinking or not model.thinking:
        return
    if kind == "enabled":
        settings.thinking = _adaptive(model)
    elif kind == "adaptive":
        word = draft.params.get("reasoning_effort")
        budget = BUDGETS.get(word, 0) if isinstance(word, str) else 0
        settings.thinking, settings.adjustable = _enabled(budget or BUDGETS["medium"]), True
    elif kind == "disabled":
        settings.thinking = None
        _switch_off(draft, model, settings, THINKING)
        return
    else:
        return
    draft.emulated.append(THINKING)


def _adaptive(model: ClaudeModel) -> JsonObject:
    return {"type": "adaptive", **({"display": "summarized"} if model.blanks_thinking else {})}


def _set_by_word(draft: RequestBody, model: ClaudeModel, settings: ThinkingSettings, word: str) -> None:
    settings.effort = model.nearest_effort(word)
    if settings.effort not in (None, word):
        draft.emulated.append(EFFORT)
    if settings.thinking is None and model is not UNKNOWN:
        if model.budgets:
            settings.thinking, settings.field, settings.adjustable = _enabled(BUDGETS[word]), EFFORT, True
        elif "adaptive" in model.thinking:
            settings.thinking, settings.field = _adaptive(model), EFFORT
        else:
            raise draft.unsupported(EFFORT, NO_REASONING)
    if _lower_effort(model, settings):
        draft.emulated.append(EFFORT)


def _lower_effort(model: ClaudeModel, settings: ThinkingSettings) -> bool:
    """Lower the effort word to `high` if the model accepts higher words only with reasoning. Return whether this was
    needed."""
    limited = settings.kind in ("disabled", "between_tools") and model.high_at_most
    if limited and settings.effort in ("xhigh", "max"):
        settings.effort = "high"
        return True
    return False


def _switch_off(draft: RequestBody, model: ClaudeModel, settings: ThinkingSettings, field: str) -> None:
    """Switch reasoning off. If the model always reasons, request as little reasoning as possible and report the field
    as emulated."""
    if settings.thinking is not None:
        return
    if "disabled" in model.thinking:
        settings.thinking = {"type": "disabled"}
    elif "between_tools" in model.thinking:
        settings.thinking = {"type": "between_tools"}
        if "tools" in draft.body:
            draft.emulated.append(field)
    elif model.always_thinks:
        settings.effort = model.nearest_effort("low")
        draft.emulated.append(field)


def _enabled(budget: int) -> JsonObject:
    return {"type": "enabled", "budget_tokens": budget}


def _fit_budget(draft: RequestBody, model: ClaudeModel, settings: ThinkingSettings) -> None:
    """Fit the limit and the budget to each other.

    A limit that the client did not give grows with the budget. An adjustable budget shrinks below the limit. If the
    limit is too small for the smallest budget, `thinking` is dropped.
    """
    limit, budget = draft.body["max_tokens"], settings.budget
    if not isinstance(limit, int) or budget is None:
        return
    if draft.params.get("max_tokens", draft.target.max_output_tokens) is None:
        limit = max(limit, budget + TEXT_TOKENS)
        limit = draft.body["max_tokens"] = min(limit, model.most_output or limit)
    if not settings.adjustable:
        return
    if limit <= MIN_BUDGET:
        _drop_thinking(draft, settings)
    else:
        settings.thinking = _enabled(fit_budget(budget, limit))


def _drop_thinking(draft: RequestBody, settings: ThinkingSettings) -> None:
    draft.dropped.append(settings.field)
    settings.thinking = None


def _is_off(settings: ThinkingSettings, model: ClaudeModel) -> bool:
    if settings.thinking is None:
        return model is not UNKNOWN and not model.thinks_unasked
    return settings.kind == "disabled"


def _loop_lacks_thinking(turns: Sequence[JsonObject]) -> bool:
    """Return whether, since the last user message, neither the first nor the last turn of the model begins with a
    `thinking` block.

    Without interleaved thinking the vendor's model reasons only in the first turn of a loop.
    """
    first = last = None
    for turn in reversed(turns):
        if turn["role"] == "assistant":
            first = turn
            last = last or turn
        elif not _holds_result(turn["content"]):
            break
    return last is not None and not (_begins_with_thinking(first) or _begins_with_thinking(last))


def _holds_result(content: JsonValue) -> bool:
    blocks = content if isinstance(content, list) else []
    return any(isinstance(block, dict) and block.get("type") == "tool_result" for block in blocks)


def _begins_with_thinking(turn: JsonObject | None) -> bool:
    content = turn["content"] if turn is not None else None
    return isinstance(content, list) and bool(content) and is_thinking(content[0])
