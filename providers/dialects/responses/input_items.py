"""A conversation as the input items of the Responses API, for requests of clients that speak another API.

Instructions stay among the items: the JSON mode looks for the word "json" in the items, and not in `instructions`. A
call's arguments are sent back as the model wrote them, so that the vendor's prompt cache hits. Reasoning is sent back
as the encrypted item that came before a text or a call. The vendor refuses it without the item that followed.

Sources: `openai` 3.54.0 types `ResponseInputItemParam`, `EasyInputMessageParam` (a message of the model as one text),
`ResponseReasoningItemParam`, November 2026.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import orjson

from providers.adaptation.file_data import default_name
from providers.conversation import (
    Address,
    Audio,
    Document,
    Image,
    InlineData,
    Media,
    OtherPart,
    Part,
    Reasoning,
    RedactedReasoning,
    Text,
    ToolResult,
    ToolUse,
    Turn,
    UploadedFile,
    Video,
)
from providers.dialects.shared.field_writers import MARKERS, without_markers
from providers.dialects.shared.prompt import joined_texts
from providers.dialects.shared.read_conversation import read_conversation
from providers.dialects.shared.tool_names import fit_call_id
from providers.json_types import JsonObject, JsonValue
from providers.profile import Profile, ResponsesWire

MAX_CALL_ID_LENGTH: Final = 64
CALL_ID: Final = re.compile(r"(?s).{1,64}")
"""The call ids that the vendor accepts: "string too long. Expected a string with maximum length 64"."""

BREAKPOINT: Final = "prompt_cache_breakpoint"
_THINKING: Final = "thinking"
_COMMON_PARTS: Final = ("input_text", "input_image")
"""The types of parts that every vendor with an API of this shape has."""

_PHASES: Final = ("commentary", "final_answer")


def input_items(
    messages: Sequence[JsonValue], param: str, profile: Profile, wire: ResponsesWire, dropped: list[str]
) -> list[JsonValue]:
    """Return a conversation as input items. Add the advisory fields that are left out to `dropped`.

    `param` is the client's field that holds the conversation, `wire` the vendor's API. Raises Refusal for content that
    the vendor does not accept.
    """
    writer = _ItemWriter(profile, wire, dropped)
    for message, turn in zip(messages, read_conversation(messages, param), strict=True):
        writer.add(message if isinstance(message, dict) else {}, turn)
    return writer.items


@dataclass(slots=True)
class _ItemWriter:
    """The writer of one conversation's items. `custom` are the ids of calls of custom tools."""

    profile: Profile
    wire: ResponsesWire
    dropped: list[str]
    items: list[JsonValue] = field(default_factory=list)
    custom: set[str] = field(default_factory=set)

    def add(self, message: JsonObject, turn: Turn) -> None:
        self._note_markers(message)
        self.dropped += turn.unsent
        match turn.role:
            case "assistant":
                self._add_model_turn(message, turn)
            case "tool":
                self._add_result(message, turn)
            case role:
                content = self._fitted(turn, _content(turn, turn.parts, self._raw_parts(message)))
                given = message.get("role")
                self.items.append({"role": given if given == "developer" else role, "content": content})

    def _fitted(self, turn: Turn, content: JsonValue) -> JsonValue:
        """Return content without the parts that a vendor with an API of its own refuses: parts other than texts and
        images, and the resolution of an image. Raises Refusal for such a part."""
        if self.wire.openai or not isinstance(content, list):
            return content
        parts: list[JsonValue] = []
        for part in content:
            kind = part.get("type") if isinstance(part, dict) else None
            if not isinstance(part, dict) or kind not in _COMMON_PARTS:
                raise turn.no_part(str(kind))
            if part.get("detail") not in (None, "auto"):
                self.dropped.append("detail")
            parts.append({name: value for name, value in part.items() if name != "detail"})
        return parts

    def _note_markers(self, message: JsonObject) -> None:
        """Add the cache markers of a message and of its calls to `dropped`, because their items have no field for
        markers."""
        calls = message.get("tool_calls")
        for holder in (message, *(calls if isinstance(calls, list) else ())):
            if isinstance(holder, dict):
                self.dropped += [name for name in holder if name in MARKERS]

    def _raw_parts(self, message: JsonObject) -> Sequence[JsonObject]:
        """Return the client's own parts, without the markers that the vendor does not accept."""
        content = message.get("content")
        parts = content if isinstance(content, list) else ()
        return [without_markers(part, self.profile, self.dropped) for part in parts if isinstance(part, dict)]

    def _add_model_turn(self, message: JsonObject, turn: Turn) -> None:
        self.dropped += [BREAKPOINT for part in self._raw_parts(message) if BREAKPOINT in part]
        client_calls = iter(_client_calls(message))
        given = message.get("phase")
        phase: JsonObject = {"phase": given} if given in _PHASES and self.wire.openai else {}
        reasoning = _ReasoningItems(self.wire.format)
        new_items: list[JsonValue] = []
        texts: list[str] = []
        for part in turn.parts:
            if not isinstance(part, Text):
                _end_text(new_items, texts, phase)
            match part:
                case Text(text):
                    texts.append(text)
                case ToolUse():
                    new_items.append(self._call(part, next(client_calls, {})))
                case Reasoning() | RedactedReasoning():
                    new_items += reasoning.add(part)
                case _:
                    raise turn.no_part(_PART_NAMES.get(type(part), "file"))
        _end_text(new_items, texts, phase)
        while new_items and _is_reasoning(new_items[-1]):
            new_items.pop()
            reasoning.lost = True
        if reasoning.lost or reasoning.summaries:
            self.dropped.append(_THINKING)
        self.items += new_items

    def _call(self, part: ToolUse, written: JsonObject) -> JsonObject:
        identity = fit_call_id(part.id, CALL_ID)
        if part.custom is not None:
            self.custom.add(identity)
            return {"type": "custom_tool_call", "call_id": identity, "name": part.name, "input": part.custom}
        self.custom.discard(identity)
        given = written.get("arguments")
        arguments = given if isinstance(given, str) and given.strip() else orjson.dumps(part.arguments).decode()
        return {"type": "function_call", "call_id": identity, "name": part.name, "arguments": arguments}

    def _add_result(self, message: JsonObject, turn: Turn) -> None:
        raw = self._raw_parts(message)
        for part in turn.parts:
            if not isinstance(part, ToolResult):
                continue
            if part.failed:
                self.dropped.append("is_error")
            identity = fit_call_id(part.call_id, CALL_ID)
            kind = "custom_tool_call_output" if identity in self.custom else "function_call_output"
            output = _content(turn, part.parts, raw)
            if not self.wire.openai and isinstance(output, list):
                output = joined_texts("tool", [self._only_text(turn, each) for each in part.parts])
            self.items.append({"type": kind, "call_id": identity, "output": output})

    def _only_text(self, turn: Turn, part: Part) -> str:
        """Return the text of a part of a result. Raises Refusal for any other part."""
        if not isinstance(part, Text):
            raise turn.refusal("is a tool's result and may hold only text")
        return part.text


@dataclass(slots=True)
class _ReasoningItems:
    """The reasoning items of one turn. `summaries` are texts that belong to the encrypted item after them. `lost` is
    true if some reasoning is not sent back."""

    form: str
    summaries: list[str] = field(default_factory=list)
    lost: bool = False

    def add(self, part: Reasoning | RedactedReasoning) -> list[JsonValue]:
        """Return the item that a part completes, in a list, or an empty list."""
        if isinstance(part, Reasoning):
            if part.signature is not None:
                self.lost = True
            elif part.text:
                self.summaries.append(part.text)
            return []
        if part.format != self.form or not part.data:
            self.lost = True
            return []
        summary: list[JsonValue] = [{"type": "summary_text", "text": text} for text in self.summaries]
        self.summaries = []
        item: JsonObject = {"type": "reasoning", "summary": summary, "encrypted_content": part.data}
        return [item if part.id is None else {**item, "id": part.id}]


def _end_text(items: list[JsonValue], texts: list[str], phase: JsonObject) -> None:
    """Write the texts so far as one assistant message. An empty message is left out."""
    if text := joined_texts("assistant", texts):
        items.append({"role": "assistant", "content": text, **phase})
    texts.clear()


def _is_reasoning(item: JsonValue) -> bool:
    return isinstance(item, dict) and item.get("type") == "reasoning"


def _client_calls(message: JsonObject) -> Iterable[JsonObject]:
    """Yield the functions of a message's calls, as the client sent them."""
    calls, legacy = message.get("tool_calls"), message.get("function_call")
    given = calls if isinstance(calls, list) and calls else [{"function": legacy}]
    for call in given:
        function = call.get("function") if isinstance(call, dict) else None
        yield function if isinstance(function, dict) else {}


_PART_NAMES: Final[Mapping[type, str]] = {Image: "image_url", Audio: "input_audio", Video: "video_url"}


def _content(turn: Turn, parts: Iterable[Part], raw: Sequence[JsonObject]) -> JsonValue:
    """Return content as a string if it is one text without a breakpoint, else as parts."""
    breakpoints = {index: part[BREAKPOINT] for index, part in enumerate(raw) if part.get(BREAKPOINT)}
    match tuple(parts):
        case ():
            return ""
        case (Text(text),) if not breakpoints:
            return text
        case several:
            written = [_part(turn, part) for part in several]
    return [
        {**part, BREAKPOINT: breakpoints[index]} if index in breakpoints else part for index, part in enumerate(written)
    ]


def _part(turn: Turn, part: Part) -> JsonObject:
    match part:
        case Text(text):
            return {"type": "input_text", "text": text}
        case Image(media, detail):
            return {"type": "input_image", "detail": detail or "auto", **_media(media, "image_url")}
        case Document(InlineData() as media, name):
            return {
                "type": "input_file",
                "filename": name or default_name(media.media_type),
                **_media(media, "file_data"),
            }
        case Document(media):
            return {"type": "input_file", **_media(media, "file_url")}
        case OtherPart(_, value):
            # A vendor without this type refuses the part itself.
            return value
        case _:
            raise turn.no_part(_PART_NAMES.get(type(part), _THINKING))


def _media(media: Media, name: str) -> JsonObject:
    match media:
        case InlineData(media_type, data):
            return {name: f"data:{media_type};base64,{data}"}
        case Address(url):
            return {name: url}
        case UploadedFile(identity):
            return {"file_id": identity}
