"""Functions in the form that clients used before there were tools: `functions`, `function_call`, and messages that
contain calls or results in this form.

They are converted to tools, which every vendor with functions supports. Calls of tools need ids: each call gets a new
id, and a result gets the id of the latest call of its function.

Source: OpenAI OpenAPI 2.3.0, the deprecated fields of `CreateChatCompletionRequest` and its messages.
"""

from collections.abc import Iterable

from providers.json_types import JsonObject, JsonValue
from proxy.surfaces.request.parse_state import ParsedFields
from proxy.surfaces.request.rule_kinds import Invalid, check_at, json_object, text
from proxy.surfaces.request.tools import function_tool, tools

_MODES = ("none", "auto")


def functions(value: JsonValue) -> list[JsonObject]:
    """Check a list of functions, and return them as tools."""
    if not isinstance(value, list):
        raise Invalid("must be a list of functions")
    return tools([check_at(function_tool, item, index) for index, item in enumerate(value)])


def function_call(value: JsonValue) -> str | JsonObject:
    """Check a mode, or an object that names a function, and return the equivalent `tool_choice`."""
    if isinstance(value, str) and value in _MODES:
        return value
    if not isinstance(value, dict):
        raise Invalid("must be 'none', 'auto' or an object")
    return {"type": "function", "function": {"name": check_at(text, value.get("name"), "name")}}


def legacy_functions(parsed: ParsedFields) -> None:
    """Convert the older fields to `tools` and `tool_choice`. A request must not have both the older and the newer
    form."""
    for older, newer in (("functions", "tools"), ("function_call", "tool_choice")):
        given = parsed.values.pop(older, None)
        if given is None:
            continue
        parsed.legacy_calls = True
        if newer in parsed.values:
            parsed.conflict(older, f"cannot go with '{newer}', which replaces it")
        else:
            parsed.values[newer] = given


def modern(messages: Iterable[JsonObject]) -> tuple[JsonObject, ...]:
    """Return the messages with calls and results in the newer form. A result belongs to the latest call of its
    function."""
    latest: dict[JsonValue, str] = {}
    return tuple([_modern(position, message, latest) for position, message in enumerate(messages)])


def _modern(position: int, message: JsonObject, latest: dict[JsonValue, str]) -> JsonObject:
    if message["role"] == "function":
        name = message.get("name")
        call_id = latest.get(name, f"call_{position}_{name}")
        return {"role": "tool", "tool_call_id": call_id, "content": message.get("content") or "", "name": name}
    called = message.get("function_call")
    if not isinstance(called, dict):
        return message
    name = json_object(called).get("name")
    latest[name] = f"call_{position}_{name}"[:40]
    rest = {field: value for field, value in message.items() if field != "function_call"}
    if message.get("tool_calls"):
        return rest  # the newer form of the same call
    return {**rest, "tool_calls": [{"id": latest[name], "type": "function", "function": called}]}
