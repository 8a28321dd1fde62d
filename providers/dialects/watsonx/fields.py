"""Writers of the unified fields for watsonx.ai, and its capabilities.

Raw prompts have nested `parameters`; chats are close to OpenAI's.

Sources: ibm-watsonx-ai 1.8.1 `TextGenParameters`, `ReturnOptionProperties`, `TextChatParameters`; IBM Cloud API
reference "watsonx.ai", text generation and chat. November 2026.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from providers.capabilities import NATIVE, ONE_CALL, ONE_CHAT, RANKED, SCANNED, Capabilities, Cell, compiled, refused
from providers.constraints.constraint_styles import SCHEMA_FORMAT
from providers.constraints.style_table import STYLES
from providers.dialects.shared.field_writers import (
    CHECKED_FIELDS,
    above_zero,
    check_images,
    check_logprobs,
    sampled,
    write_nothing,
)
from providers.dialects.shared.operations import ECHO_CELLS
from providers.dialects.shared.prompt import IGNORED, ONE_RAW_PROMPT
from providers.dialects.shared.request_body import (
    REFUSES_OVERFLOW,
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
from providers.request_fields import STOP_STRING, WINDOW, is_neutral
from providers.unified_request import Operation

_PARAMETERS = "parameters."

MOST_STOPS: Mapping[Operation, int] = {Operation.COMPLETIONS: 6, Operation.CHAT: 4}
_MOST_LOGPROBS: Mapping[Operation, int] = {Operation.COMPLETIONS: 5, Operation.CHAT: 20}


# Raw prompts --------------------------------------------------------------------------------------------------------


def _sampled(put: FieldWriter) -> FieldWriter:
    return sampled(put, f"{_PARAMETERS}decoding_method", "sample")


def _temperature(draft: RequestBody, value: object) -> None:
    if not value:
        draft.put(f"{_PARAMETERS}decoding_method", "greedy")
    else:
        _sampled(bounded("temperature", f"{_PARAMETERS}temperature", 0, 2))(draft, value)


def _stop(draft: RequestBody, value: object) -> None:
    listed(f"{_PARAMETERS}stop_sequences")(draft, value)
    if value:
        # The vendor's default is true.
        draft.put(f"{_PARAMETERS}include_stop_sequence", bool(draft.params.get(STOP_STRING)))


def _text_logprobs(draft: RequestBody, value: object) -> None:
    wanted = check_logprobs(draft, value, _MOST_LOGPROBS[Operation.COMPLETIONS])
    options = {"generated_tokens": True, "token_logprobs": True}
    draft.put(f"{_PARAMETERS}return_options", {**options, "top_n_tokens": wanted.top} if wanted.top else options)


TEXT_FIELDS: Mapping[str, FieldWriter] = {
    "temperature": _temperature,
    "top_p": unless_neutral("top_p", _sampled(above_zero("top_p", f"{_PARAMETERS}top_p", 1))),
    "top_k": unless_neutral("top_k", _sampled(bounded("top_k", f"{_PARAMETERS}top_k", 1, 100))),
    "seed": _sampled(bounded("seed", f"{_PARAMETERS}random_seed", 1, None)),
    "repetition_penalty": unless_neutral(
        "repetition_penalty", bounded("repetition_penalty", f"{_PARAMETERS}repetition_penalty", 1, 2)
    ),
    "stop": _stop,
    STOP_STRING: write_nothing,  # `_stop` writes it
    "logprobs": _text_logprobs,
    WINDOW: check_limited_window,
}
"""Writers of all supported fields of a raw prompt except the token limit. Fields without a writer are refused unless
their value is neutral."""

_NOT_CONSTRAINED = refused("it does not constrain responses to raw prompts; use chat")
_TEXT_CELLS: Mapping[str, Cell] = {
    **ONE_RAW_PROMPT,
    "best_of": RANKED,
    "stop.blank": NATIVE,
    "stop.many": SCANNED,
    **dict.fromkeys(("guided_json", "guided_regex", "guided_choice", "guided_grammar"), _NOT_CONSTRAINED),
    **{f"response_format.{kind}": _NOT_CONSTRAINED for kind in ("json_object", "json_schema", "grammar")},
    "images": refused("it takes images in a chat only"),
    **REFUSES_OVERFLOW,
    "unknown": IGNORED,
}

# Chats --------------------------------------------------------------------------------------------------------------


def _chat_logprobs(draft: RequestBody, value: object) -> None:
    wanted = check_logprobs(draft, value, _MOST_LOGPROBS[Operation.CHAT])
    draft.put("logprobs", True)
    if wanted.top:
        draft.put("top_logprobs", wanted.top)


_GUIDED = STYLES["guided"][Operation.CHAT]
_FORMATS = replace(
    _GUIDED, json=SCHEMA_FORMAT, passes=frozenset(), json_mode={"response_format": {"type": "json_object"}}
)


def _tools(draft: RequestBody, value: object) -> None:
    if not isinstance(value, list) or not value:
        return
    for tool in value:
        if (kind := tool.get("type")) != "function":
            raise draft.unsupported("tools", f"it has no tools of type '{str(kind)[:64]}'")
    draft.put("tools", list(value))


def _tool_choice(draft: RequestBody, value: object) -> None:
    """Write the tool choice. A choice by name and a choice by mode have different keys."""
    if is_neutral("tool_choice", value) and not draft.params.get("tools"):
        return
    draft.put("tool_choice_option" if isinstance(value, str) else "tool_choice", value)


_EFFORTS = {"minimal": "low", "low": "low", "medium": "medium", "high": "high", "xhigh": "high", "max": "high"}
"""The vendor's word for each effort. An effort below or above the vendor's range becomes the lowest or highest word."""


def _effort(draft: RequestBody, value: object) -> None:
    word = _EFFORTS.get(value) if isinstance(value, str) else None
    if word is None:
        raise draft.invalid("reasoning_effort", f"must be one of {', '.join(_EFFORTS)}")
    draft.put("reasoning_effort", word)


CHAT_FIELDS: Mapping[str, FieldWriter] = {
    "max_tokens": bounded("max_tokens", "max_tokens", 1, None),
    "temperature": bounded("temperature", "temperature", 0, 2),
    "top_p": plain("top_p"),
    "n": plain("n"),
    "seed": plain("seed"),
    "presence_penalty": plain("presence_penalty"),
    "frequency_penalty": plain("frequency_penalty"),
    "repetition_penalty": plain("repetition_penalty"),
    "logit_bias": unless_neutral("logit_bias", plain("logit_bias")),
    "stop": listed("stop"),
    "logprobs": _chat_logprobs,
    "guided": constraint_writer(_GUIDED),
    "response_format": constraint_writer(_FORMATS),
    "tools": _tools,
    "tool_choice": _tool_choice,
    "reasoning_effort": _effort,
    "images": unless_neutral("images", check_images),
    WINDOW: check_limited_window,
}
"""Writers of all supported fields of a chat. Fields without a writer are refused unless their value is neutral."""

_CHAT_CELLS: Mapping[str, Cell] = {
    **ONE_CHAT,
    "n": NATIVE,
    "best_of": RANKED,
    "stop.blank": NATIVE,
    "stop.many": SCANNED,
    STOP_STRING: SCANNED,
    **own_constraint_cells(_FORMATS),
    "tool_choice.none": NATIVE,
    "tool_choice.required": NATIVE,
    "tool_choice.named": NATIVE,
    "parallel_tool_calls": ONE_CALL,
    **REFUSES_OVERFLOW,
    "unknown": IGNORED,
}


_COMPILED: Mapping[Operation, Mapping[str, Cell]] = {
    Operation.COMPLETIONS: compiled([*TEXT_FIELDS, "max_tokens"], _TEXT_CELLS),
    Operation.CHAT: compiled(CHAT_FIELDS, _CHAT_CELLS),
}
_WATCHED: Mapping[Operation, frozenset[str]] = {
    Operation.COMPLETIONS: frozenset({"n", "best_of", "echo", "stop"}),
    Operation.CHAT: frozenset({"best_of", "echo", "stop", STOP_STRING, "parallel_tool_calls"}),
}


@cache
def capabilities(operation: Operation, outgoing: Operation, verifies: bool) -> Capabilities:
    """Return the capabilities for clients of `operation` if the upstream call's operation is `outgoing`.

    `verifies` is the value of the profile's field of that name.
    """
    cells = {**_COMPILED[outgoing], **ECHO_CELLS[operation]}
    watched = _WATCHED[outgoing] | CHECKED_FIELDS[verifies]
    return Capabilities(cells, most_stops=MOST_STOPS[outgoing], verifies=verifies, watched=watched)
