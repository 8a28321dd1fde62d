"""Conversations on Cohere's v2 chat: roles, images, reasoning, tool calls and their results.

Sources: `cohere` 7.3.1 type `ChatMessageV2`; "Chat" and "Image inputs" pages, November 2026.
"""

from collections.abc import Callable, Iterable, Mapping

from providers.dialects.cohere.tools import CohereToolNames
from providers.dialects.shared.conversation import Walk
from providers.failure import Refusal
from providers.json_types import JsonObject, JsonValue


class CohereConversation:
    """Translates OpenAI-shaped messages to Cohere's. `param` is the client's field that the messages come from."""

    __slots__ = ("_names", "_walk")

    def __init__(self, names: CohereToolNames, param: str) -> None:
        self._names = names
        self._walk = Walk(param)

    def read(self, messages: Iterable[JsonValue]) -> list[JsonValue]:
        """Return the native messages without empty ones, which the vendor refuses. Raises Refusal."""
        turns: list[JsonValue] = []
        for role, message in self._walk.each(messages):
            translate = _ROLES.get(role)
            if translate is None:
                raise self._walk.no_role(role)
            turn = translate(self, message)
            if len(turn) > 1:
                turns.append(turn)
        if not turns:
            param = self._walk.param
            raise Refusal(param, f"'{param}' holds no text for the model to answer.", "invalid_value")
        return turns

    def _instruction(self, message: JsonObject) -> JsonObject:
        text = self._text_of(message.get("content"))
        return {"role": "system", **({"content": text} if text else {})}

    def _user(self, message: JsonObject) -> JsonObject:
        content = message.get("content")
        if isinstance(content, list):
            content = [part for part in map(self._part, content) if part.get("text") != ""]
        return {"role": "user", **({"content": content} if content else {})}

    def _assistant(self, message: JsonObject) -> JsonObject:
        turn: JsonObject = {"role": "assistant"}
        text = self._text_of(message.get("content")) + self._text_of(message.get("refusal"))
        calls = message.get("tool_calls")
        if text:
            turn["content"] = text
        if isinstance(calls, list) and calls:
            turn["tool_calls"] = [self._call(call) for call in calls]
        thought = message.get("reasoning_content") or message.get("reasoning")
        if isinstance(thought, str) and thought and len(turn) > 1:
            self._put_thought(turn, thought, text)
        return turn

    def _put_thought(self, turn: JsonObject, thought: str, text: str) -> None:
        """Add reasoning: before calls as `tool_plan`, as in the vendor's answers, else as a part of the content."""
        if "tool_calls" in turn:
            turn["tool_plan"] = thought
        else:
            turn["content"] = [{"type": "thinking", "thinking": thought}, {"type": "text", "text": text}]

    def _tool(self, message: JsonObject) -> JsonObject:
        call = message.get("tool_call_id")
        if not isinstance(call, str):
            raise self._walk.refusal("is a tool's result without 'tool_call_id'", "invalid_value")
        # The vendor refuses a result with an empty text.
        result = self._text_of(message.get("content")) or "{}"
        return {"role": "tool", "tool_call_id": call, "content": result}

    def _text_of(self, content: JsonValue) -> str:
        """Return the text of a content. Raises Refusal for parts that are no text."""
        if not isinstance(content, list):
            return content if isinstance(content, str) else ""
        parts = [self._part(part) for part in content]
        if any(part["type"] != "text" for part in parts):
            raise self._walk.refusal("may only hold text")
        return "".join([str(part["text"]) for part in parts])

    def _part(self, part: JsonValue) -> JsonObject:
        if isinstance(part, dict) and part.get("type") == "image_url":
            return self._image(part)
        match part:
            case {"type": "text", "text": str(text)} | {"type": "refusal", "refusal": str(text)}:
                return {"type": "text", "text": text}
            case _:
                raise self._walk.no_part(part.get("type") if isinstance(part, dict) else None)

    def _image(self, part: JsonObject) -> JsonObject:
        url, image = self._walk.image_address(part), part.get("image_url")
        detail = image.get("detail") if isinstance(image, dict) else None
        if not url.startswith(("https://", "http://", "data:image/")):
            raise self._walk.refusal("has an image that is neither a web address nor a data URI")
        return {"type": "image_url", "image_url": {"url": url, **({"detail": detail} if detail else {})}}

    def _call(self, call: JsonValue) -> JsonObject:
        match call:
            case {"id": str(identity), "function": dict(function)} if isinstance(function.get("name"), str):
                name = str(function["name"])
                named: JsonObject = {"name": self._names[name], "arguments": function.get("arguments") or "{}"}
                return {"id": identity, "type": "function", "function": named}
            case _:
                raise self._walk.refusal("has a tool call that is not a function's, or without an id")


def called_names(messages: Iterable[JsonObject]) -> list[str]:
    """Return the names of the functions that a conversation has called."""
    names: list[str] = []
    for message in messages:
        calls = message.get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            function = call.get("function") if isinstance(call, dict) else None
            name = function.get("name") if isinstance(function, dict) else None
            names += [name] if isinstance(name, str) else []
    return names


_ROLES: Mapping[str, Callable[[CohereConversation, JsonObject], JsonObject]] = {
    "system": CohereConversation._instruction,
    "developer": CohereConversation._instruction,
    "user": CohereConversation._user,
    "assistant": CohereConversation._assistant,
    "tool": CohereConversation._tool,
}
