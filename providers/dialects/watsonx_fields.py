"""The unified fields on watsonx.ai's two wires, or why one cannot be written: raw prompts with their `parameters`, and
chats close to OpenAI's. Never a prompt.

Sources: ibm-watsonx-ai 1.8.1 `TextGenParameters`, `ReturnOptionProperties`, `TextChatParameters`; IBM Cloud API
reference "watsonx.ai", text generation and chat. November 2026.
"""

from collections.abc import Mapping
from functools import cache

from providers.capabilities import (
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
    refused,
)
from providers.dialects.native_fields import (
    GUIDED,
    WINDOW,
    Draft,
    Put,
    at_window,
    bounded,
    constrained,
    listed,
    plain,
    schema_of,
    unless_neutral,
)
from providers.dialects.native_raw import IGNORED, KEEP, ONE_RAW_PROMPT
from providers.guided import json_schema_format
from providers.unified import ChatPrompt, Guided, LogprobsWanted, Operation, is_neutral

_P = "parameters."

MOST_STOPS: Mapping[Operation, int] = {Operation.COMPLETIONS: 6, Operation.CHAT: 4}
_MOST_LOGPROBS: Mapping[Operation, int] = {Operation.COMPLETIONS: 5, Operation.CHAT: 20}


def _wanted(draft: Draft, value: object, operation: Operation) -> LogprobsWanted:
    if not isinstance(value, LogprobsWanted):
        raise TypeError(f"logprobs holds {type(value).__name__}")
    if value.top > (most := _MOST_LOGPROBS[operation]):
        raise draft.invalid("logprobs", f"lists at most {most} tokens")
    return value


# Raw prompts --------------------------------------------------------------------------------------------------------


def _sampled(put: Put) -> Put:
    """A setting of sampling, which must be switched on, and which a temperature of 0 switches off."""

    def write(draft: Draft, value: object) -> None:
        if draft.params.get("temperature") != 0:
            put(draft, value)
            draft.put(f"{_P}decoding_method", "sample")

    return write


def _temperature(draft: Draft, value: object) -> None:
    if not value:
        draft.put(f"{_P}decoding_method", "greedy")
    else:
        _sampled(bounded("temperature", f"{_P}temperature", 0, 2))(draft, value)


def _share(draft: Draft, value: object) -> None:
    if not isinstance(value, int | float) or not 0 < value <= 1:
        raise draft.invalid("top_p", "must be above 0 and at most 1")
    draft.put(f"{_P}top_p", value)


def _stop(draft: Draft, value: object) -> None:
    listed(f"{_P}stop_sequences")(draft, value)
    if value:
        # Left out, it would be true.
        draft.put(f"{_P}include_stop_sequence", bool(draft.params.get(KEEP)))


def _nothing(draft: Draft, value: object) -> None:
    """Written with the stops."""


def _returned(draft: Draft, value: object) -> None:
    wanted = _wanted(draft, value, Operation.COMPLETIONS)
    options = {"generated_tokens": True, "token_logprobs": True}
    draft.put(f"{_P}return_options", {**options, "top_n_tokens": wanted.top} if wanted.top else options)


TEXT_FIELDS: Mapping[str, Put] = {
    "temperature": _temperature,
    "top_p": unless_neutral("top_p", _sampled(_share)),
    "top_k": unless_neutral("top_k", _sampled(bounded("top_k", f"{_P}top_k", 1, 100))),
    "seed": _sampled(bounded("seed", f"{_P}random_seed", 1, None)),
    "repetition_penalty": unless_neutral(
        "repetition_penalty", bounded("repetition_penalty", f"{_P}repetition_penalty", 1, 2)
    ),
    "stop": _stop,
    KEEP: _nothing,
    "logprobs": _returned,
    WINDOW: at_window,
}
"""The fields of a raw prompt besides the limit; any other is refused unless its value asks for nothing."""

_FREE = refused("it holds no raw prompt to a constraint; ask by chat")
_TEXT_CELLS: Mapping[str, Cell] = {
    **ONE_RAW_PROMPT,
    "best_of": RANKED,
    "stop.blank": NATIVE,
    "stop.many": SCANNED,
    **dict.fromkeys(("guided_json", "guided_regex", "guided_choice", "guided_grammar"), _FREE),
    **{f"response_format.{kind}": _FREE for kind in ("json_object", "json_schema", "grammar")},
    "images": refused("it takes images in a chat only"),
    f"{WINDOW}.truncate": RESENT,
    f"{WINDOW}.error": NATIVE,
    "unknown": IGNORED,
}

# Chats --------------------------------------------------------------------------------------------------------------


def _logprobs(draft: Draft, value: object) -> None:
    wanted = _wanted(draft, value, Operation.CHAT)
    draft.put("logprobs", True)
    if wanted.top:
        draft.put("top_logprobs", wanted.top)


def _format(draft: Draft, wanted: Guided) -> None:
    draft.put("response_format", json_schema_format(schema_of(wanted), strict=True))


def _any_object(draft: Draft, value: object) -> None:
    draft.put("response_format", {"type": "json_object"})


def _tools(draft: Draft, value: object) -> None:
    if isinstance(value, list) and value:
        draft.put("tools", list(value))


def _tool_choice(draft: Draft, value: object) -> None:
    """A word and a function have a member each."""
    if is_neutral("tool_choice", value) and not draft.params.get("tools"):
        return
    draft.put("tool_choice_option" if isinstance(value, str) else "tool_choice", value)


def _effort(draft: Draft, value: object) -> None:
    if value not in ("low", "medium", "high"):
        raise draft.invalid("reasoning_effort", "must be 'low', 'medium' or 'high'")
    draft.put("reasoning_effort", value)


def _images(draft: Draft, value: object) -> None:
    """In a prompt that goes as a chat they have become parts of its message."""
    if isinstance(draft.request.prompt, ChatPrompt):
        raise draft.unsupported("images", "in a chat put images into the messages")


CHAT_FIELDS: Mapping[str, Put] = {
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
    "logprobs": _logprobs,
    "guided": constrained(GUIDED),
    "response_format": constrained({"json": _format, "grammar": GUIDED["grammar"]}, _any_object),
    "tools": _tools,
    "tool_choice": _tool_choice,
    "reasoning_effort": _effort,
    "images": unless_neutral("images", _images),
    WINDOW: at_window,
}
"""The fields of a chat; any other is refused unless its value asks for nothing."""

_CHAT_CELLS: Mapping[str, Cell] = {
    **ONE_CHAT,
    "n": NATIVE,
    "best_of": RANKED,
    "stop.blank": NATIVE,
    "stop.many": SCANNED,
    KEEP: SCANNED,
    "echo": PREFIXED,
    "response_format.json_object": NATIVE,
    "response_format.json_schema": NATIVE,
    "response_format.grammar": NATIVE,
    "guided_json": NATIVE,
    "guided_regex": NATIVE,
    "guided_choice": NATIVE,
    "guided_grammar": NATIVE,
    "tool_choice.none": NATIVE,
    "tool_choice.required": NATIVE,
    "tool_choice.named": NATIVE,
    "parallel_tool_calls": refused("it cannot be kept to one call"),
    f"{WINDOW}.truncate": RESENT,
    f"{WINDOW}.error": NATIVE,
    "unknown": IGNORED,
}


@cache
def capabilities(asked: Operation, sent: Operation, verifies: bool) -> Capabilities:
    """The table for clients of the endpoint `asked` whose calls go to `sent`; `verifies` as in the profile."""
    if sent is Operation.COMPLETIONS:
        cells, watched = compiled([*TEXT_FIELDS, "max_tokens"], _TEXT_CELLS), {"n", "best_of", "echo", "stop"}
    else:
        cells, watched = compiled(CHAT_FIELDS, _CHAT_CELLS), {"best_of", "echo", "stop", KEEP}
        if asked is Operation.CHAT:
            cells["echo"] = cells["echo.logprobs"] = REFUSED
    held = {"guided", "response_format"} if verifies else set()
    return Capabilities(cells, most_stops=MOST_STOPS[sent], verifies=verifies, watched=frozenset(watched | held))
