"""Converts the items of a Responses request to the messages of a chat.

Everything that the model made between two messages of other roles is one turn: its reasoning, its text and its calls.
Parts of messages are unchanged; dialects can read them in chats too.

Sources: OpenAI OpenAPI 2.3.0 `InputItem`; openai 3.54.0 `types/responses`, November 2026.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, cast

from providers.adaptation.merged_messages import apart
from providers.conversation import AFTER_KEY
from providers.json_types import JsonObject, JsonValue
from providers.unified_request import Operation
from proxy.surfaces.request.parse_state import ParsedFields, SurfaceRules
from proxy.surfaces.responses.input_items import REASONING
from proxy.surfaces.responses.request_draft import ResponsesDraft
from proxy.surfaces.thinking_envelope import EnvelopeOpener
from proxy.surfaces.tool_items.typed_tools import CALLS, HOSTED_CALL_TEXTS, RESULT_TEXTS

_LEFT_OUT: Final = frozenset({"web_search_call", "image_generation_call", "mcp_list_tools", "compaction"})
"""Past items that are not needed to understand the conversation, or that only OpenAI can read."""

_TEXTS: Final = ("input_text", "output_text", "text", "summary_text")

_CONTENT_FIELDS: Final = frozenset({"image_url", "file_data", "file_url"})
"""Fields of a part that contain the content itself, so that the part's id is not needed."""


@dataclass(slots=True)
class _ModelTurn:
    """Everything that the model made since the last message of another role. `text_length` is the number of characters
    in its text."""

    details: list[JsonValue] = field(default_factory=list)
    reasoning_texts: list[str] = field(default_factory=list)
    parts: list[JsonValue] = field(default_factory=list)
    calls: list[JsonValue] = field(default_factory=list)
    extra: JsonValue = None
    text_length: int = 0

    def placed(self, detail: JsonObject) -> JsonObject:
        """Return a detail of reasoning together with its position in the turn. The position follows from the order of
        the items."""
        rest = {name: value for name, value in detail.items() if name != AFTER_KEY}
        return {**rest, AFTER_KEY: [self.text_length, len(self.calls)]} if self.text_length or self.calls else rest

    def message(self) -> JsonObject | None:
        """Return the turn as a message; `None` if it has only reasoning, which no vendor accepts alone."""
        if not self.parts and not self.calls:
            return None
        content: JsonValue = self.parts or None
        if len(self.parts) == 1 and isinstance(only := self.parts[0], dict) and only.keys() == {"type", "text"}:
            content = only["text"]
        message: JsonObject = {"role": "assistant", "content": content}
        if self.details:
            message["reasoning_details"] = self.details
        elif self.reasoning_texts:
            message["reasoning_content"] = "\n\n".join(self.reasoning_texts)
        if self.calls:
            message["tool_calls"] = self.calls
        if self.extra:
            message["extra_content"] = self.extra
        return message


def read_common(instructions: str | None, items: tuple[JsonObject, ...]) -> tuple[JsonObject, ...]:
    """Return the messages of items from `common_input`. These items need no check, because the messages have all of
    their contents, and they have no other effect."""
    draft = ResponsesDraft({}, ParsedFields(_NO_RULES, Operation.CHAT))
    return cast(tuple[JsonObject, ...], tuple(ConversationReader(draft).read(instructions, items)))


_NO_RULES: Final = SurfaceRules({}, {})


class ConversationReader:
    """Reads the items of one request; `messages` are the messages so far."""

    __slots__ = ("_draft", "_opener", "_turn", "messages")

    def __init__(self, draft: ResponsesDraft) -> None:
        self._draft = draft
        self._opener = EnvelopeOpener()
        self._turn: _ModelTurn | None = None
        self.messages: list[JsonValue] = []

    def read(self, instructions: JsonValue, items: Iterable[JsonObject]) -> list[JsonValue]:
        """Return the messages."""
        if instructions:
            self.messages.append({"role": "system", "content": instructions})
        for item in items:
            kind = str(item.get("type") or "message")
            handle = _HANDLERS.get(kind)
            if handle is not None:
                handle(self, item)
            elif kind in _LEFT_OUT:
                self._draft.left_out[f"input.{kind}"] = None
            else:
                self._draft.only["input"] = f"an item of type '{kind[:64]}'"
        self._end_turn()
        return self.messages

    def _message(self, item: JsonObject) -> None:
        role, content = item.get("role"), item.get("content")
        if role != "assistant":
            self._end_turn()
            self.messages.append({"role": role, "content": self._content(content)})
            return
        turn = self._begin_turn()
        if not turn.parts and (text := _only_text(content)):
            turn.parts.append({"type": "text", "text": text})
            turn.text_length += len(text)
        else:
            self._add_text(turn, content)
        turn.extra = item.get("extra_content") or turn.extra
        if isinstance(sealed := item.get("encrypted_content"), str) and sealed:
            self._open(turn, sealed)

    def _add_text(self, turn: _ModelTurn, content: JsonValue) -> None:
        """Add a text of the model to its turn."""
        if _cites(content):
            self._draft.left_out["annotations"] = None
        # An empty text has no effect, and several vendors refuse it.
        said = [part for part in self._parts(content) if not isinstance(part, dict) or part.get("text") != ""]
        said = apart(turn.parts, said)
        turn.parts += said
        turn.text_length += _length(said)

    def _reasoning(self, item: JsonObject) -> None:
        turn, sealed = self._begin_turn(), item.get("encrypted_content")
        if isinstance(sealed, str) and sealed:
            self._open(turn, sealed)
        elif said := _texts(item.get("content")) or _texts(item.get("summary")):
            turn.reasoning_texts.append(said)

    def _open(self, turn: _ModelTurn, sealed: str) -> None:
        """Add the reasoning details in the envelope of a reasoning item, or of the message after which they came."""
        details = self._opener.open(sealed)
        if details is None:
            self._draft.left_out[REASONING] = None
        else:
            turn.details += [turn.placed(detail) for detail in details]

    def _function_call(self, item: JsonObject) -> None:
        called: JsonObject = {"name": self._name(item), "arguments": item.get("arguments")}
        self._add_call(item, {"id": item.get("call_id"), "type": "function", "function": called})

    def _custom_call(self, item: JsonObject) -> None:
        called: JsonObject = {"name": self._name(item), "input": item.get("input")}
        self._add_call(item, {"id": item.get("call_id"), "type": "custom", "custom": called})

    def _add_call(self, item: JsonObject, tool_call: JsonObject) -> None:
        if extra := item.get("extra_content"):
            tool_call["extra_content"] = extra
        self._begin_turn().calls.append(tool_call)

    def _typed_call(self, item: JsonObject) -> None:
        identity = self._identity(item)
        if identity is None:
            return
        tool = CALLS[str(item["type"])]
        called: JsonObject = {"name": self._draft.typed_name(tool.kind), "arguments": tool.arguments(item)}
        self._add_call(item, {"id": identity, "type": "function", "function": called})

    def _typed_output(self, item: JsonObject) -> None:
        identity = self._identity(item)
        if identity is None:
            return
        self._end_turn()
        failed: JsonObject = {"is_error": True} if item.get("status") == "failed" else {}
        self.messages.append(
            {"role": "tool", "tool_call_id": identity, "content": RESULT_TEXTS[str(item["type"])](item), **failed}
        )

    def _identity(self, item: JsonObject) -> JsonValue:
        """Return the id of a call; `None` if OpenAI ran it, because such a call is left out."""
        identity = item.get("call_id") or item.get("id")
        if item.get("execution") != "server" and identity is not None:
            return identity
        self._draft.left_out[f"input.{item['type']}"] = None
        return None

    def _hosted_call(self, item: JsonObject) -> None:
        """Add a text about a call that OpenAI ran to the model's turn."""
        said, turn = HOSTED_CALL_TEXTS[str(item["type"])](item), self._begin_turn()
        turn.parts.append({"type": "text", "text": said})
        turn.text_length += len(said)

    def _ignore(self, item: JsonObject) -> None:
        """Ignore the item: its tools are offered by `read_tools`."""

    def _name(self, item: JsonObject) -> JsonValue:
        namespace, name = item.get("namespace"), item.get("name")
        if not isinstance(namespace, str) or not namespace:
            return name
        return self._draft.names.joined(namespace, str(name))

    def _output(self, item: JsonObject) -> None:
        self._end_turn()
        content = self._content(item.get("output"))
        self.messages.append({"role": "tool", "tool_call_id": item.get("call_id"), "content": content})

    def _content(self, content: JsonValue) -> JsonValue:
        text = _only_text(content)
        return _content(self._parts(content)) if text is None else text

    def _parts(self, content: JsonValue) -> list[JsonValue]:
        parts = _parts(content)
        if any(map(_is_of_store, parts)):
            self._draft.only.setdefault("input", "a file of OpenAI's store")
        return parts

    def _begin_turn(self) -> _ModelTurn:
        if self._turn is None:
            self._turn = _ModelTurn()
        return self._turn

    def _end_turn(self) -> None:
        turn, self._turn = self._turn, None
        if turn is not None and (message := turn.message()) is not None:
            self.messages.append(message)


_HANDLERS: Mapping[str, Callable[[ConversationReader, JsonObject], None]] = {
    "message": ConversationReader._message,
    REASONING: ConversationReader._reasoning,
    "function_call": ConversationReader._function_call,
    "custom_tool_call": ConversationReader._custom_call,
    "function_call_output": ConversationReader._output,
    "custom_tool_call_output": ConversationReader._output,
    "additional_tools": ConversationReader._ignore,
    **dict.fromkeys(CALLS, ConversationReader._typed_call),
    **dict.fromkeys(RESULT_TEXTS, ConversationReader._typed_output),
    **dict.fromkeys(HOSTED_CALL_TEXTS, ConversationReader._hosted_call),
}


def _only_text(content: JsonValue) -> str | None:
    """Return the text of a content that is one text and nothing else, as most contents are; `None` for any other
    content."""
    if type(content) is str:
        return content
    if type(content) is not list or len(content) != 1 or type(part := content[0]) is not dict:
        return None
    text, kind = part.get("text"), part.get("type")
    if type(text) is not str or (len(part) > 2 and (kind == "input_text" or part.get("annotations"))):
        return None
    return text if type(kind) is str and kind in _TEXTS else None


def _content(parts: list[JsonValue]) -> JsonValue:
    """Return a content as a text if it is a single text without further fields."""
    if not parts:
        return ""
    if len(parts) == 1 and isinstance(only := parts[0], dict) and only.keys() == {"type", "text"}:
        return only["text"]
    return parts


def _parts(content: JsonValue) -> list[JsonValue]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [_part(part) for part in content if isinstance(part, dict)] if isinstance(content, list) else []


def _cites(content: JsonValue) -> bool:
    """Return whether a text of the model cites sources."""
    parts = content if isinstance(content, list) else []
    return any([isinstance(part, dict) and bool(part.get("annotations")) for part in parts])


def _is_of_store(part: JsonValue) -> bool:
    """Return whether the id of a part names a file that only OpenAI has. The ids of files in other vendors' stores
    contain slashes."""
    if not isinstance(part, dict) or not isinstance(identity := part.get("file_id"), str):
        return False
    return "/" not in identity and not _CONTENT_FIELDS.intersection(part)


def _length(parts: list[JsonValue]) -> int:
    """Return the number of characters in the texts of parts."""
    texts = [part.get("text") or part.get("refusal") for part in parts if isinstance(part, dict)]
    return sum([len(text) for text in texts if isinstance(text, str)])


def _part(part: JsonObject) -> JsonValue:
    match part.get("type"):
        case "input_text":
            return {**part, "type": "text"}
        case "output_text" | "text" | "summary_text":
            # No other vendor accepts annotations and log probabilities in a request.
            return {"type": "text", "text": part.get("text")}
        case "refusal":
            return {"type": "refusal", "refusal": part.get("refusal")}
        case _:
            return {name: value for name, value in part.items() if value is not None}


def _texts(parts: JsonValue) -> str:
    """Return the texts of a reasoning item's summary or content, each as a paragraph."""
    listed: list[JsonValue] = parts if isinstance(parts, list) else []
    texts = [part.get("text") for part in listed if isinstance(part, dict)]
    return "\n\n".join([said for said in texts if isinstance(said, str) and said])
