"""The fields of a Responses request that chats do not have, and their effect on the unified request.

Sources: OpenAI OpenAPI 2.3.0 `CreateResponse`; openai 3.54.0 `ResponseCreateParams`; `client_metadata` and `store:
false` from bodies of Codex CLI 0.169.0, November 2026.
"""

from collections.abc import Callable, Mapping
from typing import Final

from providers.json_types import JsonObject, JsonValue
from providers.unified_request import Operation, StreamOptions
from proxy.surfaces.request import constraints
from proxy.surfaces.request.field_rules import FIELDS, stream_options
from proxy.surfaces.request.reasoning import reasoning_object
from proxy.surfaces.request.rule_kinds import (
    Check,
    Invalid,
    boolean,
    check_at,
    integer,
    json_object,
    one_of,
    refuse,
    string,
    text,
    texts,
)
from proxy.surfaces.responses.request_draft import ResponsesDraft

LOGPROBS: Final = "message.output_text.logprobs"
SOURCES: Final = "web_search_call.action.sources"
"""The values of `include` that the gateway honours itself."""

CHATS_FIELD: Final = "belongs to chat completions"
"""The beginning of the message for a field that this API does not have."""

_COMMON_FIELDS: Final = frozenset(
    {"model", "temperature", "top_p", "parallel_tool_calls", "user", "metadata", "service_tier", "safety_identifier"}
    | {"prompt_cache_key", "prompt_cache_retention", "stream", "inference_timeout"}
)
"""Fields that the Responses API and the chat API have in common."""

UNIFIED: Mapping[str, Check] = {
    **{name: check for name, check in FIELDS[Operation.CHAT].items() if name not in ("messages", "prompt")},
    "messages": refuse(f"{CHATS_FIELD}; send 'input' here"),
    "functions": refuse(f"{CHATS_FIELD}; send 'tools' here"),
    "function_call": refuse(f"{CHATS_FIELD}; send 'tool_choice' here"),
    "audio": refuse(f"{CHATS_FIELD}; a response here has no audio"),
    "n": integer(1, 1),
}
"""The checks of the unified fields: the fields that this API shares with the unified request, and the fields that only
the unified request has."""


def _input(draft: ResponsesDraft, value: JsonValue) -> None:
    """Accept the value: `resolve_input` reads it."""


def _instructions(draft: ResponsesDraft, value: JsonValue) -> None:
    string(value)


def _previous(draft: ResponsesDraft, value: JsonValue) -> None:
    text(value)


def _boolean(draft: ResponsesDraft, value: JsonValue) -> None:
    boolean(value)


def _background(draft: ResponsesDraft, value: JsonValue) -> None:
    if boolean(value):
        raise Invalid(
            "must be false: a response is only generated while the client waits", code="unsupported_parameter"
        )


def _refused(why: str) -> "Reader":
    def read(draft: ResponsesDraft, value: JsonValue) -> None:
        raise Invalid(why, code="unsupported_parameter")

    return read


def _only_native(draft: ResponsesDraft, name: str, why: str) -> None:
    draft.only[name] = why


def _native(name: str) -> "Reader":
    def read(draft: ResponsesDraft, value: JsonValue) -> None:
        if value not in ([], {}):
            _only_native(draft, name, f"'{name}'")

    return read


def _truncation(draft: ResponsesDraft, value: JsonValue) -> None:
    draft.shortens = one_of("auto", "disabled")(value) == "auto"


def _limit(draft: ResponsesDraft, value: JsonValue) -> None:
    draft.put("max_output_tokens", "max_tokens", integer(1)(value))


def _count(draft: ResponsesDraft, value: JsonValue) -> None:
    """Check the value. It limits calls of tools that OpenAI runs, which other targets refuse."""
    integer(1)(value)


def _include(draft: ResponsesDraft, value: JsonValue) -> None:
    """Check a list. Values for tools that OpenAI runs have no effect without these tools."""
    if LOGPROBS in texts(value):
        draft.parsed.values["logprobs"] = True


def _top_logprobs(draft: ResponsesDraft, value: JsonValue) -> None:
    count = integer(0, 20)(value)
    if count:
        draft.parsed.values["logprobs"] = True
        draft.parsed.values["top_logprobs"] = count


def _text(draft: ResponsesDraft, value: JsonValue) -> None:
    inner = json_object(value)
    if (verbosity := inner.get("verbosity")) is not None:
        draft.put("text", "verbosity", check_at(text, verbosity, "verbosity"))
    form = inner.get("format")
    if form is not None:
        response_format = check_at(
            constraints.response_format, _format(check_at(json_object, form, "format")), "format"
        )
        if response_format != {"type": "text"}:
            draft.put("text", "response_format", response_format)


def _format(form: JsonObject) -> JsonObject:
    """Return a format in the form of chats, in which the fields that are flat here are in a nested object."""
    if form.get("type") != "json_schema":
        return form
    inner: JsonObject = {name: value for name, value in form.items() if name != "type" and value is not None}
    return {"type": "json_schema", "json_schema": inner}


def _reasoning(draft: ResponsesDraft, value: JsonValue) -> None:
    """Check the value. The renderer of the response reads how reasoning is to be shown; the other settings are read as
    on other surfaces."""
    given = reasoning_object(value)
    shown = given.get("summary") or given.get("generate_summary")
    if shown is not None:
        check_at(text, shown, "summary")
    rest = {name: field for name, field in given.items() if name not in ("summary", "generate_summary")}
    if rest:
        draft.parsed.values["reasoning"] = rest


def _stream_options(draft: ResponsesDraft, value: JsonValue) -> None:
    options = stream_options(value)
    if draft.parsed.values.get("stream") is True:
        draft.parsed.values["stream_options"] = StreamOptions(include_obfuscation=options.include_obfuscation)


def _client_metadata(draft: ResponsesDraft, value: JsonValue) -> None:
    """Check Codex's notes about itself, which have no effect on the response."""
    json_object(value)
    draft.left_out["client_metadata"] = None


def _by_tools(draft: ResponsesDraft, value: JsonValue) -> None:
    """Accept the value: `read_tools` reads it."""


Reader = Callable[[ResponsesDraft, JsonValue], None]
"""A function that reads a field's value other than null into the draft. It raises Invalid."""

READERS: Mapping[str, Reader] = {
    "input": _input,
    "instructions": _instructions,
    "previous_response_id": _previous,
    "conversation": _refused("is not stored here; send 'previous_response_id', or the items themselves"),
    "store": _boolean,
    "background": _background,
    "prompt": _refused("names a template of OpenAI's; send its text as 'instructions' and 'input'"),
    "truncation": _truncation,
    "max_output_tokens": _limit,
    "max_tool_calls": _count,
    "include": _include,
    "top_logprobs": _top_logprobs,
    "text": _text,
    "reasoning": _reasoning,
    "stream_options": _stream_options,
    "tools": _by_tools,
    "tool_choice": _by_tools,
    "client_metadata": _client_metadata,
    "context_management": _native("context_management"),
    "moderation": _native("moderation"),
    "image": _native("image"),
    "access_programs": _native("access_programs"),
}
"""The readers of the fields that chats do not have, or that have another meaning in chats."""

OWN_FIELDS: frozenset[str] = _COMMON_FIELDS | READERS.keys()
"""Every field of the API that the gateway knows."""
