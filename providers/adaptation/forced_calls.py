"""Emulates forced calls for vendors that have structured output but cannot force a function call. The prompt describes
the tools, and the response is constrained to the arguments of one of them.

`tool_calls_of_text` converts that response into the call. No tools are offered, because an engine that parses calls
from the model's text (Ollama `tools/tools.go`, November 2026) might take the response or a part of it for a call.
"""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Final, cast

import orjson

from providers.adaptation.instructions import with_instructions
from providers.adaptation.tool_members import other_members
from providers.adaptation.unique_call_ids import made_id
from providers.capabilities import BY_FORMAT, Capabilities, feature_of
from providers.constraints.constraint_styles import BY_PROMPT
from providers.constraints.json_schema import is_pointer, walk_schemas
from providers.failure import Refusal
from providers.frozen_record import frozen
from providers.json_types import JsonObject, JsonValue
from providers.unified_request import ChatPrompt, Params, Prompt, UnifiedRequest

FIELD: Final = "tool_choice"
ONE: Final = (
    "Answer with the arguments of a call of the following function, as one JSON object and nothing else: no "
    "explanation, and no Markdown.\n"
)
SEVERAL: Final = (
    'Answer with a call of one of the following functions, as one JSON object {"name": ..., "arguments": {...}} and '
    "nothing else: no explanation, and no Markdown.\n"
)
_REPLACED: Final = frozenset({"tools", FIELD, "parallel_tool_calls", "guided", "response_format"})
"""The fields that are removed: fields that a response with a single call satisfies anyway, and constraints, which apply
only to texts."""


@frozen
class ForcedCall:
    """The call into which a response is converted. If `names` has one function, the response's text is the arguments of
    that function; if it has several, the text also names the function. `seed` makes the ids of calls differ from the
    ids of calls in other turns. `left_out` are the fields of tools that the prompt does not describe."""

    names: tuple[str, ...]
    seed: bytes
    left_out: tuple[str, ...] = ()

    def call_id(self, choice: int) -> str:
        """Return the id of a choice's call, which is unique in a conversation."""
        return made_id(self.seed + b"/%d" % choice)


def forces_by_format(params: Params, table: Capabilities) -> bool:
    """Return whether a request forces a call that the gateway obtains from the vendor by a response format."""
    choice = params.get(FIELD)
    forced = bool(params.get("tools")) and (choice == "required" or isinstance(choice, dict))
    return forced and table[feature_of(FIELD, choice)] == BY_FORMAT


def hold_to_call(request: UnifiedRequest, table: Capabilities) -> tuple[UnifiedRequest, ForcedCall]:
    """Return a request for which `forces_by_format` is true, with a response format in place of its tools, and the call
    that it forces. Raises Refusal for tools that are not functions, and Unenforceable for a prompt that is not text."""
    functions = _chosen(request.params)
    form: JsonObject = {"name": "call", "schema": _schema_of(functions), "strict": True}
    params = {name: value for name, value in request.params.items() if name not in _REPLACED}
    if not (isinstance(request.prompt, ChatPrompt) or table["tools"].refused):
        # A raw prompt with tools is sent as a chat.
        params |= {"tools": [{"type": "function", "function": each} for each in functions.values()], FIELD: "none"}
    params["response_format"] = {"type": "json_schema", "json_schema": form}
    listed = [*functions.values()]
    if table["response_format.json_schema"] == BY_PROMPT:  # in this case the prompt describes the parameters
        listed = [{name: value for name, value in each.items() if name != "parameters"} for each in listed]
    words = (ONE if len(listed) == 1 else SEVERAL) + "\n".join([orjson.dumps(each).decode() for each in listed])
    held = replace(request, prompt=with_instructions(request.prompt, words), params=cast(Params, params))
    return held, ForcedCall(tuple(functions), _seed(request.prompt), tuple(other_members(request.params["tools"])))


def _seed(prompt: Prompt) -> bytes:
    """Return a digest of the last message and the number of messages. The digest is unique within a conversation."""
    turns = prompt.messages if isinstance(prompt, ChatPrompt) else ()
    return blake2b(b"%d/%b" % (len(turns), orjson.dumps(turns[-1:])), digest_size=12).digest()


def _chosen(params: Params) -> Mapping[str, JsonObject]:
    """Return the functions of which one must be called, by name. Raises Refusal."""
    functions = {str(function["name"]): function for function in _functions(params["tools"])}
    choice = params.get(FIELD)
    if not isinstance(choice, dict):
        return functions
    name = chosen_name(choice, functions)
    return {name: functions[name]}


def chosen_name(choice: JsonObject, offered: Container[str]) -> str:
    """Return the name of the function that a `tool_choice` names. Raises Refusal for another kind of choice and for a
    function that is not offered."""
    function = choice.get("function")
    name = function.get("name") if isinstance(function, dict) else None
    if choice.get("type") != "function" or not isinstance(name, str):
        raise Refusal(FIELD, "Only a choice of type 'function' can be translated.")
    if name not in offered:
        raise Refusal(FIELD, f"'{FIELD}' names '{name}', which is not among 'tools'.", "invalid_value")
    return name


def _functions(tools: Sequence[JsonObject]) -> Iterator[JsonObject]:
    for tool in tools:
        function, kind = tool.get("function"), str(tool.get("type"))[:64]
        if kind != "function" or not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise Refusal(FIELD, f"This vendor can be made to call functions only, not a tool of type '{kind}'.")
        yield {name: function[name] for name in ("name", "description", "parameters") if function.get(name)}


def _schema_of(functions: Mapping[str, JsonObject]) -> JsonObject:
    """Return the schema of the arguments of a single function, or the schema of a call of one of several functions."""
    schemas: dict[str, JsonObject] = {
        name: {"type": "object", **(object_parameters(function) or {"properties": {}})}
        for name, function in functions.items()
    }
    if len(schemas) == 1:
        return next(iter(schemas.values()))
    definitions: JsonObject = {}
    calls: list[JsonValue] = []
    for number, (name, schema) in enumerate(schemas.items()):
        if _refers(schema):
            key = f"arguments_{number}"
            definitions[key] = _moved(schema, f"#/$defs/{key}")
            schema = {"$ref": f"#/$defs/{key}"}
        calls.append(
            {
                "type": "object",
                "properties": {"name": {"type": "string", "enum": [name]}, "arguments": schema},
                "required": ["name", "arguments"],
                "additionalProperties": False,
            }
        )
    return {"anyOf": calls, **({"$defs": definitions} if definitions else {})}


def object_parameters(function: JsonObject) -> JsonObject:
    """Return the schema of a function's parameters, empty if it has none. Raises Refusal unless the schema describes
    objects."""
    parameters = function.get("parameters") or {}
    if not isinstance(parameters, dict) or parameters.get("type", "object") != "object":
        raise Refusal("tools", "The parameters of a function must be a schema of type 'object'.", "invalid_value")
    return parameters


def _refers(schema: JsonObject) -> bool:
    return any(isinstance(node.get("$ref"), str) for _, node in walk_schemas(schema))


def _moved(schema: JsonObject, place: str) -> JsonObject:
    """Return the schema with its JSON Pointer references changed so that they are valid if the schema stands at `place`
    inside another schema."""
    moved = cast(JsonObject, orjson.loads(orjson.dumps(schema)))
    for _, node in walk_schemas(moved):
        reference = node.get("$ref")
        if is_pointer(reference):
            node["$ref"] = place + reference[1:]
    return moved
