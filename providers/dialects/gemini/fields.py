"""Writers of the unified fields for Gemini, and its capabilities. The profile decides which model lacks a field.

Sources: `google-genai` 3.4.0 type `GenerationConfig`; "Thinking", "Structured output", "OpenAI compatibility" pages,
November 2026.
"""

import re
from collections.abc import Mapping
from functools import lru_cache

from providers.capabilities import (
    FAN_OUT,
    NATIVE,
    ONE_CALL,
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
from providers.dialects.gemini.thinking import NO_REASONING, REASONING_WRITERS, REFUSING_WRITERS
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
    put_constraint_in_prompt,
    unknown_cell,
    unless_neutral,
)
from providers.models.fit_profile import profile_for_model
from providers.profile import Profile
from providers.request_fields import STOP_STRING, WINDOW
from providers.unified_request import Operation

CONFIG = "generationConfig"
_JSON, _ENUM = "application/json", "text/x.enum"

_SEED_LIMIT = 2**31
"""The vendor's seeds are signed 32-bit integers."""


def _seed(draft: RequestBody, value: object) -> None:
    if isinstance(value, int):
        draft.put(f"{CONFIG}.seed", value if -_SEED_LIMIT <= value < _SEED_LIMIT else value % _SEED_LIMIT)


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
    # The response is the bare string.
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
    _constraint(draft, value)


def _constraint(draft: RequestBody, value: object) -> None:
    if draft.params.get("tools") and value != {"type": "text"} and not is_modern(draft.target):
        put_constraint_in_prompt(draft, value, "models before Gemini 3 cannot enforce a response format beside 'tools'")
    else:
        _write_constraint(draft, value)


# The rest -----------------------------------------------------------------------------------------------------------

_TIERS: Mapping[str, str | None] = {"auto": None, "default": "standard", "flex": "flex", "priority": "priority"}


def _service_tier(draft: RequestBody, value: object) -> None:
    name = str(value)
    if name not in _TIERS:
        raise draft.unsupported("service_tier", f"it has the tiers {', '.join(sorted(_TIERS))}")
    if (tier := _TIERS[name]) is not None:
        draft.put("serviceTier", tier)


_LABEL_KEY, _LABEL = re.compile(r"[a-z][a-z0-9_-]{0,62}"), re.compile(r"[a-z0-9_-]{0,63}")
_MAX_LABELS = 64


def _labels(draft: RequestBody, value: object) -> None:
    """Write the metadata pairs that can be labels of Vertex AI, and report the other pairs as dropped."""
    given = value if isinstance(value, dict) else {}
    fitting = {
        key: text
        for key, text in given.items()
        if isinstance(text, str) and _LABEL_KEY.fullmatch(key) and _LABEL.fullmatch(text)
    }
    labels = dict(list(fitting.items())[:_MAX_LABELS])
    if labels:
        draft.put("labels", labels)
    if len(labels) < len(given):
        draft.dropped.append("metadata")


_NUMBER_NAMES: Mapping[str, str] = {
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
    "guided": _constraint,
    "response_format": _response_format,
    "service_tier": _service_tier,
    "metadata": _labels,
    "images": unless_neutral("images", check_images),
}
WRITTEN_ELSEWHERE = frozenset({"tools", "tool_choice"})
"""Fields that `providers.dialects.gemini.tools` writes."""


def profile_of(draft: RequestBody) -> Profile:
    """Return the profile for the draft's model."""
    return profile_for(draft.target.profile, *draft.target.model_names)


@lru_cache(maxsize=4096)
def profile_for(profile: Profile, *names: str) -> Profile:
    """Return the profile for a model with these names."""
    return profile_for_model(profile, *names)


@lru_cache(maxsize=1024)
def fields_of(profile: Profile, reasons: bool = True) -> Mapping[str, FieldWriter]:
    """Return the writers of a profile's fields, except the tools. A field without a writer is refused unless its value
    is neutral.

    For a model that does not reason, the writers of the reasoning settings refuse with that reason.
    """
    puts = {**_FIELDS, **{name: _number(profile, name) for name in _NUMBER_NAMES}}
    accepted = profile.wires[Operation.CHAT].accepts
    writers = {WINDOW: check_limited_window, **{name: put for name, put in puts.items() if name in accepted}}
    return {
        **writers,
        **(REASONING_WRITERS if reasons and accepted.issuperset(REASONING_WRITERS) else REFUSING_WRITERS),
    }


def _number(profile: Profile, name: str) -> FieldWriter:
    low, high = profile.bounds.get(name, (None, None))
    return unless_neutral(name, bounded(name, f"{CONFIG}.{_NUMBER_NAMES[name]}", low, high))


# The capabilities ---------------------------------------------------------------------------------------------------

_FIXED_CELLS: Mapping[str, Cell] = {
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
    "parallel_tool_calls": ONE_CALL,
    **REFUSES_OVERFLOW,
}
_WATCHED = frozenset({"n", "best_of", "echo", "stop", STOP_STRING, "parallel_tool_calls"})


@lru_cache(maxsize=1024)
def capabilities(profile: Profile, operation: Operation, reasons: bool = True) -> Capabilities:
    """Return the capabilities for a client's operation. `profile` is the profile for the model; `reasons` is true if
    the model can reason."""
    fields = fields_of(profile, reasons)
    cells = compiled(fields.keys() | {"tools"}, _FIXED_CELLS)
    cells.update(ECHO_CELLS[operation])
    cells["best_of"] = RANKED if "logprobs" in fields else UNSCORED
    cells["unknown"] = unknown_cell(profile)
    if fields["thinking"] is REFUSING_WRITERS["thinking"]:
        cells.update(dict.fromkeys(REFUSING_WRITERS, refused(NO_REASONING)))
    watched = _WATCHED | CHECKED_FIELDS[profile.verifies]
    return Capabilities(
        cells, most_stops=profile.stop_most, verifies=profile.verifies, strict_tools="gemini", watched=watched
    )
