"""OpenAI's custom tools, which take a text, as functions of one argument for vendors that have functions only.

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
"""The argument that holds the text."""

_MOST_BEFORE: Final = 256
"""Characters of arguments in which the text has to begin; otherwise the arguments are read when they are whole."""

_START: Final = re.compile(r'\s*\{\s*"input"\s*:\s*"')
_INNER: Final = re.compile(
    r'[^"\\]*(?:\\(?:u[0-9a-fA-F]{4}|u(?=[0-9a-fA-F]{0,3}[^0-9a-fA-F])|[^u])[^"\\]*)*', re.DOTALL
)
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")
_SINGLE: Mapping[str, str] = {
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
    """Return the parameters with functions in place of custom tools, and the names of those. Raises Refusal for a tool
    whose input must follow a grammar."""
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
    held = custom if isinstance(custom, dict) else {}
    form = held.get("format")
    if isinstance(form, dict) and form.get("type") != "text":
        raise Refusal("tools", "The vendor cannot hold the input of a custom tool to a grammar.")
    function: JsonObject = {"name": held["name"], "parameters": _PARAMETERS}
    if held.get("description"):
        function["description"] = held["description"]
    beside = {name: value for name, value in tool.items() if name not in ("type", "custom")}
    return {**beside, "type": "function", "function": function}


def input_text(arguments: str) -> str:
    """Return the text in a call's arguments, or the arguments themselves where a model wrote them otherwise. Of
    arguments that were cut off, or whose text is no JSON, it is what can be read of the text."""
    try:
        given = load_json(arguments.encode(errors="surrogatepass"))
    except orjson.JSONDecodeError:
        reader = InputReader()
        read = reader.add(arguments)
        return read + reader.rest() if reader.begun else arguments
    text = given.get(INPUT) if isinstance(given, dict) else None
    return text if isinstance(text, str) else arguments


class InputReader:
    """Reads the text in the streamed arguments of one call, as far as it has come. `begun` says that the text has.

    Arguments that do not begin with the text are held until they are whole. The end of a piece may cut an escape, or
    lie between the two escapes of one character: what is incomplete waits for the next piece.
    """

    __slots__ = ("_ended", "_held", "_high", "_rest", "_size", "begun")

    def __init__(self) -> None:
        self.begun = self._ended = False
        self._held: list[str] = []
        self._size = 0
        self._rest = self._high = ""

    def add(self, piece: str) -> str:
        """Return the text that is known since the piece before."""
        if self._ended:
            return ""
        if not self.begun:
            if not self._begins(piece):
                return ""
            piece = self._held.pop()
        given = self._rest + piece
        end = _inner(given)
        inner, self._rest = given[:end], given[end:]
        if self._rest.startswith('"'):
            self._ended, self._rest = True, ""
        text = self._high + (_ESCAPE.sub(_unescaped, inner) if "\\" in inner else inner)
        self._high = ""
        if text and "\ud800" <= text[-1] <= "\udbff" and not self._ended:
            text, self._high = text[:-1], text[-1]
        return _whole_characters(text)

    def rest(self) -> str:
        """Return what remains at the end of the call."""
        if self.begun:
            high, self._high = self._high, ""
            return _whole_characters(high)
        held, self._held = self._held, []
        return input_text("".join(held))

    def _begins(self, piece: str) -> bool:
        """Hold a piece, and return whether the text has begun; what is held is then the beginning of it."""
        self._held.append(piece)
        if self._size > _MOST_BEFORE:
            return False
        self._size += len(piece)
        joined = "".join(self._held)
        start = _START.match(joined)
        if start is not None:
            self.begun, self._held = True, [joined[start.end() :]]
        return self.begun


def _inner(text: str) -> int:
    """Return where the complete characters of a JSON string end."""
    found = _INNER.match(text)
    return 0 if found is None else found.end()


def _unescaped(escape: re.Match[str]) -> str:
    kind = escape[1]
    return chr(int(kind[1:], 16)) if len(kind) > 1 else _SINGLE.get(kind, escape[0])


def _whole_characters(text: str) -> str:
    """Return a text with halves of characters joined; one without the other is replaced."""
    if _SURROGATE.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def whole_call(call: ToolCall, custom_tools: frozenset[str]) -> ToolCall:
    """Return a call of a whole answer as the client knows its tool: one of a custom tool has its text, and one of a
    function without arguments has an empty object, since clients parse the arguments as JSON."""
    if call.name in custom_tools:
        return ToolCall(call.id, call.name, input_text(call.arguments), "custom", call.extra)
    if call.arguments or call.kind == "custom":
        return call
    return replace(call, arguments="{}")
