"""Writers of the unified fields for Ollama's own API, and its capabilities.

Sources: Ollama `api/types.go` and `docs/api.md`, `ollama` 0.6.3 types `GenerateRequest`, `ChatRequest`, `Options`;
November 2026.
"""

from collections.abc import Mapping
from functools import cache

from providers.capabilities import (
    COUNTED,
    IN_MESSAGE,
    NATIVE,
    NOT_OFFERED,
    ONE_CALL,
    RANKED,
    SCANNED,
    WRAPPED,
    Capabilities,
    Cell,
    compiled,
    counted_first,
    refused,
    with_forced_calls,
)
from providers.constraints.constraint_styles import BY_ENUM, SCHEMA_ONLY, ConstraintStyle, Encoding, choice_schema
from providers.constraints.engine_gaps import LLAMACPP
from providers.dialects.shared.field_writers import CHECKED_FIELDS, check_images, check_logprobs, neutral_as
from providers.dialects.shared.operations import ECHO_CELLS
from providers.dialects.shared.prompt import ONE_RAW_PROMPT
from providers.dialects.shared.request_body import (
    ENDS_ANSWER,
    FieldWriter,
    RequestBody,
    bounded,
    check_limited_window,
    constraint_writer,
    listed,
    own_constraint_cells,
    plain,
    unless_neutral,
)
from providers.request_fields import STOP_STRING, WINDOW
from providers.unified_request import Operation

MOST_LOGPROBS = 20


_STYLE = ConstraintStyle(
    Encoding(NATIVE, lambda guided: {"format": guided.schema}),
    SCHEMA_ONLY,
    Encoding(BY_ENUM, lambda guided: {"format": choice_schema(guided.choices)}, unwrap=True),
    SCHEMA_ONLY,
    json_mode={"format": "json"},
    # The engine uses llama.cpp's schema converter.
    engine=LLAMACPP,
)


def _logprobs(draft: RequestBody, value: object) -> None:
    wanted = check_logprobs(draft, value, MOST_LOGPROBS)
    draft.body["logprobs"] = True
    if wanted.top:
        draft.body["top_logprobs"] = wanted.top


_EFFORTS: Mapping[str, str | bool] = {
    "none": False,
    "minimal": "low",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "high",
    "max": "max",
}


def _reasoning_effort(draft: RequestBody, value: object) -> None:
    if (cell := draft.table["reasoning_effort"]).refused:
        raise draft.unsupported("reasoning_effort", cell.how)
    if isinstance(value, bool):
        draft.put("think", value)
    elif isinstance(value, str) and value in _EFFORTS:
        draft.put("think", _EFFORTS[value])
    else:
        raise draft.invalid("reasoning_effort", f"must be one of {', '.join(_EFFORTS)}")


def _suffix(draft: RequestBody, value: object) -> None:
    if draft.table["suffix"].refused:
        raise draft.unsupported("suffix", draft.table["suffix"].how)
    draft.body["suffix"] = str(value)


FIELDS: Mapping[str, FieldWriter] = {
    "max_tokens": bounded("max_tokens", "options.num_predict", 1, None),
    "temperature": plain("options.temperature"),
    "top_p": plain("options.top_p"),
    "top_k": neutral_as("top_k", "options.top_k", 0),
    "min_p": plain("options.min_p"),
    "typical_p": plain("options.typical_p"),
    "seed": plain("options.seed"),
    "frequency_penalty": plain("options.frequency_penalty"),
    "presence_penalty": plain("options.presence_penalty"),
    "repetition_penalty": plain("options.repeat_penalty"),
    "stop": listed("options.stop"),
    "logprobs": _logprobs,
    "guided": constraint_writer(_STYLE),
    "response_format": constraint_writer(_STYLE),
    "reasoning_effort": _reasoning_effort,
    "images": unless_neutral("images", check_images),
    "suffix": unless_neutral("suffix", _suffix),
    WINDOW: check_limited_window,
}
"""Writers of all supported fields except tools. Fields without a writer are refused unless their value is neutral."""

ELSEWHERE = frozenset({"tools", "tool_choice"})

_NOT_FORCED = refused("it cannot be made to call a function")
_CELLS: Mapping[str, Cell] = {
    **ONE_RAW_PROMPT,
    "messages": NATIVE,
    "best_of": RANKED,
    "stop.blank": NATIVE,
    "stop.many": NATIVE,
    STOP_STRING: SCANNED,
    **own_constraint_cells(_STYLE),
    "tools": NATIVE,
    "tool_choice.none": NOT_OFFERED,
    "tool_choice.required": _NOT_FORCED,
    "tool_choice.named": _NOT_FORCED,
    "parallel_tool_calls": ONE_CALL,
    "thinking": refused("it has no reasoning budget; use 'reasoning_effort'"),
    f"{WINDOW}.truncate": NATIVE,
    "unknown": refused("the engine ignores fields it does not know"),
}
_BY_OPERATION: Mapping[Operation, Mapping[str, Cell]] = {
    Operation.COMPLETIONS: {
        "prompt": NATIVE,
        "images": refused("it takes images in a chat only"),
        "reasoning_effort": refused("it does not reason about raw prompts"),
    },
    Operation.CHAT: {"prompt": WRAPPED, "images": IN_MESSAGE, "suffix": refused("a chat has no suffix")},
}
_WATCHED = frozenset({"n", "best_of", "echo", "stop", STOP_STRING, "parallel_tool_calls"})


@cache
def capabilities(operation: Operation, outgoing: Operation, counted: bool, verifies: bool) -> Capabilities:
    """Return the capabilities for clients of `operation` if the upstream call's operation is `outgoing`.

    `counted` is true if the context window is known. `verifies` is the value of the profile's field of that name.
    """
    cells = with_forced_calls(compiled(FIELDS.keys(), {**_CELLS, **_BY_OPERATION[outgoing], **ECHO_CELLS[operation]}))
    cells[f"{WINDOW}.error"] = COUNTED if counted else ENDS_ANSWER
    watched = _WATCHED | CHECKED_FIELDS[verifies]
    return Capabilities(cells, most_stops=None, verifies=verifies, counts=counted_first(cells), watched=watched)
