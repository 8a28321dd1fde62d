"""Converts tools and calls that have their own types in the Responses API to functions of a chat, and back.

A client that offers its own shell, a patch tool or a search of its tools runs them itself. Other vendors support only
functions. So such a tool is offered as a function whose parameters are the fields of its call, and a call of this
function is returned to the client as an item of the tool's type.

Sources: openai 3.54.0 types `LocalShellCall`, `ShellCall`, `ApplyPatchCall`, `ToolSearchCall`, their outputs and tools;
bodies of Codex CLI 0.169.0, November 2026.
"""

from collections.abc import Callable, Mapping
from typing import Final

import orjson

from providers.dialects.shared.prompt import loaded_tools
from providers.dialects.shared.read_logprobs import objects_in
from providers.frozen_record import frozen
from providers.json_types import JsonObject, JsonValue
from proxy.surfaces.response.write_sse import utf8_json

_TEXT: Final[JsonObject] = {"type": "string"}
_TEXTS: Final[JsonObject] = {"type": "array", "items": _TEXT}
_NUMBER: Final[JsonObject] = {"type": "integer"}


def _schema(required: list[JsonValue], **properties: JsonObject) -> JsonObject:
    return {"type": "object", "properties": {**properties}, "required": required, "additionalProperties": False}


@frozen
class TypedTool:
    """A tool with its own type. `arguments_field` is the field of its call's item that contains the arguments,
    `constants` are additional constant fields of that object, and `defaults` are fields that it must have, with their
    defaults. `item_fields` are further fields of the item."""

    kind: str
    default_description: str
    parameters: JsonObject
    arguments_field: str
    constants: JsonObject
    defaults: JsonObject
    item_fields: JsonObject

    @property
    def item(self) -> str:
        """The type of an item that represents a call of this tool."""
        return f"{self.kind}_call"

    def function(self, name: str, tool: JsonObject) -> JsonObject:
        """Return the tool as a function. The client's own description and parameters take precedence."""
        own = tool.get("parameters")
        parameters = own if isinstance(own, dict) and own else self.parameters
        description = tool.get("description") or self.default_description
        return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}

    def arguments(self, item: JsonObject) -> str:
        """Return the arguments of the call that an item represents."""
        inner = item.get(self.arguments_field)
        if not isinstance(inner, dict):
            return inner if isinstance(inner, str) and inner else "{}"
        return utf8_json({name: value for name, value in inner.items() if name not in self.constants}).decode()

    def item_body(self, arguments: str) -> JsonObject:
        """Return the fields of the item for a call with these arguments."""
        try:
            given: JsonValue = orjson.loads(arguments or "{}")
        except (orjson.JSONDecodeError, UnicodeEncodeError):
            given = None
        fields: JsonObject = given if isinstance(given, dict) else {"arguments": arguments}
        return {**self.item_fields, self.arguments_field: {**self.defaults, **fields, **self.constants}}


TYPED: Final[Mapping[str, TypedTool]] = {
    each.kind: each
    for each in (
        TypedTool(
            "local_shell",
            "Runs a command in the user's shell and returns its output.",
            _schema(["command"], command=_TEXTS, working_directory=_TEXT, timeout_ms=_NUMBER,
                    env={"type": "object", "additionalProperties": _TEXT}, user=_TEXT),
            "action",
            {"type": "exec"},
            {"command": [], "env": {}},
            {},
        ),
        TypedTool(
            "shell",
            "Runs commands in the user's shell and returns what each wrote and its exit code.",
            _schema(["commands"], commands=_TEXTS, timeout_ms=_NUMBER, max_output_length=_NUMBER),
            "action",
            {},
            {"commands": []},
            {},
        ),
        TypedTool(
            "apply_patch",
            "Creates, updates or deletes a file. `diff` is a diff in the V4A format; a deletion has none.",
            _schema(["type", "path"], type={"type": "string", "enum": ["create_file", "update_file", "delete_file"]},
                    path=_TEXT, diff=_TEXT),
            "operation",
            {},
            {},
            {},
        ),
        TypedTool(
            "tool_search",
            "Searches the tools that are not loaded yet and loads those that fit.",
            _schema(["query"], query=_TEXT, limit=_NUMBER),
            "arguments",
            {},
            {},
            {"execution": "client"},
        ),
    )
}  # fmt: skip
"""The tools by their types."""

CALLS: Final[Mapping[str, TypedTool]] = {each.item: each for each in TYPED.values()}
"""The tools by the types of the items of their calls."""


def needs_openai(tool: JsonObject) -> bool:
    """Return whether a tool of these types runs at OpenAI, such as a shell in a container there."""
    place = tool.get("environment")
    return isinstance(place, dict) and place.get("type") not in (None, "local")


def loads_at_openai(kind: str, tool: JsonObject) -> bool:
    """Return whether a tool is OpenAI's own search of deferred tools, which is not needed if all tools are offered at
    once."""
    return kind == "tool_search" and tool.get("execution") != "client"


# Results --------------------------------------------------------------------------------------------------------------


def _as_text(value: JsonValue) -> str:
    return value if isinstance(value, str) else utf8_json(value).decode()


def _plain(item: JsonObject) -> str:
    return _as_text(item.get("output"))


def _commands(item: JsonObject) -> str:
    """Return the output of each command and its exit code."""
    output = item.get("output")
    if not isinstance(output, list):
        return _plain(item)
    return "\n\n".join([_command(each) for each in output if isinstance(each, dict)])


def _command(each: JsonObject) -> str:
    outcome = each.get("outcome")
    ended: JsonObject = outcome if isinstance(outcome, dict) else {}
    code = ended.get("exit_code")
    status = f"exit code: {code}" if code is not None else str(ended.get("type") or "")
    return "\n".join([str(part) for part in (each.get("stdout"), each.get("stderr"), status) if part])


def _loaded(item: JsonObject) -> str:
    return loaded_tools([str(tool["name"]) for tool in tools_of(item) if "name" in tool])


def _patched(item: JsonObject) -> str:
    return _plain(item) if item.get("output") else str(item.get("status") or "completed")


RESULT_TEXTS: Final[Mapping[str, Callable[[JsonObject], str]]] = {
    "local_shell_call_output": _plain,
    "shell_call_output": _commands,
    "apply_patch_call_output": _patched,
    "tool_search_output": _loaded,
}
"""Functions that return the text of a result, by the type of its item."""


def tools_of(item: JsonObject) -> list[JsonObject]:
    """Return the tools that an item adds."""
    return objects_in(item.get("tools"))


# Calls that OpenAI ran itself -----------------------------------------------------------------------------------------


def _ran_code(item: JsonObject) -> str:
    logs = [str(each.get("logs")) for each in objects_in(item.get("outputs")) if each.get("logs")]
    ran = f"Code that was run:\n```python\n{item.get('code') or ''}\n```"
    return "\n".join([ran, "Its output:", *logs]) if logs else ran


def _called_server(item: JsonObject) -> str:
    called = f"Called {item.get('name')} of {item.get('server_label')} with {item.get('arguments') or '{}'}"
    result = item.get("output") or item.get("error")
    return f"{called}\nIts result:\n{_as_text(result)}" if result else called


HOSTED_CALL_TEXTS: Final[Mapping[str, Callable[[JsonObject], str]]] = {
    "code_interpreter_call": _ran_code,
    "mcp_call": _called_server,
}
"""Functions that return the text of a call that OpenAI ran, with its result, by the type of its item."""
