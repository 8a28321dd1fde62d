"""Thinking on Anthropic's wire: `thinking`, `output_config.effort` and `max_tokens`, which depend on each other, on the
model and on what the conversation holds.

The vendor refuses thinking with a budget in a tool loop that began without thinking, behind a text of the model that is
to be continued, and beside a forced call, where some models refuse all thinking. In these cases the request goes
without, and the field is named in `x-dragoman-dropped`: a client that does not send thinking back could not use tools
otherwise. A setting that another stands for is named as emulated.

Sources: `anthropic` 2.12.0 type `ThinkingConfigParam`; "Extended thinking", "Adaptive thinking", "Effort", "Preserved
thinking" and "Errors" pages, November 2026; pydantic-ai 2.68.0 and litellm 1.109.1 for budgets by word.
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
_DISPLAYS = ("summarized", "omitted")
NO_THINKING = "this model does not think before it answers"

BINDING_BETA = "thinking-binding-controls-2026-08-01"
"""The beta that `thinking.block_binding` belongs to; without it the member is refused."""

ROOM = 4096
"""Tokens for the text behind a budget of thinking, where the limit is ours to choose (pydantic-ai's number)."""


@dataclass(slots=True)
class ThinkingWish:
    """What a request asks for: the native `thinking` (None: the model's own habit), the word of effort, and the field
    that asked for thinking. `ours` says that the budget was made from a word, so that it may be made smaller."""

    thinking: JsonObject | None = None
    effort: str | None = None
    field: str = THINKING
    ours: bool = False

    @property
    def budget(self) -> int | None:
        """The tokens of thinking, where they are limited."""
        budget = self.thinking.get("budget_tokens") if self.thinking else None
        return budget if isinstance(budget, int) and self.kind == "enabled" else None

    @property
    def kind(self) -> JsonValue:
        """The type of thinking."""
        return self.thinking.get("type") if self.thinking else None


def suited_thinking(draft: RequestBody, model: ClaudeModel, thinking: JsonObject) -> ThinkingWish:
    """Return what stands for a client's `thinking` on the model, for other APIs that have the member too. What says it
    only nearly is named as emulated."""
    wish = ThinkingWish({**thinking})
    _suit(draft, model, wish)
    return wish


def with_display(draft: RequestBody, thinking: JsonObject) -> JsonObject:
    """Return adaptive thinking, shown as a client of the Messages API wants it."""
    losses = draft.request.losses
    wanted = losses.display if losses is not None else None
    if thinking.get("type") != "adaptive" or wanted not in _DISPLAYS:
        return thinking
    return {**thinking, "display": wanted}


def honoured(draft: RequestBody, thinking: JsonValue) -> tuple[str, ...]:
    """Return what `thinking` as it is sent says of what the translation left out."""
    losses, shown = draft.request.losses, thinking.get("display") if isinstance(thinking, dict) else None
    return (DISPLAY,) if losses is not None and shown is not None and shown == losses.display else ()


def needed_betas(params: Params) -> Mapping[str, str]:
    """Return the headers that the thinking asked for requires."""
    own = params.get("thinking")
    return {"anthropic-beta": BINDING_BETA} if own and "block_binding" in own else {}


def put_limit(draft: RequestBody, model: ClaudeModel) -> None:
    """Write `max_tokens`: the client's limit, the table's or the model's usual one, and no more than the model can."""
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
    """Return a limit that is no more than the model can. The table knows better: a beta may raise what it can."""
    return min(limit, max(model.most_output or limit, target.max_output_tokens or 0))


def put_thinking(draft: RequestBody, model: ClaudeModel, conversation: Conversation) -> None:
    """Write `thinking` and `output_config.effort`, once the conversation, the tools and the limit are written.

    Raises Refusal for an effort that the model has no form of.
    """
    wish = _wished(draft, model)
    _settle(draft, model, wish, conversation.turns)
    if wish.thinking is not None:
        draft.body["thinking"] = with_display(draft, wish.thinking)
    if wish.effort is not None:
        draft.put("output_config.effort", wish.effort)
    # Beside switched-off thinking the vendor refuses blocks in the last turn and ignores all others.
    if _is_off(wish, model) and conversation.without_thinking():
        draft.dropped.append(THINKING)


def suit_thinking(draft: RequestBody, model: ClaudeModel, turns: Sequence[JsonObject]) -> bool:
    """Give `thinking` and `output_config.effort` of a client's own body the form that the model has, and return whether
    the call has to go without the thinking that was asked for.

    The client knows what its own model takes, but not to which one a route leads.
    """
    given = draft.body.get("thinking")
    if not isinstance(given, dict) or not isinstance(given.get("type"), str):
        # The vendor refuses it itself.
        _suit_effort(draft, model, ThinkingWish())
        return False
    del draft.body["thinking"]
    wish = ThinkingWish({**given})
    _suit(draft, model, wish)
    if wish.budget is not None and "max_tokens" in draft.emulated:
        # The limit is ours, so the budget may be made smaller.
        wish.ours = True
    before = len(draft.dropped)
    _settle(draft, model, wish, turns)
    _suit_effort(draft, model, wish)
    if wish.thinking is not None:
        draft.body["thinking"] = wish.thinking
    return len(draft.dropped) > before


def _suit_effort(draft: RequestBody, model: ClaudeModel, wish: ThinkingWish) -> None:
    """Write the nearest word that the model has for the client's; one that only the client's thinking asks for goes
    behind it."""
    config = draft.body.get("output_config")
    word = config.get("effort") if isinstance(config, dict) else None
    if isinstance(config, dict) and isinstance(word, str) and word in EFFORT_WORDS:
        wish.effort = word if model is UNKNOWN else model.nearest_effort(word)
        if _restrain(model, wish) or wish.effort != word:
            draft.emulated.append("output_config.effort")
        rest = {name: value for name, value in config.items() if name != "effort"}
        draft.body["output_config"] = rest
        if not rest and wish.effort is None:
            del draft.body["output_config"]
    if wish.effort is not None:
        draft.put("output_config.effort", wish.effort)


def _settle(draft: RequestBody, model: ClaudeModel, wish: ThinkingWish, turns: Sequence[JsonObject]) -> None:
    """Fit what is wished to the choice of tools, the conversation and the limit."""
    forced = forces_call(draft.body.get("tool_choice"))
    if wish.kind == "enabled":
        if forced or _loop_lacks_thinking(turns):
            _leave_out(draft, wish)
        else:
            _fit_budget(draft, model, wish)
    elif wish.kind == "adaptive" and forced and model.unthinking_choice:
        _leave_out(draft, wish)


def samples_freely(draft: RequestBody) -> bool:
    """Return whether a body goes without thinking, which allows one way of sampling only."""
    thinking = draft.body.get("thinking")
    return not isinstance(thinking, dict) or thinking.get("type") == "disabled"


def _wished(draft: RequestBody, model: ClaudeModel) -> ThinkingWish:
    own, effort = draft.params.get("thinking"), draft.params.get("reasoning_effort")
    wish = ThinkingWish(None if own is None else {**own})
    _suit(draft, model, wish)
    if effort is None:
        return wish
    if isinstance(effort, str) and effort in BUDGETS:
        _ask_by_word(draft, model, wish, effort)
    elif effort is False or effort == "none":
        _ask_for_none(draft, model, wish, EFFORT)
    elif isinstance(effort, int) and not isinstance(effort, bool) and "enabled" in model.thinking and effort > 0:
        if own is None:
            wish.thinking, wish.field, wish.ours = _enabled(max(effort, MIN_BUDGET)), EFFORT, True
    else:
        raise draft.invalid(EFFORT, f"must be 'none' or one of {', '.join(EFFORT_WORDS)}")
    return wish


def _suit(draft: RequestBody, model: ClaudeModel, wish: ThinkingWish) -> None:
    """Give the client's own thinking the type that the model has, for requests that move between models."""
    kind = wish.kind
    if kind is None or kind in model.thinking or not model.thinking:
        return
    if kind == "enabled":
        wish.thinking = _adaptive(model)
    elif kind == "adaptive":
        word = draft.params.get("reasoning_effort")
        budget = BUDGETS.get(word, 0) if isinstance(word, str) else 0
        wish.thinking, wish.ours = _enabled(budget or BUDGETS["medium"]), True
    elif kind == "disabled":
        wish.thinking = None
        _ask_for_none(draft, model, wish, THINKING)
        return
    else:
        return
    draft.emulated.append(THINKING)


def _adaptive(model: ClaudeModel) -> JsonObject:
    return {"type": "adaptive", **({"display": "summarized"} if model.blanks_thinking else {})}


def _ask_by_word(draft: RequestBody, model: ClaudeModel, wish: ThinkingWish, word: str) -> None:
    wish.effort = model.nearest_effort(word)
    if wish.effort not in (None, word):
        draft.emulated.append(EFFORT)
    if wish.thinking is None and model is not UNKNOWN:
        if model.budgets:
            wish.thinking, wish.field, wish.ours = _enabled(BUDGETS[word]), EFFORT, True
        elif "adaptive" in model.thinking:
            wish.thinking, wish.field = _adaptive(model), EFFORT
        else:
            raise draft.unsupported(EFFORT, NO_THINKING)
    if _restrain(model, wish):
        draft.emulated.append(EFFORT)


def _restrain(model: ClaudeModel, wish: ThinkingWish) -> bool:
    """Lower the word of effort where the model takes it only beside thinking, and return whether that was needed."""
    restrained = wish.kind in ("disabled", "between_tools") and model.high_at_most
    if restrained and wish.effort in ("xhigh", "max"):
        wish.effort = "high"
        return True
    return False


def _ask_for_none(draft: RequestBody, model: ClaudeModel, wish: ThinkingWish, field: str) -> None:
    """Switch thinking off, or ask for as little as the model can do with, which is named as emulated."""
    if wish.thinking is not None:
        return
    if "disabled" in model.thinking:
        wish.thinking = {"type": "disabled"}
    elif "between_tools" in model.thinking:
        wish.thinking = {"type": "between_tools"}
        if "tools" in draft.body:
            draft.emulated.append(field)
    elif model.always_thinks:
        wish.effort = model.nearest_effort("low")
        draft.emulated.append(field)


def _enabled(budget: int) -> JsonObject:
    return {"type": "enabled", "budget_tokens": budget}


def _fit_budget(draft: RequestBody, model: ClaudeModel, wish: ThinkingWish) -> None:
    """Make limit and budget fit: a limit that nobody gave grows with the budget, a budget of ours shrinks below the
    limit, and a limit that leaves no room for the smallest one means no thinking."""
    limit, budget = draft.body["max_tokens"], wish.budget
    if not isinstance(limit, int) or budget is None:
        return
    if draft.params.get("max_tokens", draft.target.max_output_tokens) is None:
        limit = max(limit, budget + ROOM)
        limit = draft.body["max_tokens"] = min(limit, model.most_output or limit)
    if not wish.ours:
        return
    if limit <= MIN_BUDGET:
        _leave_out(draft, wish)
    else:
        wish.thinking = _enabled(fit_budget(budget, limit))


def _leave_out(draft: RequestBody, wish: ThinkingWish) -> None:
    draft.dropped.append(wish.field)
    wish.thinking = None


def _is_off(wish: ThinkingWish, model: ClaudeModel) -> bool:
    if wish.thinking is None:
        return model is not UNKNOWN and not model.thinks_unasked
    return wish.kind == "disabled"


def _loop_lacks_thinking(turns: Sequence[JsonObject]) -> bool:
    """Return whether the model's turns since the user last spoke neither begin with thinking nor end in one that does.

    Without interleaved thinking the vendor's model thinks in the first turn of a loop only.
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
