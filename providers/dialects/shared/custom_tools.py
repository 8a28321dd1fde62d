"""Translates OpenAI's custom tools, whose input is a text, to functions with one argument, for vendors that have only
functions.

Sources: OpenAI OpenAPI 2.3.0 `CustomToolChatCompletions`, `ChatCompletionMessageCustomToolCall`, November 2026.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import orjson

from providers.completion import ToolCall
from providers.dialects.shared.read_json import load_json
from providers.failure import Refusal
from providers.json_types import JsonObject
from providers.unified_request import Params

INPUT = "input"
"""The name of the function's argument that holds the text."""

_MOST_BEFORE_TEXT: Final = 256
"""The number of characters of the arguments within which the text must begin. Otherwise the arguments are read only
once they are complete."""

_START: Final = re.compile(r'\s*\{\s*"input"\s*:\s*"')
_COMPLETE_CHARACTERS: Final = re.compile(
    r'[^"\\]*(?:\\(?:u[0-9a-fA-F]{4}|u(?=[0-9a-fA-F]{0,3}[^0-9a-fA-F])|[^u])[^"\\]*)*', re.DOTALL
)
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")
_SIMPLE_ESCAPES: Mapping[str, str] = {
    **{'"': '"', "\\": "\\", "/": "/"},
    **{"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"},
}

_PARAMETERS: JsonObject = {
    "type": "object",
    "properties": {INPUT: {"type": "string", "description": "The whole input of the tool, as plain text."}},
    "required": [INPUT],
    "additionalProperties": False,
}


def as_functions(params: Params) -> tuple[Params, frozenset[str]]:
    """Return the parameters with functions instead of custom tools, and the names of the custom tools. Raises Refusal
    for a tool whose input must follow a grammar."""
    tools, choice = params.get("tools") or [], params.get("tool_choice")
    if not any([tool.get("type") == "custom" for tool in tools]):
        return params, frozenset()
    names = frozenset(_custom_name(tool) for tool in tools if tool.get("type") == "custom")
    changed = params.copy()
    changed["tools"] = [_function(tool) if tool.get("type") == "custom" else tool for tool in tools]
    if isinstance(choice, dict) and isinstance(chosen := choice.get("custom"), dict):
        changed["tool_choice"] = {"type": "function", "function": {"name": chosen.get("name")}}
    return changed, names


def _custom_name(tool: JsonObject) -> str:
    custom = tool.get("custom")
    name = custom.get("name") if isinstance(custom, dict) else None
    if not isinstance(name, str) or not name:
        raise Refusal("tools", "A custom tool must have a name.", "invalid_value")
    return name


def _function(tool: JsonObject) -> JsonObject:
    custom = tool["custom"]
    custom_fields = custom if isinstance(custom, dict) else {}
    form = custom_fields.get("format")
    if isinstance(form, dict) and form.get("type") != "text":
        raise Refusal("tools", "The vendor cannot enforce a grammar for the input of a custom tool.")
    function: JsonObject = {"name": custom_fields["name"], "parameters": _PARAMETERS}
    if custom_fields.get("description"):
        function["description"] = custom_fields["description"]
    other_fields = {name: value for name, value in tool.items() if name not in ("type", "custom")}
    return {**other_fields, "type": "function", "function": function}


def input_text(arguments: str) -> str:
    """Return the text in a call's arguments, or the arguments themselves if the model wrote them in another form. If
    the arguments were cut off or the text is not valid JSON, return the part of the text that can be read."""
    try:
        given = load_json(arguments.encode(errors="surrogatepass"))
    except orjson.JSONDecodeError:
        reader = InputReader()
        read = reader.add(arguments)
        return read + reader.rest() if reader.begun else arguments
    text = given.get(INPUT) if isinstance(given, dict) else None
    return text if isinstance(text, str) else arguments


class InputReader:
    """A reader of the text in the streamed arguments of one call. `begun` is true once the text has begun.

    Arguments that do not begin with the text are held until they are complete. The end of a chunk may split an escape,
    or the two escapes of one character. The incomplete part waits for the next chunk.
    """

    __slots__ = ("_ended", "_held", "_high", "_rest", "_size", "begun")

    def __init__(self) -> None:
        self.begun = self._ended = False
        self._held: list[str] = []
        self._size = 0
        self._rest = self._high = ""

    def add(self, chunk: str) -> str:
        """Return the new text that is known with this chunk."""
        if self._ended:
            return ""
        if not self.begun:
            if not self._begins(chunk):
                return ""
            chunk = self._held.pop()
        given = self._rest + chunk
        end = _length_of_complete(given)
        inner, self._rest = given[:end], given[end:]
        if self._rest.startswith('"'):
            self._ended, self._rest = True, ""
        text = self._high + (_ESCAPE.sub(_unescaped, inner) if "\\" in inner else inner)
        self._high = ""
        if text and "\ud800" <= text[-1] <= "\udbff" and not self._ended:
            text, self._high = text[:-1], text[-1]
        return _whole_characters(text)

    def rest(self) -> str:
        """Return the remaining text at the end of the call."""
        if self.begun:
            high, self._high = self._high, ""
            return _whole_characters(high)
        held, self._held = self._held, []
        return input_text("".join(held))

    def _begins(self, chunk: str) -> bool:
        """Hold a chunk, and return whether the text has begun. If so, the held chunk is the beginning of the text."""
        self._held.append(chunk)
        if self._size > _MOST_BEFORE_TEXT:
            return False
        self._size += len(chunk)
        joined = "".join(self._held)
        start = _START.match(joined)
        if start is not None:
            self.begun, self._held = True, [joined[start.end() :]]
        return self.begun


def _length_of_complete(text: str) -> int:
    """Return the end position of the complete characters of a JSON string."""
    found = _COMPLETE_CHARACTERS.match(text)
    return 0 if found is None else found.end()


def _unescaped(escape: re.Match[str]) -> str:
    kind = escape[1]
    return chr(int(kind[1:], 16)) if len(kind) > 1 else _SIMPLE_ESCAPES.get(kind, escape[0])


def _whole_characters(text: str) -> str:
    """Return a text with surrogate pairs joined. A surrogate without a pair is replaced by U+FFFD."""
    if _SURROGATE.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def complete_call(call: ToolCall, custom_tools: frozenset[str]) -> ToolCall:
    """Return a complete call in the client's form. A custom tool call has its text. A function call without arguments
    has an empty object, since clients parse the arguments as JSON."""
    if call.name in custom_tools:
        return ToolCall(call.id, call.name, input_text(call.arguments), "custom", call.extra)
    if call.arguments or call.kind == "custom":
        return call
    return replace(call, arguments="{}")
