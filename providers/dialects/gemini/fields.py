"""Writers of the unified fields for Gemini, and its capabilities; the profile says which model lacks a field.

Sources: `google-genai` 3.4.0 type `GenerationConfig`; "Thinking", "Structured output", "OpenAI compatibility" pages,
November 2026.
"""

from collections.abc import Mapping
from functools import lru_cache

from providers.capabilities import (
    FAN_OUT,
    NATIVE,
    ONE_CHAT,
    RANKED,
    SCANNED,
    UNSCORED,
    Capabilities,
    Cell,
    compiled,
    feature_of,
    refused,
)
from providers.constraints.constraint_styles import ConstraintStyle, Encoding, refused_encoding
from providers.constraints.schema_rules import GEMINI
from providers.dialects.gemini.model_path import is_modern
from providers.dialects.shared.field_writers import CHECKED_FIELDS, check_images, check_logprobs
from providers.dialects.shared.operations import ECHO_CELLS
from providers.dialects.shared.request_body import (
    REFUSES_OVERFLOW,
    FieldWriter,
    RequestBody,
    bounded,
    check_limited_window,
    constraint_writer,
    listed,
    own_constraint_cells,
    unknown_cell,
    unless_neutral,
)
from providers.profile import Profile
from providers.request_fields import STOP_STRING, WINDOW
from providers.unified_request import Operation

CONFIG = "generationConfig"
_THINKING = f"{CONFIG}.thinkingConfig"
_JSON, _ENUM = "application/json", "text/x.enum"

_SEEDS = 2**31
"""The vendor's seeds are signed integers of 32 bits."""


def _seed(draft: RequestBody, value: object) -> None:
    if isinstance(value, int):
        draft.put(f"{CONFIG}.seed", value if -_SEEDS <= value < _SEEDS else value % _SEEDS)


def _logprobs(draft: RequestBody, value: object) -> None:
    wanted = check_logprobs(draft, value)
    most = profile_of(draft).wires[Operation.CHAT].logprobs.most
    if wanted.top > most:
        raise draft.invalid("logprobs", f"may list at most {most} alternatives")
    draft.put(f"{CONFIG}.responseLogprobs", True)
    if wanted.top:
        draft.put(f"{CONFIG}.logprobs", wanted.top)


# Constraints --------------------------------------------------------------------------------------------------------


_SCHEMA_OR_CHOICE = refused_encoding("it can only be held to a JSON Schema or to a choice")
_STYLE = ConstraintStyle(
    Encoding(
        NATIVE,
        lambda guided: {CONFIG: {"responseMimeType": _JSON, "responseJsonSchema": guided.schema}},
    ),
    _SCHEMA_OR_CHOICE,
    # The answer is the bare string.
    Encoding(
        NATIVE,
        lambda guided: {
            CONFIG: {"responseMimeType": _ENUM, "responseSchema": {"type": "STRING", "enum": [*guided.choices]}}
        },
    ),
    _SCHEMA_OR_CHOICE,
    json_mode={CONFIG: {"responseMimeType": _JSON}},
    rules=GEMINI,
)
_write_constraint = constraint_writer(_STYLE)


def _response_format(draft: RequestBody, value: object) -> None:
    if (cell := draft.table[feature_of("response_format", value)]).refused:
        raise draft.unsupported("response_format", cell.how)
    if draft.params.get("tools") and value != {"type": "text"} and not is_modern(draft.target):
        raise draft.unsupported("response_format", "models before Gemini 3 cannot be held to a form beside 'tools'")
    _write_constraint(draft, value)


# Thinking -----------------------------------------------------------------------------------------------------------

_BUDGETS: Mapping[str, int] = {"minimal": 1024, "low": 1024, "medium": 8192, "high": 24576}
"""Thinking tokens by effort, as the vendor's own OpenAI-compatible endpoint maps them for models with budgets."""

_LEVELS = frozenset({"minimal", "low", "medium", "high", "xhigh"})


def _reasoning_effort(draft: RequestBody, value: object) -> None:
    by_level = is_modern(draft.target)
    known = _LEVELS if by_level else _BUDGETS.keys() | {"none"}
    if value is True:
        return  # the model's default
    if isinstance(value, int) and not isinstance(value, bool):
        draft.put(f"{_THINKING}.thinkingBudget", value)
    elif (value is False or value == "none") and not by_level:
        draft.put(f"{_THINKING}.thinkingBudget", 0)
    elif not isinstance(value, str) or value not in known:
        raise draft.invalid("reasoning_effort", f"must be one of {', '.join(sorted(known))}, or a number of tokens")
    elif by_level:
        draft.put(f"{_THINKING}.thinkingLevel", value.upper())
    else:
        draft.put(f"{_THINKING}.thinkingBudget", _BUDGETS[value])


def _thinking(draft: RequestBody, value: object) -> None:
    """Write Anthropic's form of the setting, whose clients expect the thoughts in the answer."""
    match value:
        case {"type": "enabled" | "adaptive", **rest}:
            budget = rest.get("budget_tokens")
            if isinstance(budget, int):
                draft.put(f"{_THINKING}.thinkingBudget", budget)
            draft.put(f"{_THINKING}.includeThoughts", True)
        case {"type": "disabled"} if not is_modern(draft.target):
            draft.put(f"{_THINKING}.thinkingBudget", 0)
        case {"type": "disabled"}:
            raise draft.unsupported("thinking", "models from Gemini 3 on cannot be kept from it")
        case _:
            raise draft.invalid("thinking", "must have the type 'enabled', 'adaptive' or 'disabled'")


# The rest -----------------------------------------------------------------------------------------------------------

_TIERS: Mapping[str, str | None] = {"auto": None, "default": "standard", "flex": "flex", "priority": "priority"}


def _service_tier(draft: RequestBody, value: object) -> None:
    name = str(value)
    if name not in _TIERS:
        raise draft.unsupported("service_tier", f"it has the tiers {', '.join(sorted(_TIERS))}")
    if (tier := _TIERS[name]) is not None:
        draft.put("serviceTier", tier)


_NUMBERS: Mapping[str, str] = {
    "max_tokens": "maxOutputTokens",
    "temperature": "temperature",
    "top_p": "topP",
    "top_k": "topK",
    "presence_penalty": "presencePenalty",
    "frequency_penalty": "frequencyPenalty",
}
_FIELDS: Mapping[str, FieldWriter] = {
    "seed": _seed,
    "stop": listed(f"{CONFIG}.stopSequences"),
    "logprobs": _logprobs,
    "guided": _write_constraint,
    "response_format": _response_format,
    "reasoning_effort": _reasoning_effort,
    "thinking": _thinking,
    "service_tier": _service_tier,
    "images": unless_neutral("images", check_images),
}
ELSEWHERE = frozenset({"tools", "tool_choice"})
"""Fields that `gemini_tools` writes."""


def profile_of(draft: RequestBody) -> Profile:
    """Return the profile for the draft's model."""
    return profile_for(draft.target.profile, draft.target.upstream_model, draft.target.model)


@lru_cache(maxsize=4096)
def profile_for(profile: Profile, *names: str) -> Profile:
    """Return the profile for a model with these names."""
    return profile.for_model(*names)


@lru_cache(maxsize=1024)
def fields_of(profile: Profile) -> Mapping[str, FieldWriter]:
    """Return the writers of a profile's fields besides tools; other fields are refused unless neutral."""
    puts = {**_FIELDS, **{name: _number(profile, name) for name in _NUMBERS}}
    accepted = profile.wires[Operation.CHAT].accepts
    return {WINDOW: check_limited_window, **{name: put for name, put in puts.items() if name in accepted}}


def _number(profile: Profile, name: str) -> FieldWriter:
    low, high = profile.bounds.get(name, (None, None))
    return unless_neutral(name, bounded(name, f"{CONFIG}.{_NUMBERS[name]}", low, high))


# The table ----------------------------------------------------------------------------------------------------------

_CELLS: Mapping[str, Cell] = {
    **ONE_CHAT,
    "n": FAN_OUT,
    "stop.blank": NATIVE,
    "stop.many": SCANNED,
    STOP_STRING: SCANNED,
    **own_constraint_cells(_STYLE),
    "response_format.structural_tag": _SCHEMA_OR_CHOICE.cell,
    "tool_choice.none": NATIVE,
    "tool_choice.required": NATIVE,
    "tool_choice.named": NATIVE,
    "parallel_tool_calls": refused("it cannot be kept to one call"),
    **REFUSES_OVERFLOW,
}
_WATCHED = frozenset({"n", "best_of", "echo", "stop", STOP_STRING})


@lru_cache(maxsize=1024)
def capabilities(profile: Profile, operation: Operation) -> Capabilities:
    """Return the capabilities for clients of an operation, given the profile for the model."""
    fields = fields_of(profile)
    cells = compiled(fields.keys() | {"tools"}, _CELLS)
    cells.update(ECHO_CELLS[operation])
    cells["best_of"] = RANKED if "logprobs" in fields else UNSCORED
    cells["unknown"] = unknown_cell(profile)
    watched = _WATCHED | CHECKED_FIELDS[profile.verifies]
    return Capabilities(
        cells, most_stops=profile.stop_most, verifies=profile.verifies, strict_tools="gemini", watched=watched
    )
