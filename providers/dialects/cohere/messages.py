"""Translates conversations for Cohere's v2 chat: roles, images, documents, reasoning, tool calls and their results.

Documents are sent beside the messages, as texts with a title; documents in a tool result stay in the result. Reasoning
is sent back in the vendor's form: reasoning models begin their content with reasoning, and other models have a plan
before their calls.

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
    Reasoning,
    RedactedReasoning,
    Text,
    ToolResult,
    ToolUse,
    Turn,
)
from providers.dialects.cohere.tools import CohereToolNames
from providers.dialects.shared.prompt import failed_text, joined_texts
from providers.dialects.shared.read_conversation import CACHE, read_conversation
from providers.failure import Refusal
from providers.json_types import JsonObject, JsonValue

_TEXT_TYPES = ("text/", "application/json", "application/xml", "application/yaml", "application/x-ndjson")


class CohereConversation:
    """The translation of OpenAI-shaped messages into Cohere's messages.

    `param` is the client's field that holds the messages. `reasons` is true if the model begins its content with its
    reasoning. `documents` are the documents of the user's messages. `dropped` names the fields that were left out.
    """

    __slots__ = ("_late_images", "_names", "_param", "_reasons", "_turns", "documents", "dropped")

    def __init__(self, names: CohereToolNames, param: str, reasons: bool = False) -> None:
        self._names = names
        self._param = param
        self._reasons = reasons
        self._turns: list[JsonValue] = []
        self._late_images: list[JsonValue] = []
        self.documents: list[JsonValue] = []
        self.dropped: list[str] = []

    def read(self, messages: Iterable[JsonValue]) -> list[JsonValue]:
        """Return the native messages. Empty messages are left out, because the vendor refuses them. Raises Refusal."""
        for turn in read_conversation(messages, self._param):
            self.dropped += turn.unsent
            if turn.role != "tool":
                self._append_late_images()
            self._read_turn(turn)
        self._append_late_images()
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
                self._add_user(turn)
            case "assistant":
                self._add(self._assistant_message(turn))
            case "tool":
                for part in turn.parts:
                    if isinstance(part, ToolResult):
                        self._add(self._result_message(turn, part))

    def _add(self, message: JsonObject) -> None:
        if len(message) > 1:
            self._turns.append(message)

    def _append_late_images(self) -> None:
        """Append the images of the preceding results as a user message. The vendor accepts images in user messages
        only."""
        if self._late_images:
            self._turns.append({"role": "user", "content": self._late_images})
            self._late_images = []

    def _add_user(self, turn: Turn) -> None:
        content: list[JsonValue] = []
        for part in turn.parts:
            self._note_marker(part)
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

    def _assistant_message(self, turn: Turn) -> JsonObject:
        reasoning = [part for part in turn.parts if isinstance(part, Reasoning | RedactedReasoning)]
        calls = [part for part in turn.parts if isinstance(part, ToolUse)]
        texts = [part for part in turn.parts if not isinstance(part, Reasoning | RedactedReasoning | ToolUse)]
        message: JsonObject = {"role": "assistant"}
        if text := self._text(turn, texts):
            message["content"] = text
        if calls:
            message["tool_calls"] = [self._call(call) for call in calls]
        reasoning_text = "".join([part.text for part in reasoning if isinstance(part, Reasoning)])
        if reasoning and not reasoning_text:
            self.dropped.append("thinking")
        if reasoning_text and len(message) > 1:
            self._put_reasoning(message, reasoning_text, text)
        return message

    def _put_reasoning(self, message: JsonObject, reasoning_text: str, text: str) -> None:
        if "tool_calls" in message and not self._reasons:
            message["tool_plan"] = reasoning_text
            return
        text_items: list[JsonValue] = [{"type": "text", "text": text}] if text else []
        message["content"] = [{"type": "thinking", "thinking": reasoning_text}, *text_items]

    def _call(self, part: ToolUse) -> JsonObject:
        self._note_marker(part)
        arguments = orjson.dumps(part.arguments).decode()
        return {
            "id": part.id,
            "type": "function",
            "function": {"name": self._names[part.name], "arguments": arguments},
        }

    def _result_message(self, turn: Turn, result: ToolResult) -> JsonObject:
        self._note_marker(result)
        content: list[JsonValue] = []
        for part in result.parts:
            self._note_marker(part)
            match part:
                case Text(text):
                    content.append({"type": "text", "text": text})
                case Document():
                    content.append({"type": "document", "document": _document(turn, part)})
                case Image():
                    number = len(self._late_images) // 2 + 1
                    content.append({"type": "text", "text": f"[image {number} follows]"})
                    self._late_images += [{"type": "text", "text": f"[image {number}]"}, _image(turn, part)]
                case OtherPart(kind, value):
                    content.append({"type": "document", "document": _other_document(turn, kind, value)})
                case _:
                    raise turn.no_part(_kind(part))
        texts = [str(part["text"]) for part in content if isinstance(part, dict) and part["type"] == "text"]
        joined = joined_texts("tool", texts)
        # The vendor refuses a result with an empty text.
        result_content: JsonValue = failed_text(joined) if result.failed else joined if joined.strip() else "{}"
        if len(texts) < len(content):
            result_content = [{"type": "text", "text": failed_text("")}, *content] if result.failed else content
        return {"role": "tool", "tool_call_id": result.call_id, "content": result_content}

    def _text(self, turn: Turn, parts: Iterable[Part]) -> str:
        """Return the text of parts. Raises Refusal for a part that is not text."""
        texts: list[str] = []
        for part in parts:
            self._note_marker(part)
            if not isinstance(part, Text):
                raise turn.refusal("may only hold text")
            texts.append(part.text)
        return joined_texts(turn.role, texts)

    def _note_marker(self, part: Part) -> None:
        """Record a cache marker as dropped. The vendor has no field for it."""
        if isinstance(part, OtherPart):
            marked = CACHE in part.value
        else:
            marked = not isinstance(part, Reasoning | RedactedReasoning) and part.cache is not None
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
    """Return a document as its text with a title. Raises Refusal for a document that is not text."""
    match part.media:
        case InlineData(media_type, data) if media_type.startswith(_TEXT_TYPES):
            try:
                text = a2b_base64(data).decode()
            except (Error, UnicodeDecodeError):
                raise turn.refusal("has a text document that is not UTF-8 in base64", "invalid_value") from None
        case _:
            raise turn.refusal("has a document that is not text; the vendor reads texts only")
    titles: JsonObject = {"title": part.name} if part.name else {}
    notes: JsonObject = {"context": part.context} if part.context else {}
    return {"data": {**titles, **notes, "text": text}}


def _other_document(turn: Turn, kind: str, value: JsonObject) -> JsonObject:
    """Return a document in the vendor's own form, or a search result in Anthropic's form."""
    match kind, value:
        case "document", {"document": dict(document)}:
            return document
        case "search_result", {"source": str(source), "title": str(title), "content": list(texts)}:
            paragraphs = [str(text["text"]) for text in texts if isinstance(text, dict) and "text" in text]
            return {"data": {"title": title, "url": source, "text": "\n".join(paragraphs)}}
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
            function = (call.get("function") or call.get("custom")) if isinstance(call, dict) else None
            names += _name_of(function)
        names += _name_of(legacy)
    return names


def _name_of(holder: JsonValue) -> list[str]:
    name = holder.get("name") if isinstance(holder, dict) else None
    return [name] if isinstance(name, str) else []
