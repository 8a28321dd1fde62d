"""Conversations and tools on Ollama's chat: texts in one piece, images beside them as data, arguments as objects.

Sources: Ollama `api/types.go` (`Message`, `Tool`, `ToolCall`), `docs/api.md`; November 2026.
"""

from collections.abc import Callable, Iterable, Mapping

from providers.dialects.shared.conversation import Walk, data_uri
from providers.dialects.shared.request_body import RequestBody
from providers.dialects.shared.tool_definitions import offers_tools
from providers.failure import Refusal
from providers.json_types import JsonObject, JsonValue


class OllamaConversation:
    """Translates OpenAI-shaped messages to Ollama's; `param` is the client's field that they come from."""

    __slots__ = ("_called", "_walk")

    def __init__(self, param: str) -> None:
        self._walk = Walk(param)
        self._called: dict[str, str] = {}

    def read(self, messages: Iterable[JsonValue]) -> list[JsonValue]:
        """Return the native messages. Raises Refusal naming the message at fault."""
        turns: list[JsonValue] = []
        for role, message in self._walk.each(messages):
            translate = _ROLES.get(role)
            if translate is None:
                raise self._walk.no_role(role)
            turns.append(translate(self, message))
        return turns

    def _instruction(self, message: JsonObject) -> JsonObject:
        return {"role": "system", "content": self._text(message.get("content"))}

    def _user(self, message: JsonObject) -> JsonObject:
        texts: list[str] = []
        images: list[JsonValue] = []
        for part in _parts(message.get("content")):
            if isinstance(part, dict) and part.get("type") == "image_url":
                images.append(self._image(self._walk.image_address(part)))
            else:
                texts.append(self._text([part]))
        turn: JsonObject = {"role": "user", "content": "".join(texts)}
        return {**turn, "images": images} if images else turn

    def _assistant(self, message: JsonObject) -> JsonObject:
        text = self._text(message.get("content")) + self._text(message.get("refusal"))
        turn: JsonObject = {"role": "assistant", "content": text}
        thought, calls = message.get("reasoning_content") or message.get("reasoning"), message.get("tool_calls")
        if isinstance(thought, str) and thought:
            turn["thinking"] = thought
        if isinstance(calls, list) and calls:
            turn["tool_calls"] = [self._call(call, index) for index, call in enumerate(calls)]
        return turn

    def _tool(self, message: JsonObject) -> JsonObject:
        call, name = message.get("tool_call_id"), message.get("name")
        if not isinstance(call, str):
            raise self._walk.refusal("is a tool's result without 'tool_call_id'", "invalid_value")
        turn: JsonObject = {"role": "tool", "content": self._text(message.get("content")), "tool_call_id": call}
        called = name if isinstance(name, str) and name else self._called.get(call)
        # Older servers match a result to its call by the function's name.
        return {**turn, "tool_name": called} if called else turn

    def _call(self, call: JsonValue, index: int) -> JsonObject:
        called = self._walk.read_call(call)
        self._called[called.id] = called.name
        return {"id": called.id, "function": {"index": index, "name": called.name, "arguments": called.given}}

    def _text(self, content: JsonValue) -> str:
        """Return the text of a content. Raises Refusal for parts that are no text."""
        texts: list[str] = []
        for part in _parts(content):
            match part:
                case {"type": "text", "text": str(text)} | {"type": "refusal", "refusal": str(text)}:
                    texts.append(text)
                case _:
                    raise self._walk.no_part(part.get("type") if isinstance(part, dict) else None)
        return "".join(texts)

    def _image(self, url: str) -> str:
        media, data = data_uri(url)
        if not media.startswith("image/"):
            raise self._walk.refusal("has an image that is no base64 data URI, and the engine fetches none")
        return data


def _parts(content: JsonValue) -> list[JsonValue]:
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": content}] if isinstance(content, str) else []


_ROLES: Mapping[str, Callable[[OllamaConversation, JsonObject], JsonObject]] = {
    "system": OllamaConversation._instruction,
    "developer": OllamaConversation._instruction,
    "user": OllamaConversation._user,
    "assistant": OllamaConversation._assistant,
    "tool": OllamaConversation._tool,
}


def put_tools(draft: RequestBody) -> None:
    """Add `tools`; a `tool_choice` of none offers no tools. Raises Refusal."""
    if not offers_tools(draft.params):
        return
    tools, choice = draft.params["tools"], draft.params.get("tool_choice")
    if draft.params.get("parallel_tool_calls") is False:
        raise draft.unsupported("parallel_tool_calls", draft.table["parallel_tool_calls"].how)
    definitions: list[JsonValue] = [_definition(draft, tool) for tool in tools]
    if choice == "none":
        draft.emulated.append("tool_choice")
    elif choice in (None, "auto"):
        draft.body["tools"] = definitions
    else:
        raise draft.unsupported("tool_choice", draft.table["tool_choice.required"].how)


def _definition(draft: RequestBody, tool: JsonObject) -> JsonObject:
    function = tool.get("function")
    if tool.get("type") != "function" or not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise Refusal("tools", "Only tools of type 'function' can be translated.")
    wire: JsonObject = {name: value for name, value in function.items() if name != "strict" and value is not None}
    wire.setdefault("parameters", {"type": "object", "properties": {}})
    return {"type": "function", "function": wire}
