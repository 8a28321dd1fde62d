"""Conversations and tools on Ollama's chat: texts in one piece, images apart from them, arguments as objects.

Never an answer, and never a network: an image must be there as data.

Sources: Ollama `api/types.go` (`Message`, `Tool`, `ToolCall`), `docs/api.md`; November 2026.
"""

from collections.abc import Callable, Iterable, Mapping

from providers.dialects.native_fields import Draft
from providers.dialects.native_messages import Walk, data_uri
from providers.failure import Refusal
from providers.unified import JsonObject, JsonValue


class Conversation:
    """Native messages of OpenAI-shaped ones; `param` is the field they come from."""

    __slots__ = ("_called", "_walk")

    def __init__(self, param: str) -> None:
        self._walk = Walk(param)
        self._called: dict[str, str] = {}

    def read(self, messages: Iterable[JsonValue]) -> list[JsonValue]:
        """Translate. Raises Refusal naming the message at fault."""
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
        # Older servers know a result by its function alone.
        return {**turn, "tool_name": called} if called else turn

    def _call(self, call: JsonValue, index: int) -> JsonObject:
        called = self._walk.called(call)
        self._called[called.id] = called.name
        return {"id": called.id, "function": {"index": index, "name": called.name, "arguments": called.given}}

    def _text(self, content: JsonValue) -> str:
        """The text of a content that may hold nothing else."""
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


_ROLES: Mapping[str, Callable[[Conversation, JsonObject], JsonObject]] = {
    "system": Conversation._instruction,
    "developer": Conversation._instruction,
    "user": Conversation._user,
    "assistant": Conversation._assistant,
    "tool": Conversation._tool,
}


def put_tools(draft: Draft) -> None:
    """Add `tools`. Raises Refusal; the choice of none is made by offering nothing."""
    tools, choice = draft.params.get("tools"), draft.params.get("tool_choice")
    if not tools:
        if choice not in (None, "none", "auto"):
            raise Refusal("tool_choice", "'tool_choice' needs 'tools' to choose from.", "invalid_value")
        return
    if draft.params.get("parallel_tool_calls") is False:
        raise draft.unsupported("parallel_tool_calls", draft.table["parallel_tool_calls"].how)
    definitions: list[JsonValue] = [_definition(draft, tool) for tool in tools]
    if choice == "none":
        draft.emulated.append("tool_choice")
    elif choice in (None, "auto"):
        draft.body["tools"] = definitions
    else:
        raise draft.unsupported("tool_choice", draft.table["tool_choice.required"].how)


def _definition(draft: Draft, tool: JsonObject) -> JsonObject:
    function = tool.get("function")
    if tool.get("type") != "function" or not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise Refusal("tools", "Only tools of type 'function' can be translated.")
    if function.get("strict"):
        raise draft.unsupported("tools", "it cannot promise arguments that are 'strict'")
    wire: JsonObject = {name: value for name, value in function.items() if name != "strict" and value is not None}
    wire.setdefault("parameters", {"type": "object", "properties": {}})
    return {"type": "function", "function": wire}
