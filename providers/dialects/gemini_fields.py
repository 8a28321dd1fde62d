"""The unified fields on Gemini's wire: how each one is written, or why it cannot be.

Never the prompt or the functions, and never which model lacks a field: the row says that.

Sources: `google-genai` 3.4.0 type `GenerationConfig`; "Thinking", "Structured output", "OpenAI compatibility" pages,
November 2026.
"""

from collections.abc import Mapping
from functools import lru_cache

from providers.capabilities import (
    FAN_OUT,
    NATIVE,
    ONE_CHAT,
    PREFIXED,
    RANKED,
    REFUSED,
    RESENT,
    SCANNED,
    Capabilities,
    Cell,
    compiled,
    feature_of,
    refused,
)
from providers.dialects.gemini_models import modern
from providers.dialects.gemini_schema import native_schema
from providers.dialects.native_fields import (
    WINDOW,
    Draft,
    Put,
    at_window,
    bounded,
    choices_of,
    constrained,
    listed,
    schema_of,
    unknown_cell,
    unless_neutral,
)
from providers.profiles import Profile
from providers.unified import ChatPrompt, Guided, LogprobsWanted, Operation

CONFIG = "generationConfig"
_THINKING = f"{CONFIG}.thinkingConfig"
_MIME = f"{CONFIG}.responseMimeType"
_JSON, _ENUM = "application/json", "text/x.enum"

_SEEDS = 2**31
"""The vendor's seeds have 32 bits, with a sign."""


def _seed(draft: Draft, value: object) -> None:
    if isinstance(value, int):
        draft.put(f"{CONFIG}.seed", value if -_SEEDS <= value < _SEEDS else value % _SEEDS)


def _logprobs(draft: Draft, value: object) -> None:
    if not isinstance(value, LogprobsWanted):
        raise TypeError(f"logprobs hold {type(value).__name__}")
    most = row_of(draft).wires[Operation.CHAT].logprobs.most
    if value.top > most:
        raise draft.invalid("logprobs", f"may list at most {most} alternatives")
    draft.put(f"{CONFIG}.responseLogprobs", True)
    if value.top:
        draft.put(f"{CONFIG}.logprobs", value.top)


# Constraints --------------------------------------------------------------------------------------------------------


def _schema(draft: Draft, wanted: Guided) -> None:
    schema = native_schema(schema_of(wanted))
    draft.put(_MIME, _JSON)
    draft.put(f"{CONFIG}.responseJsonSchema", schema)


def _choice(draft: Draft, wanted: Guided) -> None:
    """The answer is the bare string."""
    draft.put(_MIME, _ENUM)
    draft.put(f"{CONFIG}.responseSchema", {"type": "STRING", "enum": list(choices_of(wanted))})


def _any_json(draft: Draft, value: object) -> None:
    draft.put(_MIME, _JSON)


def _response_format(draft: Draft, value: object) -> None:
    if (cell := draft.table[feature_of("response_format", value)]).refused:
        raise draft.unsupported("response_format", cell.how)
    if draft.params.get("tools") and value != {"type": "text"} and not modern(draft.target):
        raise draft.unsupported("response_format", "models before Gemini 3 cannot be held to a form beside 'tools'")
    _FORMATS(draft, value)


_FORMATS = constrained({"json": _schema}, _any_json)


# Thinking -----------------------------------------------------------------------------------------------------------

_BUDGETS: Mapping[str, int] = {"minimal": 1024, "low": 1024, "medium": 8192, "high": 24576}
"""Tokens by words, as the vendor's own OpenAI-compatible endpoint has them for models with budgets."""

_LEVELS = frozenset({"minimal", "low", "medium", "high", "xhigh"})


def _reasoning_effort(draft: Draft, value: object) -> None:
    by_level = modern(draft.target)
    words = _LEVELS if by_level else _BUDGETS.keys() | {"none"}
    if value is True:
        return  # as the model does by itself
    if isinstance(value, int) and not isinstance(value, bool):
        draft.put(f"{_THINKING}.thinkingBudget", value)
    elif (value is False or value == "none") and not by_level:
        draft.put(f"{_THINKING}.thinkingBudget", 0)
    elif not isinstance(value, str) or value not in words:
        raise draft.invalid("reasoning_effort", f"must be one of {', '.join(sorted(words))}, or a number of tokens")
    elif by_level:
        draft.put(f"{_THINKING}.thinkingLevel", value.upper())
    else:
        draft.put(f"{_THINKING}.thinkingBudget", _BUDGETS[value])


def _thinking(draft: Draft, value: object) -> None:
    """Whoever asks for thinking in this form expects to see it."""
    match value:
        case {"type": "enabled" | "adaptive", **rest}:
            budget = rest.get("budget_tokens")
            if isinstance(budget, int):
                draft.put(f"{_THINKING}.thinkingBudget", budget)
            draft.put(f"{_THINKING}.includeThoughts", True)
        case {"type": "disabled"} if not modern(draft.target):
            draft.put(f"{_THINKING}.thinkingBudget", 0)
        case {"type": "disabled"}:
            raise draft.unsupported("thinking", "models from Gemini 3 on cannot be kept from it")
        case _:
            raise draft.invalid("thinking", "must have the type 'enabled', 'adaptive' or 'disabled'")


# The rest -----------------------------------------------------------------------------------------------------------

_TIERS: Mapping[str, str | None] = {"auto": None, "default": "standard", "flex": "flex", "priority": "priority"}


def _service_tier(draft: Draft, value: object) -> None:
    word = str(value)
    if word not in _TIERS:
        raise draft.unsupported("service_tier", f"it has the tiers {', '.join(sorted(_TIERS))}")
    if (tier := _TIERS[word]) is not None:
        draft.put("serviceTier", tier)


def _images(draft: Draft, value: object) -> None:
    # In a prompt they have become parts of its message.
    if isinstance(draft.request.prompt, ChatPrompt):
        raise draft.unsupported("images", "in a chat put images into the messages")


_NUMBERS: Mapping[str, str] = {
    "max_tokens": "maxOutputTokens",
    "temperature": "temperature",
    "top_p": "topP",
    "top_k": "topK",
    "presence_penalty": "presencePenalty",
    "frequency_penalty": "frequencyPenalty",
}
_FIELDS: Mapping[str, Put] = {
    "seed": _seed,
    "stop": listed(f"{CONFIG}.stopSequences"),
    "logprobs": _logprobs,
    "guided": constrained({"json": _schema, "choice": _choice}),
    "response_format": _response_format,
    "reasoning_effort": _reasoning_effort,
    "thinking": _thinking,
    "service_tier": _service_tier,
    "images": unless_neutral("images", _images),
}
ELSEWHERE = frozenset({"tools", "tool_choice"})
"""Fields that are written together."""


def row_of(draft: Draft) -> Profile:
    """The row as it holds for the draft's model."""
    return row_for(draft.target.profile, draft.target.upstream_model, draft.target.model)


@lru_cache(maxsize=4096)
def row_for(profile: Profile, *names: str) -> Profile:
    """The row for a model with these names."""
    return profile.for_model(*names)


@lru_cache(maxsize=1024)
def fields_of(profile: Profile) -> Mapping[str, Put]:
    """The fields that a row honours besides functions; any other is refused unless its value asks for nothing."""
    puts = {**_FIELDS, **{name: _number(profile, name) for name in _NUMBERS}}
    accepted = profile.wires[Operation.CHAT].accepts
    return {WINDOW: at_window, **{name: put for name, put in puts.items() if name in accepted}}


def _number(profile: Profile, name: str) -> Put:
    low, high = profile.bounds.get(name, (None, None))
    return unless_neutral(name, bounded(name, f"{CONFIG}.{_NUMBERS[name]}", low, high))


# The table ----------------------------------------------------------------------------------------------------------

_SCHEMA_ONLY = refused("it can only be held to a JSON Schema or to a choice")
_CELLS: Mapping[str, Cell] = {
    **ONE_CHAT,
    "n": FAN_OUT,
    "stop.blank": NATIVE,
    "stop.many": SCANNED,
    "include_stop_str_in_output": SCANNED,
    "response_format.json_object": NATIVE,
    "response_format.json_schema": NATIVE,
    "response_format.grammar": _SCHEMA_ONLY,
    "response_format.structural_tag": _SCHEMA_ONLY,
    "guided_json": NATIVE,
    "guided_regex": _SCHEMA_ONLY,
    "guided_choice": NATIVE,
    "guided_grammar": _SCHEMA_ONLY,
    "tool_choice.none": NATIVE,
    "tool_choice.required": NATIVE,
    "tool_choice.named": NATIVE,
    "parallel_tool_calls": refused("it cannot be kept to one call"),
    f"{WINDOW}.truncate": RESENT,
    f"{WINDOW}.error": NATIVE,
}
_UNSCORED = refused("it has no log probabilities to choose by")
_WATCHED = frozenset({"n", "best_of", "echo", "stop", "include_stop_str_in_output"})


@lru_cache(maxsize=1024)
def capabilities(profile: Profile, asked: Operation) -> Capabilities:
    """The table for clients of an endpoint, given the row as it holds for the model."""
    fields = fields_of(profile)
    cells = compiled(fields.keys() | {"tools"}, _CELLS)
    cells["echo"] = PREFIXED
    if asked is Operation.CHAT:
        cells.update({"echo": REFUSED, "echo.logprobs": REFUSED})
    cells["best_of"] = RANKED if "logprobs" in fields else _UNSCORED
    cells["unknown"] = unknown_cell(profile)
    held = {"guided", "response_format"} if profile.verifies else set()
    return Capabilities(cells, most_stops=profile.stop_most, verifies=profile.verifies, watched=_WATCHED | held)
