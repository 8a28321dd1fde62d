"""Writes the reasoning settings of the models on Bedrock's Converse, and leaves them out if the model refuses them.

Claude has the field `thinking`, with effort words or with a budget, depending on the model. Other makers' models have
fields of their own. With a budget Claude refuses a conversation whose open tool calls lack the reasoning before them,
and a tool choice that requires a call. In these cases the request is sent without `thinking`.

Sources: pydantic-ai 2.68.0 `providers/bedrock` and `profiles/anthropic`; "Extended thinking" page of Anthropic; errors
quoted in public issue threads ("Expected `thinking` or `redacted_thinking`, but found `tool_use`"), November 2026.
"""

from collections.abc import Mapping
from typing import Final

from providers.adaptation.beside_thinking import why_not_thinking
from providers.dialects.anthropic.thinking import fit_thinking, honoured_fields, with_display
from providers.dialects.bedrock.converse_messages import BedrockConversation
from providers.dialects.bedrock.converse_models import ConverseModel, EffortWords
from providers.dialects.shared.request_body import FieldWriter, RequestBody
from providers.json_types import JsonObject, JsonValue
from providers.models.claude import (
    BUDGETS,
    EFFORT_WORDS,
    MIN_BUDGET,
    UNKNOWN,
    ClaudeModel,
    claude_model,
    fit_budget,
)
from providers.models.facts import model_facts

_MODEL_FIELDS: Final = "additionalModelRequestFields"
_THINKING: Final = f"{_MODEL_FIELDS}.thinking"
_INFERENCE: Final = "inferenceConfig"
_EFFORT_FIELD: Final = "reasoning_effort"

NO_REASONING: Final = "this model does not reason"

_TEXT_TOKENS = 4096
"""The tokens that are added to the reasoning budget for the text, if the request has no limit."""

_SAMPLING = ("temperature", "top_p")
_SAMPLING_PATHS: Final[Mapping[str, tuple[str, str]]] = {
    "temperature": (_INFERENCE, "temperature"),
    "top_p": (_INFERENCE, "topP"),
    "top_k": (_MODEL_FIELDS, "top_k"),
}
"""The parent object and the key of each sampling setting that `thinking` may exclude."""


def facts_of(draft: RequestBody) -> ClaudeModel:
    """Return the facts about a target's Claude model. If the model id does not show the model, the configured name
    decides."""
    target = draft.target
    first, second = target.model_names
    name = first if "claude" in first else second
    return claude_model(name)


def max_output(draft: RequestBody) -> int | None:
    """Return the highest token limit of a target's Claude model: the model's maximum or the configured maximum,
    whichever is higher. A beta may raise the model's maximum."""
    most = facts_of(draft).most_output
    return None if most is None else max(most, draft.target.max_output_tokens or 0)


def _word(draft: RequestBody, value: object) -> str:
    """Return the effort word for a value of `reasoning_effort`. Raises Refusal."""
    if value is False or value == "none":
        return "none"
    if value is True:
        return "medium"
    if isinstance(value, str) and value in EFFORT_WORDS:
        return value
    raise draft.invalid(_EFFORT_FIELD, f"must be 'none' or one of {', '.join(EFFORT_WORDS)}")


# Other makers ---------------------------------------------------------------------------------------------------------


def effort_writer(effort: EffortWords) -> FieldWriter:
    """Return a writer of `reasoning_effort` for a model family's own field."""

    def write(draft: RequestBody, value: object) -> None:
        word = _word(draft, value)
        wanted = effort.words[word]
        if effort.exclusive is not None and wanted == effort.exclusive and _limited(draft):
            wanted = effort.words["medium"]
            draft.emulated.append(_EFFORT_FIELD)
        elif not effort.exact(word):
            draft.emulated.append(_EFFORT_FIELD)
        draft.put(effort.path, wanted)

    return write


def _limited(draft: RequestBody) -> bool:
    """Return whether the client itself sent a token limit or sampling settings."""
    given = {"max_tokens", *_SAMPLING} & draft.params.keys()
    return bool(given - draft.request.injected)


# Claude ---------------------------------------------------------------------------------------------------------------


def claude_thinking(draft: RequestBody, value: object) -> None:
    """Write the client's `thinking` in the form that the model accepts."""
    given: JsonObject = dict(value) if isinstance(value, Mapping) else {}
    facts = facts_of(draft)
    if not isinstance(given.get("type"), str):
        # The vendor itself refuses such a value.
        draft.put(_THINKING, value)
        return
    settings = fit_thinking(draft, facts, given)
    if settings.adjustable and settings.budget is not None:
        _put_budget(draft, settings.budget, facts, "thinking")
    elif settings.thinking is not None:
        draft.put(_THINKING, settings.thinking)
    if settings.effort is not None and draft.params.get(_EFFORT_FIELD) in (None, False, "none"):
        draft.put("outputConfig.effort", settings.effort)


def claude_effort(draft: RequestBody, value: object) -> None:
    """Write `reasoning_effort` for a Claude model. Raises Refusal for a model that does not reason."""
    facts = facts_of(draft)
    if "thinking" in draft.params:
        _put_effort_beside_thinking(draft, value, facts)
    elif isinstance(value, int) and not isinstance(value, bool) and facts.budgets:
        _put_budget(draft, value, facts)
    elif (word := _word(draft, value)) == "none":
        _switch_off(draft, facts)
    elif "adaptive" in facts.thinking:
        display: JsonObject = {"display": "summarized"} if facts.blanks_thinking else {}
        draft.put(_THINKING, {"type": "adaptive", **display})
        _put_nearest(draft, word, facts.nearest_effort(word))
    elif "enabled" in facts.thinking:
        _put_budget(draft, BUDGETS[word], facts)
    else:
        raise draft.unsupported(_EFFORT_FIELD, NO_REASONING)


def _put_effort_beside_thinking(draft: RequestBody, value: object, facts: ClaudeModel) -> None:
    """Write the effort beside the client's own `thinking`, which decides whether the model reasons."""
    word = _word(draft, value)
    nearest = None if word == "none" or facts.budgets else facts.nearest_effort(word)
    if nearest is None:
        return
    limited = facts.high_at_most and draft.params["thinking"].get("type") in ("disabled", "between_tools")
    _put_nearest(draft, word, "high" if limited and nearest in ("xhigh", "max") else nearest)


def _put_nearest(draft: RequestBody, word: str, nearest: str | None) -> None:
    """Write the model's effort word. If this word differs from the client's word, the field is reported as emulated."""
    draft.put("outputConfig.effort", nearest)
    if nearest != word:
        draft.emulated.append(_EFFORT_FIELD)


def _switch_off(draft: RequestBody, facts: ClaudeModel) -> None:
    if not facts.always_thinks:
        if "disabled" in facts.thinking:
            draft.put(_THINKING, {"type": "disabled"})
        return
    if "between_tools" in facts.thinking:
        draft.put(_THINKING, {"type": "between_tools"})
        if draft.params.get("tools"):
            draft.emulated.append(_EFFORT_FIELD)
        return
    _put_nearest(draft, "none", facts.efforts[0])


def _put_budget(draft: RequestBody, budget: int, facts: ClaudeModel, field: str = _EFFORT_FIELD) -> None:
    """Write a budget below the token limit. If the limit is too small for the smallest budget, the field is dropped."""
    limit = draft.params.get("max_tokens") or draft.target.max_output_tokens
    if limit is not None:
        limit = min(limit, max_output(draft) or limit)
    else:
        limit = min(budget + _TEXT_TOKENS, facts.most_output or budget + _TEXT_TOKENS)
    if limit <= MIN_BUDGET:
        draft.dropped.append(field)
        return
    if "max_tokens" not in draft.params:
        draft.put(f"{_INFERENCE}.maxTokens", limit)
    draft.put(_THINKING, {"type": "enabled", "budget_tokens": fit_budget(budget, limit)})


# The whole request ----------------------------------------------------------------------------------------------------


def settle_thinking(draft: RequestBody, model: ConverseModel, conversation: BedrockConversation) -> None:
    """Leave out reasoning that conflicts with the rest of the request. Raises Refusal for a client's sampling setting
    that conflicts with it."""
    if model.claude:
        _settle_claude(draft, conversation)
    elif (
        (effort := model.effort) is not None
        and effort.exclusive is not None
        and _value_at(draft, effort.path) == effort.exclusive
    ):
        draft.body.pop(_INFERENCE, None)


def _settle_claude(draft: RequestBody, conversation: BedrockConversation) -> None:
    thinking = _value_at(draft, _THINKING)
    kind = thinking.get("type") if isinstance(thinking, dict) else None
    tools = draft.body.get("toolConfig")
    forced = isinstance(tools, dict) and "toolChoice" in tools
    if isinstance(thinking, dict):
        draft.put(_THINKING, with_display(draft, thinking))
    facts = facts_of(draft)
    refuses_forced = kind == "adaptive" and facts.unthinking_choice
    if (kind == "enabled" and (conversation.lacks_reasoning or forced)) or (refuses_forced and forced):
        _remove(draft, _MODEL_FIELDS, "thinking")
        # The service accepts an effort only beside adaptive `thinking`.
        _remove(draft, "outputConfig", "effort")
        draft.dropped.append("thinking" if "thinking" in draft.params else _EFFORT_FIELD)
        kind = None
    if kind in ("enabled", "adaptive") and facts.sampling:
        _check_sampling(draft)
    off = kind is None and facts is not UNKNOWN and not facts.thinks_unasked
    if (kind == "disabled" or off) and _remove_reasoning(draft):
        draft.dropped.append("thinking")


def honoured_display(draft: RequestBody) -> tuple[str, ...]:
    """Return the fields that the translation left out although the `thinking` that is sent honours them."""
    return () if draft.request.losses is None else honoured_fields(draft, _value_at(draft, _THINKING))


def _check_sampling(draft: RequestBody) -> None:
    """Remove injected settings that conflict with reasoning. Raises Refusal for a setting of the client that conflicts
    with it."""
    target = draft.target
    facts = model_facts(target.profile.model_host, *target.model_names)
    for name, (parent, key) in _SAMPLING_PATHS.items():
        if (why := why_not_thinking(name, draft.params.get(name), facts)) is None:
            continue
        if name not in draft.request.injected:
            raise draft.unsupported(name, why)
        _remove(draft, parent, key)


def _remove(draft: RequestBody, parent: str, name: str) -> None:
    """Remove a key from an object of the body, and the object if it is then empty."""
    parent_object = draft.body.get(parent)
    if isinstance(parent_object, dict):
        rest: JsonObject = {key: value for key, value in parent_object.items() if key != name}
        draft.body[parent] = rest
        if not rest:
            del draft.body[parent]


def _remove_reasoning(draft: RequestBody) -> bool:
    """Remove all reasoning blocks, and return whether there were any such blocks. If reasoning is off, the model
    refuses reasoning blocks in its own last turn and in a tool loop, and ignores all other reasoning blocks."""
    turns = draft.body.get("messages")
    found = False
    for turn in turns if isinstance(turns, list) else ():
        content = turn.get("content") if isinstance(turn, dict) else None
        if isinstance(turn, dict) and isinstance(content, list):
            rest = [each for each in content if not (isinstance(each, dict) and "reasoningContent" in each)]
            found = found or len(rest) < len(content)
            turn["content"] = rest
    return found


def _value_at(draft: RequestBody, path: str) -> JsonValue:
    found: JsonValue = draft.body
    for step in path.split("."):
        found = found.get(step) if isinstance(found, dict) else None
    return found
