"""The unified fields on Ollama's own wire: how each one is written, or why it cannot be. Never prompts or tools.

Sources: Ollama `api/types.go` and `docs/api.md`, `ollama` 0.6.3 types `GenerateRequest`, `ChatRequest`, `Options`;
November 2026.
"""

from collections.abc import Mapping
from functools import cache

from providers.capabilities import (
    COUNTED,
    FAN_OUT,
    IN_MESSAGE,
    NATIVE,
    PREFIXED,
    RANKED,
    REFUSED,
    SCANNED,
    WRAPPED,
    Capabilities,
    Cell,
    compiled,
    counted_first,
    emulated,
    refused,
)
from providers.dialects.native_fields import (
    WINDOW,
    Draft,
    Put,
    at_window,
    bounded,
    choices_of,
    constrained,
    listed,
    plain,
    schema_of,
    unless_neutral,
)
from providers.guided import Unenforceable, choice_schema
from providers.guided_engines import LLAMACPP, engine_problem
from providers.unified import ChatPrompt, Guided, LogprobsWanted, Operation, is_neutral

MOST_LOGPROBS = 20


def _schema(draft: Draft, wanted: Guided) -> None:
    schema = schema_of(wanted)
    # It hands the schema to llama.cpp's converter.
    problem = engine_problem(LLAMACPP, schema)
    if problem is not None:
        raise Unenforceable(f"it would not keep this schema: {problem}")
    draft.body["format"] = schema


def _choice(draft: Draft, wanted: Guided) -> None:
    draft.body["format"] = choice_schema(choices_of(wanted))
    draft.unwrap = True


def _any_object(draft: Draft, value: object) -> None:
    draft.body["format"] = "json"


def _top_k(draft: Draft, value: object) -> None:
    # Left out, it would be the model's own default, which is not "off".
    draft.put("options.top_k", 0 if is_neutral("top_k", value) else value)


def _logprobs(draft: Draft, value: object) -> None:
    if not isinstance(value, LogprobsWanted):
        raise TypeError(f"logprobs holds {type(value).__name__}")
    if value.top > MOST_LOGPROBS:
        raise draft.invalid("logprobs", f"lists at most {MOST_LOGPROBS} tokens")
    draft.body["logprobs"] = True
    if value.top:
        draft.body["top_logprobs"] = value.top


_EFFORTS = frozenset({"low", "medium", "high", "max"})


def _reasoning_effort(draft: Draft, value: object) -> None:
    if (cell := draft.table["reasoning_effort"]).refused:
        raise draft.unsupported("reasoning_effort", cell.how)
    if isinstance(value, bool) or value in _EFFORTS:
        draft.put("think", value)
    elif value == "none":
        draft.put("think", False)
    else:
        raise draft.invalid("reasoning_effort", f"must be 'none' or one of {', '.join(sorted(_EFFORTS))}")


def _images(draft: Draft, value: object) -> None:
    if draft.table["images"].refused:
        raise draft.unsupported("images", draft.table["images"].how)
    # In a prompt that goes as a chat they have become parts of its message.
    if isinstance(draft.request.prompt, ChatPrompt):
        raise draft.unsupported("images", "in a chat put images into the messages")


def _suffix(draft: Draft, value: object) -> None:
    if draft.table["suffix"].refused:
        raise draft.unsupported("suffix", draft.table["suffix"].how)
    draft.body["suffix"] = str(value)


FIELDS: Mapping[str, Put] = {
    "max_tokens": bounded("max_tokens", "options.num_predict", 1, None),
    "temperature": plain("options.temperature"),
    "top_p": plain("options.top_p"),
    "top_k": _top_k,
    "min_p": plain("options.min_p"),
    "typical_p": plain("options.typical_p"),
    "seed": plain("options.seed"),
    "frequency_penalty": plain("options.frequency_penalty"),
    "presence_penalty": plain("options.presence_penalty"),
    "repetition_penalty": plain("options.repeat_penalty"),
    "stop": listed("options.stop"),
    "logprobs": _logprobs,
    "guided": constrained({"json": _schema, "choice": _choice}),
    "response_format": constrained({"json": _schema}, _any_object),
    "reasoning_effort": _reasoning_effort,
    "images": unless_neutral("images", _images),
    "suffix": unless_neutral("suffix", _suffix),
    WINDOW: at_window,
}
"""The fields the engine honours besides tools; any other is refused unless its value asks for nothing."""

ELSEWHERE = frozenset({"tools", "tool_choice", "parallel_tool_calls"})

_SCHEMA_ONLY = refused("it can only be held to a JSON Schema")
_TEXT_ONLY = refused("it takes prompts as text only")
_NOT_FORCED = refused("it cannot be made to call a function")
_CELLS: Mapping[str, Cell] = {
    "messages": NATIVE,
    "prompt.batch": FAN_OUT,
    "prompt.tokens": _TEXT_ONLY,
    "prompt.token_batch": _TEXT_ONLY,
    "n": FAN_OUT,
    "best_of": RANKED,
    "stop.blank": NATIVE,
    "stop.many": NATIVE,
    "include_stop_str_in_output": SCANNED,
    "echo.logprobs": refused("it does not tell the log probabilities of a prompt"),
    "response_format.json_object": NATIVE,
    "response_format.json_schema": NATIVE,
    "response_format.grammar": _SCHEMA_ONLY,
    "guided_json": NATIVE,
    "guided_regex": _SCHEMA_ONLY,
    "guided_choice": emulated("a JSON object with one enum member"),
    "guided_grammar": _SCHEMA_ONLY,
    "tools": NATIVE,
    "tool_choice.none": emulated("the tools are not offered"),
    "tool_choice.required": _NOT_FORCED,
    "tool_choice.named": _NOT_FORCED,
    "parallel_tool_calls": refused("it cannot be kept to one call"),
    "thinking": refused("it has no budget for reasoning; ask by 'reasoning_effort'"),
    f"{WINDOW}.truncate": NATIVE,
    "unknown": refused("the engine ignores fields it does not know"),
}
_RAW: Mapping[str, Cell] = {
    "prompt": NATIVE,
    "images": refused("it takes images in a chat only"),
    "reasoning_effort": refused("a raw prompt begins no reasoning"),
}
_CHAT: Mapping[str, Cell] = {"prompt": WRAPPED, "images": IN_MESSAGE, "suffix": refused("a chat has no suffix")}
_BLIND = refused(
    "it ends the answer where the window ends instead of refusing; set 'context_window' in the table, so that the "
    "gateway can refuse"
)
_WATCHED = frozenset({"n", "best_of", "echo", "stop", "include_stop_str_in_output"})


@cache
def capabilities(asked: Operation, sent: Operation, counted: bool, verifies: bool) -> Capabilities:
    """The table for clients of the endpoint `asked` whose calls go to `sent`; `counted` says that the window is known,
    `verifies` as in the profile."""
    own = _CHAT if sent is Operation.CHAT else _RAW
    cells = compiled(FIELDS.keys(), {**_CELLS, **own})
    cells[f"{WINDOW}.error"] = COUNTED if counted else _BLIND
    cells["echo"] = PREFIXED
    if asked is Operation.CHAT:
        cells["echo"] = cells["echo.logprobs"] = REFUSED
    held = {"guided", "response_format"} if verifies else set()
    return Capabilities(cells, most_stops=None, verifies=verifies, counts=counted_first(cells), watched=_WATCHED | held)
