"""Translates conversations and tools for Ollama's chat.

A message has one text, its images are separate base64 data, and the arguments of tool calls are objects.

Sources: Ollama `api/types.go` (`Message`, `Tool`, `ToolCall`), `docs/api.md`; `server/prompt.go`, by which images in a
message of any role reach the model; November 2026.
"""

from collections.abc import Iterable

from providers.adaptation.tool_members import other_members
from providers.conversation import (
    Image,
    InlineData,
    OtherPart,
    Part,
    Reasoning,
    RedactedReasoning,
    Text,
    ToolResult,
    ToolUse,
    Turn,
)
from providers.dialects.shared.prompt import failed_text, joined_texts
from providers.dialects.shared.read_conversation import CACHE, read_conversation
from providers.dialects.shared.request_body import RequestBody
from providers.dialects.shared.tool_definitions import offers_tools
from providers.failure import Refusal
from providers.json_types import JsonObject, JsonValue
from providers.unified_request import Params


class OllamaConversation:
    """A translator of OpenAI-shaped messages to Ollama's. `param` is the client's field that the messages come from.
    `dropped` lists the fields that were left out."""

    __slots__ = ("_names_by_call", "_param", "dropped")

    def __init__(self, param: str) -> None:
        self._param = param
        self._names_by_call: dict[str, str] = {}
        self.dropped: list[str] = []

    def read(self, messages: Iterable[JsonValue]) -> list[JsonValue]:
        """Return the native messages. Raises Refusal, which names the message at fault."""
        turns: list[JsonValue] = []
        for turn in read_conversation(messages, self._param):
            self.dropped += turn.unsent
            if turn.role == "tool":
                turns += [self._result(turn, part) for part in turn.parts if isinstance(part, ToolResult)]
            elif turn.role == "assistant":
                turns.append(self._assistant(turn))
            else:
                turns.append(
                    {"role": turn.role, **self._text_and_images(turn, turn.parts, with_images=turn.role == "user")}
                )
        return turns

    def _assistant(self, turn: Turn) -> JsonObject:
        reasoning_texts = [part.text for part in turn.parts if isinstance(part, Reasoning)]
        calls = [part for part in turn.parts if isinstance(part, ToolUse)]
        content_parts = [part for part in turn.parts if not isinstance(part, Reasoning | RedactedReasoning | ToolUse)]
        if any(isinstance(part, RedactedReasoning) for part in turn.parts):
            self.dropped.append("thinking")
        message: JsonObject = {"role": "assistant", **self._text_and_images(turn, content_parts, with_images=False)}
        if reasoning_text := "".join(reasoning_texts):
            message["thinking"] = reasoning_text
        if calls:
            message["tool_calls"] = [self._tool_call(call, index) for index, call in enumerate(calls)]
        return message

    def _result(self, turn: Turn, result: ToolResult) -> JsonObject:
        self._note_cache_marker(result.cache)
        message: JsonObject = {"role": "tool", **self._text_and_images(turn, result.parts, with_images=True)}
        if result.failed:
            message["content"] = failed_text(str(message["content"]))
        message["tool_call_id"] = result.call_id
        # Older servers match a result to its call by the function's name.
        tool_name = result.name or self._names_by_call.get(result.call_id)
        return {**message, "tool_name": tool_name} if tool_name else message

    def _tool_call(self, call: ToolUse, index: int) -> JsonObject:
        self._note_cache_marker(call.cache)
        self._names_by_call[call.id] = call.name
        return {"id": call.id, "function": {"index": index, "name": call.name, "arguments": call.arguments}}

    def _text_and_images(self, turn: Turn, parts: Iterable[Part], *, with_images: bool) -> JsonObject:
        """Return the joined text of the parts as `content`, and their images as `images`. Raises Refusal for other
        parts."""
        texts: list[str] = []
        images: list[JsonValue] = []
        for part in parts:
            match part:
                case Text(text, cache):
                    texts.append(text)
                    self._note_cache_marker(cache)
                case Image(media, _, cache) if with_images:
                    images.append(_image_data(turn, media))
                    self._note_cache_marker(cache)
                case OtherPart(kind):
                    raise turn.no_part(kind)
                case _:
                    raise turn.no_part(type(part).__name__.lower())
        return {"content": joined_texts(turn.role, texts), **({"images": images} if images else {})}

    def _note_cache_marker(self, cache: JsonObject | None) -> None:
        """Record a cache marker as dropped: the engine caches prompts without a marker."""
        if cache is not None:
            self.dropped.append(CACHE)


def _image_data(turn: Turn, media: object) -> str:
    if isinstance(media, InlineData) and media.media_type.startswith("image/"):
        return media.data
    raise turn.refusal("has an image that is no base64 data URI, and the engine fetches none")


def put_tools(draft: RequestBody, params: Params) -> None:
    """Write `tools`, unless `tool_choice` is `none`. Raises Refusal for tools that are not functions."""
    if not offers_tools(params):
        return
    tools, choice = params["tools"], params.get("tool_choice")
    # Fields of the function itself are sent, so only the fields beside it are dropped.
    draft.dropped += other_members([{**tool, "function": {}} for tool in tools])
    definitions: list[JsonValue] = [_definition(draft, tool) for tool in tools]
    if choice == "none":
        draft.emulated.append("tool_choice")
    elif choice in (None, "auto"):
        draft.body["tools"] = definitions
    else:
        raise draft.unsupported("tool_choice", "it cannot be made to call a function")


def _definition(draft: RequestBody, tool: JsonObject) -> JsonObject:
    function = tool.get("function")
    if tool.get("type") != "function" or not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise Refusal("tools", f"The engine has no tools of the type '{str(tool.get('type'))[:64]}'.")
    wire: JsonObject = {name: value for name, value in function.items() if name != "strict" and value is not None}
    wire.setdefault("parameters", {"type": "object", "properties": {}})
    return {"type": "function", "function": wire}
