"""Conversations on Cohere's v2 chat: roles, images, documents, thinking, tool calls and their results.

Documents stand beside the messages, as texts with a title; those in a tool's result stay there. Thinking goes back as
the vendor gave it: reasoning models begin their content with it, others lay out a plan before their calls.

Sources: `cohere` 7.3.1 types `ChatMessageV2`, `Document`, `ToolContent`; "Chat", "Image inputs" and "Reasoning" pages,
November 2026.
"""

from binascii import Error, a2b_base64
from collections.abc import Iterable

import orjson

from providers.conversation import (
    Address,
    Document,
    Image,
    InlineData,
    OtherPart,
    Part,
    RedactedThinking,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    Turn,
)
from providers.dialects.cohere.tools import CohereToolNames
from providers.dialects.shared.prompt import failed_text, joined_texts
from providers.dialects.shared.read_conversation import CACHE, read_conversation
from providers.failure import Refusal
from providers.json_types import JsonObject, JsonValue

_TEXTUAL = ("text/", "application/json", "application/xml", "application/yaml", "application/x-ndjson")


class CohereConversation:
    """Translates OpenAI-shaped messages to Cohere's. `param` is the client's field that the messages come from,
    `reasons` says that the model begins its content with its thinking.

    `documents` are those of the user's messages, `dropped` names what was left out.
    """

    __slots__ = ("_late", "_names", "_param", "_reasons", "_turns", "documents", "dropped")

    def __init__(self, names: CohereToolNames, param: str, reasons: bool = False) -> None:
        self._names = names
        self._param = param
        self._reasons = reasons
        self._turns: list[JsonValue] = []
        self._late: list[JsonValue] = []
        self.documents: list[JsonValue] = []
        self.dropped: list[str] = []

    def read(self, messages: Iterable[JsonValue]) -> list[JsonValue]:
        """Return the native messages without empty ones, which the vendor refuses. Raises Refusal."""
        for turn in read_conversation(messages, self._param):
            self.dropped += turn.unsent
            if turn.role != "tool":
                self._flush()
            self._read_turn(turn)
        self._flush()
        if not self._turns:
            message = f"'{self._param}' holds no text for the model to answer."
            raise Refusal(self._param, message, "invalid_value")
        return self._turns

    def _read_turn(self, turn: Turn) -> None:
        match turn.role:
            case "system":
                text = self._text(turn, turn.parts)
                self._add({"role": "system", **({"content": text} if text else {})})
            case "user":
                self._user(turn)
            case "assistant":
                self._add(self._assistant(turn))
            case "tool":
                for part in turn.parts:
                    if isinstance(part, ToolResult):
                        self._add(self._result(turn, part))

    def _add(self, message: JsonObject) -> None:
        if len(message) > 1:
            self._turns.append(message)

    def _flush(self) -> None:
        """Add the images of the results before, which the vendor takes in messages of the user only."""
        if self._late:
            self._turns.append({"role": "user", "content": self._late})
            self._late = []

    def _user(self, turn: Turn) -> None:
        content: list[JsonValue] = []
        for part in turn.parts:
            self._check(part)
            match part:
                case Text(text):
                    if text:
                        content.append({"type": "text", "text": text})
                case Image():
                    content.append(_image(turn, part))
                case Document():
                    self.documents.append(_document(turn, part))
                case OtherPart(kind, value):
                    self.documents.append(_other_document(turn, kind, value))
                case _:
                    raise turn.no_part(_kind(part))
        if len(turn.parts) == 1 and isinstance(only := turn.parts[0], Text):
            self._add({"role": "user", **({"content": only.text} if only.text else {})})
        else:
            self._add({"role": "user", **({"content": content} if content else {})})

    def _assistant(self, turn: Turn) -> JsonObject:
        thoughts = [part for part in turn.parts if isinstance(part, Thinking | RedactedThinking)]
        calls = [part for part in turn.parts if isinstance(part, ToolUse)]
        spoken = [part for part in turn.parts if not isinstance(part, Thinking | RedactedThinking | ToolUse)]
        message: JsonObject = {"role": "assistant"}
        if text := self._text(turn, spoken):
            message["content"] = text
        if calls:
            message["tool_calls"] = [self._call(call) for call in calls]
        thought = "".join([part.text for part in thoughts if isinstance(part, Thinking)])
        if thoughts and not thought:
            self.dropped.append("thinking")
        if thought and len(message) > 1:
            self._put_thought(message, thought, text)
        return message

    def _put_thought(self, message: JsonObject, thought: str, text: str) -> None:
        if "tool_calls" in message and not self._reasons:
            message["tool_plan"] = thought
            return
        said: list[JsonValue] = [{"type": "text", "text": text}] if text else []
        message["content"] = [{"type": "thinking", "thinking": thought}, *said]

    def _call(self, part: ToolUse) -> JsonObject:
        self._check(part)
        arguments = orjson.dumps(part.arguments).decode()
        return {
            "id": part.id,
            "type": "function",
            "function": {"name": self._names[part.name], "arguments": arguments},
        }

    def _result(self, turn: Turn, result: ToolResult) -> JsonObject:
        self._check(result)
        content: list[JsonValue] = []
        for part in result.parts:
            self._check(part)
            match part:
                case Text(text):
                    content.append({"type": "text", "text": text})
                case Document():
                    content.append({"type": "document", "document": _document(turn, part)})
                case Image():
                    number = len(self._late) // 2 + 1
                    content.append({"type": "text", "text": f"[image {number} follows]"})
                    self._late += [{"type": "text", "text": f"[image {number}]"}, _image(turn, part)]
                case OtherPart(kind, value):
                    content.append({"type": "document", "document": _other_document(turn, kind, value)})
                case _:
                    raise turn.no_part(_kind(part))
        texts = [str(part["text"]) for part in content if isinstance(part, dict) and part["type"] == "text"]
        said = joined_texts("tool", texts)
        # The vendor refuses a result with an empty text.
        whole: JsonValue = failed_text(said) if result.failed else said if said.strip() else "{}"
        if len(texts) < len(content):
            whole = [{"type": "text", "text": failed_text("")}, *content] if result.failed else content
        return {"role": "tool", "tool_call_id": result.call_id, "content": whole}

    def _text(self, turn: Turn, parts: Iterable[Part]) -> str:
        """Return the text of parts. Raises Refusal for parts that are no text."""
        texts: list[str] = []
        for part in parts:
            self._check(part)
            if not isinstance(part, Text):
                raise turn.refusal("may only hold text")
            texts.append(part.text)
        return joined_texts(turn.role, texts)

    def _check(self, part: Part) -> None:
        """Note a cache marker, for which the vendor has no place."""
        if isinstance(part, OtherPart):
            marked = CACHE in part.value
        else:
            marked = not isinstance(part, Thinking | RedactedThinking) and part.cache is not None
        if marked:
            self.dropped.append(CACHE)


def _image(turn: Turn, part: Image) -> JsonObject:
    match part.media:
        case InlineData(media_type, data) if media_type.startswith("image/"):
            url = f"data:{media_type};base64,{data}"
        case Address(address) if address.startswith(("https://", "http://")):
            url = address
        case _:
            raise turn.refusal("has an image that is neither a web address nor a data URI of an image")
    return {"type": "image_url", "image_url": {"url": url, **({"detail": part.detail} if part.detail else {})}}


def _document(turn: Turn, part: Document) -> JsonObject:
    """Return a document as its text with a title. Raises Refusal for one that is no text."""
    match part.media:
        case InlineData(media_type, data) if media_type.startswith(_TEXTUAL):
            try:
                text = a2b_base64(data).decode()
            except (Error, UnicodeDecodeError):
                raise turn.refusal("has a text document that is not UTF-8 in base64", "invalid_value") from None
        case _:
            raise turn.refusal("has a document that is no text; the vendor reads texts only")
    titles: JsonObject = {"title": part.name} if part.name else {}
    notes: JsonObject = {"context": part.context} if part.context else {}
    return {"data": {**titles, **notes, "text": text}}


def _other_document(turn: Turn, kind: str, value: JsonObject) -> JsonObject:
    """Return a document in the vendor's own form, or a search result in Anthropic's."""
    match kind, value:
        case "document", {"document": dict(document)}:
            return document
        case "search_result", {"source": str(source), "title": str(title), "content": list(texts)}:
            pieces = [str(text["text"]) for text in texts if isinstance(text, dict) and "text" in text]
            return {"data": {"title": title, "url": source, "text": "\n".join(pieces)}}
        case _:
            raise turn.no_part(kind)


def _kind(part: Part) -> str:
    return type(part).__name__.lower()


def called_names(messages: Iterable[JsonObject]) -> list[str]:
    """Return the names of the tools that a conversation has called."""
    names: list[str] = []
    for message in messages:
        calls, legacy = message.get("tool_calls"), message.get("function_call")
        for call in calls if isinstance(calls, list) else ():
            held = (call.get("function") or call.get("custom")) if isinstance(call, dict) else None
            names += _name_of(held)
        names += _name_of(legacy)
    return names


def _name_of(holder: JsonValue) -> list[str]:
    name = holder.get("name") if isinstance(holder, dict) else None
    return [name] if isinstance(name, str) else []
