"""How much a model on Bedrock's Converse is to reason, and when its reasoning must be left out.

Claude thinks by `thinking`, with words of effort or with a budget by model; other makers' models have a member of their
own. Claude with a budget refuses a conversation whose open calls came without the thinking before them, and a choice
that demands a call; then the request goes without thinking.

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

_OWN: Final = "additionalModelRequestFields"
_THINKING: Final = f"{_OWN}.thinking"
_INFERENCE: Final = "inferenceConfig"
_FIELD: Final = "reasoning_effort"

NO_REASONING: Final = "this model does not reason"

_ROOM = 4096
"""Tokens for the text beside a budget of thinking, where nobody gave a limit."""

_SAMPLING = ("temperature", "top_p")
_SAMPLERS: Final[Mapping[str, tuple[str, str]]] = {
    "temperature": (_INFERENCE, "temperature"),
    "top_p": (_INFERENCE, "topP"),
    "top_k": (_OWN, "top_k"),
}
"""The object of the body and the member in it of each setting of sampling that thinking may exclude."""


def facts_of(draft: RequestBody) -> ClaudeModel:
    """Return the facts about a target's Claude model: its name in the table may say what its id hides."""
    target = draft.target
    first, second = target.model_names
    name = first if "claude" in first else second
    return claude_model(name)


def most_output(draft: RequestBody) -> int | None:
    """Return the highest limit that a target's Claude model takes; the table knows better: a beta may raise it."""
    most = facts_of(draft).most_output
    return None if most is None else max(most, draft.target.max_output_tokens or 0)


def _word(draft: RequestBody, value: object) -> str:
    """Return the word for a value of `reasoning_effort`. Raises Refusal."""
    if value is False or value == "none":
        return "none"
    if value is True:
        return "medium"
    if isinstance(value, str) and value in EFFORT_WORDS:
        return value
    raise draft.invalid(_FIELD, f"must be 'none' or one of {', '.join(EFFORT_WORDS)}")


# Other makers ---------------------------------------------------------------------------------------------------------


def effort_writer(known: EffortWords) -> FieldWriter:
    """Return a writer of `reasoning_effort` for a family's member."""

    def write(draft: RequestBody, value: object) -> None:
        word = _word(draft, value)
        wanted = known.words[word]
        if known.alone is not None and wanted == known.alone and _limited(draft):
            wanted = known.words["medium"]
            draft.emulated.append(_FIELD)
        elif not known.exact(word):
            draft.emulated.append(_FIELD)
        draft.put(known.path, wanted)

    return write


def _limited(draft: RequestBody) -> bool:
    """Return whether the client limits or samples the answer itself."""
    given = {"max_tokens", *_SAMPLING} & draft.params.keys()
    return bool(given - draft.request.injected)


# Claude ---------------------------------------------------------------------------------------------------------------


def claude_thinking(draft: RequestBody, value: object) -> None:
    """Write the client's `thinking` as the model takes it."""
    given: JsonObject = dict(value) if isinstance(value, Mapping) else {}
    facts = facts_of(draft)
    if not isinstance(given.get("type"), str):
        # The vendor refuses it itself.
        draft.put(_THINKING, value)
        return
    wish = fit_thinking(draft, facts, given)
    if wish.adjustable and wish.budget is not None:
        _put_budget(draft, wish.budget, facts, "thinking")
    elif wish.thinking is not None:
        draft.put(_THINKING, wish.thinking)
    if wish.effort is not None and draft.params.get(_FIELD) in (None, False, "none"):
        draft.put("outputConfig.effort", wish.effort)


def claude_effort(draft: RequestBody, value: object) -> None:
    """Write `reasoning_effort` for a Claude model. Raises Refusal for one that does not reason."""
    facts = facts_of(draft)
    if "thinking" in draft.params:
        _beside_thinking(draft, value, facts)
    elif isinstance(value, int) and not isinstance(value, bool) and facts.budgets:
        _put_budget(draft, value, facts)
    elif (word := _word(draft, value)) == "none":
        _put_none(draft, facts)
    elif "adaptive" in facts.thinking:
        shown: JsonObject = {"display": "summarized"} if facts.blanks_thinking else {}
        draft.put(_THINKING, {"type": "adaptive", **shown})
        _put_near(draft, word, facts.nearest_effort(word))
    elif "enabled" in facts.thinking:
        _put_budget(draft, BUDGETS[word], facts)
    else:
        raise draft.unsupported(_FIELD, NO_REASONING)


def _beside_thinking(draft: RequestBody, value: object, facts: ClaudeModel) -> None:
    """Write the effort beside the client's own `thinking`, which says whether there is any."""
    word = _word(draft, value)
    near = None if word == "none" or facts.budgets else facts.nearest_effort(word)
    if near is None:
        return
    restrained = facts.high_at_most and draft.params["thinking"].get("type") in ("disabled", "between_tools")
    _put_near(draft, word, "high" if restrained and near in ("xhigh", "max") else near)


def _put_near(draft: RequestBody, word: str, near: str | None) -> None:
    """Write the model's word for one of the client's, and name one that says another."""
    draft.put("outputConfig.effort", near)
    if near != word:
        draft.emulated.append(_FIELD)


def _put_none(draft: RequestBody, facts: ClaudeModel) -> None:
    if not facts.always_thinks:
        if "disabled" in facts.thinking:
            draft.put(_THINKING, {"type": "disabled"})
        return
    if "between_tools" in facts.thinking:
        draft.put(_THINKING, {"type": "between_tools"})
        if draft.params.get("tools"):
            draft.emulated.append(_FIELD)
        return
    _put_near(draft, "none", facts.efforts[0])


def _put_budget(draft: RequestBody, budget: int, facts: ClaudeModel, field: str = _FIELD) -> None:
    """Write a budget, below the limit of the answer; a limit that leaves no room for the least budget goes without."""
    limit = draft.params.get("max_tokens") or draft.target.max_output_tokens
    if limit is not None:
        limit = min(limit, most_output(draft) or limit)
    else:
        limit = min(budget + _ROOM, facts.most_output or budget + _ROOM)
    if limit <= MIN_BUDGET:
        draft.dropped.append(field)
        return
    if "max_tokens" not in draft.params:
        draft.put(f"{_INFERENCE}.maxTokens", limit)
    draft.put(_THINKING, {"type": "enabled", "budget_tokens": fit_budget(budget, limit)})


# The whole request ----------------------------------------------------------------------------------------------------


def settle_thinking(draft: RequestBody, model: ConverseModel, conversation: BedrockConversation) -> None:
    """Leave out reasoning where the rest of the request does not go with it. Raises Refusal for a sampling setting that
    the client wants beside it."""
    if model.claude:
        _settle_claude(draft, conversation)
    elif (known := model.effort) is not None and known.alone is not None and _member(draft, known.path) == known.alone:
        draft.body.pop(_INFERENCE, None)


def _settle_claude(draft: RequestBody, conversation: BedrockConversation) -> None:
    wanted = _member(draft, _THINKING)
    kind = wanted.get("type") if isinstance(wanted, dict) else None
    tools = draft.body.get("toolConfig")
    forced = isinstance(tools, dict) and "toolChoice" in tools
    if isinstance(wanted, dict):
        draft.put(_THINKING, with_display(draft, wanted))
    facts = facts_of(draft)
    alone = kind == "adaptive" and facts.unthinking_choice
    if (kind == "enabled" and (conversation.unthought or forced)) or (alone and forced):
        _take_out(draft, _OWN, "thinking")
        # The service takes an effort beside adaptive thinking only.
        _take_out(draft, "outputConfig", "effort")
        draft.dropped.append("thinking" if "thinking" in draft.params else _FIELD)
        kind = None
    if kind in ("enabled", "adaptive") and facts.sampling:
        _check_sampling(draft)
    off = kind is None and facts is not UNKNOWN and not facts.thinks_unasked
    if (kind == "disabled" or off) and _strip(draft):
        draft.dropped.append("thinking")


def honoured_display(draft: RequestBody) -> tuple[str, ...]:
    """Return what the thinking as it is sent says of what the translation of the client's request left out."""
    return () if draft.request.losses is None else honoured_fields(draft, _member(draft, _THINKING))


def _check_sampling(draft: RequestBody) -> None:
    """Take out settings that were filled in and that thinking does not go with. Raises Refusal for the client's."""
    target = draft.target
    facts = model_facts(target.profile.model_host, *target.model_names)
    for name, (holder, member) in _SAMPLERS.items():
        if (why := why_not_thinking(name, draft.params.get(name), facts)) is None:
            continue
        if name not in draft.request.injected:
            raise draft.unsupported(name, why)
        _take_out(draft, holder, member)


def _take_out(draft: RequestBody, holder: str, name: str) -> None:
    """Take a member out of an object of the body, and the object where it held nothing else."""
    held = draft.body.get(holder)
    if isinstance(held, dict):
        kept: JsonObject = {key: value for key, value in held.items() if key != name}
        draft.body[holder] = kept
        if not kept:
            del draft.body[holder]


def _strip(draft: RequestBody) -> bool:
    """Take out all thinking, and return whether there was any: without thinking the model refuses it in a last turn of
    its own and in a loop of tools, and ignores all other."""
    turns = draft.body.get("messages")
    found = False
    for turn in turns if isinstance(turns, list) else ():
        content = turn.get("content") if isinstance(turn, dict) else None
        if isinstance(turn, dict) and isinstance(content, list):
            kept = [each for each in content if not (isinstance(each, dict) and "reasoningContent" in each)]
            found = found or len(kept) < len(content)
            turn["content"] = kept
    return found


def _member(draft: RequestBody, path: str) -> JsonValue:
    found: JsonValue = draft.body
    for step in path.split("."):
        found = found.get(step) if isinstance(found, dict) else None
    return found
