"""Conversations on Bedrock's Converse: system text, turns that alternate, images, files, tool calls and their results.

Media are sent as data: the service takes no addresses.

Sources: botocore 1.44.5 service model `bedrock-runtime`, shapes `Message` and `ContentBlock`; "Carry out a conversation
with the Converse API operations" page, November 2026.
"""

import re
from collections.abc import Callable, Iterable, Mapping

import orjson

from providers.dialects.shared.conversation import Walk, data_uri, fit_call_id
from providers.dialects.shared.tool_names import DistinctNames, FittedNames
from providers.failure import Refusal
from providers.json_types import JsonObject, JsonValue

Blocks = list[JsonObject]

_IMAGES: Mapping[str, str] = {
    "image/png": "png",
    "image/jpeg": "jpeg",
    "image/jpg": "jpeg",
    "image/gif": "gif",
    "image/webp": "webp",
}
_DOCUMENTS: Mapping[str, str] = {
    "application/pdf": "pdf",
    "application/msword": "doc",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/vnd.ms-excel": "xls",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "text/csv": "csv",
    "text/html": "html",
    "text/markdown": "md",
    "text/plain": "txt",
}
_SOUNDS = frozenset({"mp3", "opus", "wav", "aac", "flac"})
_CALL_ID = re.compile(r"[a-zA-Z0-9_.:-]{1,64}")
_FOREIGN_IN_TITLE = re.compile(r"[^a-zA-Z0-9()\[\]-]+")


class BedrockConversation:
    """Translates OpenAI-shaped messages to Converse's turns.

    `folded` says that an instruction after the first turn moved to the system text, `calls` that there are tool calls.
    Reasoning of earlier turns is left out: the service takes it only with its signature.
    """

    __slots__ = ("_names", "_titles", "_walk", "calls", "folded", "system", "turns")

    def __init__(self, names: FittedNames, param: str) -> None:
        self._names = names
        self._walk = Walk(param)
        self._titles = DistinctNames(mark=" ")
        self.system: Blocks = []
        self.turns: list[JsonObject] = []
        self.folded = False
        self.calls = False

    def read(self, messages: Iterable[JsonValue]) -> None:
        """Translate OpenAI-shaped messages. Raises Refusal naming the message at fault."""
        param = self._walk.param
        for role, message in self._walk.each(messages):
            translate = _ROLES.get(role)
            if translate is None:
                raise self._walk.no_role(role)
            translate(self, message)
        if not self.turns:
            raise Refusal(param, f"'{param}' holds no text for the model to answer.", "invalid_value")
        if self.turns[0]["role"] != "user":
            raise Refusal(param, "The vendor needs the first turn to be the user's.", "invalid_value")

    def _instruction(self, message: JsonObject) -> None:
        blocks = self._blocks(message.get("content"))
        if any("text" not in block and "cachePoint" not in block for block in blocks):
            raise self._walk.refusal("is an instruction and may only hold text")
        if blocks:
            self.folded = self.folded or bool(self.turns)
            self.system += blocks

    def _user(self, message: JsonObject) -> None:
        self._turn("user", self._blocks(message.get("content")))

    def _assistant(self, message: JsonObject) -> None:
        blocks = self._blocks(message.get("content")) + self._blocks(message.get("refusal"))
        calls = message.get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            blocks.append(self._call(call))
        self._turn("assistant", blocks)

    def _tool(self, message: JsonObject) -> None:
        call = message.get("tool_call_id")
        if not isinstance(call, str):
            raise self._walk.refusal("is a tool's result without 'tool_call_id'", "invalid_value")
        blocks = self._blocks(message.get("content"))
        if any("audio" in block for block in blocks):
            raise self._walk.refusal("is a tool's result and may not hold audio")
        content: list[JsonValue] = [block for block in blocks if "cachePoint" not in block]
        marks = [block for block in blocks if "cachePoint" in block]
        self.calls = True
        self._turn("user", [{"toolResult": {"toolUseId": fit_call_id(call, _CALL_ID), "content": content}}, *marks])

    def _turn(self, role: str, blocks: Blocks) -> None:
        """Add to the last turn of the same role, or begin one: the roles must alternate."""
        last = self.turns[-1] if self.turns else None
        if not blocks:
            return
        if last is None or last["role"] != role:
            last = {"role": role, "content": []}
            self.turns.append(last)
        content = last["content"]
        if isinstance(content, list):
            content.extend(blocks)

    def _blocks(self, content: JsonValue) -> Blocks:
        """Return the native blocks of a message's content without blank texts, which the service refuses."""
        if not isinstance(content, list):
            return [{"text": content}] if isinstance(content, str) and content.strip() else []
        blocks: Blocks = []
        for part in content:
            kind = part.get("type") if isinstance(part, dict) else None
            translate = _PARTS.get(kind) if isinstance(kind, str) else None
            if translate is None or not isinstance(part, dict):
                raise self._walk.no_part(kind)
            block = translate(self, part)
            if isinstance(text := block.get("text"), str) and not text.strip():
                continue
            blocks.append(block)
            if mark := part.get("cache_control"):
                blocks.append(_cache_point(mark))
        return blocks

    def _text(self, part: JsonObject) -> JsonObject:
        return {"text": part.get("text")}

    def _refusal(self, part: JsonObject) -> JsonObject:
        return {"text": part.get("refusal")}

    def _image(self, part: JsonObject) -> JsonObject:
        media, data = data_uri(self._walk.image_address(part))
        if media not in _IMAGES:
            allowed = ", ".join(sorted({f"image/{name}" for name in _IMAGES.values()}))
            raise self._walk.refusal(f"has an image that is no base64 data URI of {allowed}")
        return {"image": {"format": _IMAGES[media], "source": {"bytes": data}}}

    def _file(self, part: JsonObject) -> JsonObject:
        file = part.get("file")
        address = file.get("file_data") if isinstance(file, dict) else None
        media, data = data_uri(address) if isinstance(address, str) else ("", "")
        if not isinstance(file, dict) or media not in _DOCUMENTS:
            raise self._walk.refusal(f"has a file that is no base64 data URI of {', '.join(_DOCUMENTS)}")
        title = self._title(str(file.get("filename") or "document"))
        return {"document": {"format": _DOCUMENTS[media], "name": title, "source": {"bytes": data}}}

    def _title(self, filename: str) -> str:
        """Return a document name that the service takes: few kinds of characters, no ending, none twice."""
        base = _FOREIGN_IN_TITLE.sub(" ", filename.rpartition(".")[0] or filename).strip()[:190] or "document"
        return self._titles.add(base)

    def _sound(self, part: JsonObject) -> JsonObject:
        match part.get("input_audio"):
            case {"format": str(form), "data": str(data)} if form in _SOUNDS and data:
                return {"audio": {"format": form, "source": {"bytes": data}}}
            case _:
                raise self._walk.refusal(f"has audio that is no base64 data of {', '.join(sorted(_SOUNDS))}")

    def _call(self, call: JsonValue) -> JsonObject:
        made = self._walk.read_call(call)
        identity = fit_call_id(made.id, _CALL_ID)
        self.calls = True
        return {"toolUse": {"toolUseId": identity, "name": self._names.used(made.name), "input": made.given}}


def without_calls(turns: Iterable[JsonObject]) -> list[JsonObject]:
    """Return the turns with calls and results as texts: the service refuses tool blocks where no tool is offered."""
    plain: list[JsonObject] = []
    for turn in turns:
        blocks = turn["content"]
        content = [each for block in blocks for each in _as_text(block)] if isinstance(blocks, list) else []
        plain.append({**turn, "content": content})
    return plain


def _as_text(block: JsonValue) -> list[JsonValue]:
    match block:
        case {"toolUse": {"toolUseId": call, "name": name, "input": given}}:
            return [{"text": f"[call {call} of {name}: {orjson.dumps(given).decode()}]"}]
        case {"toolResult": {"toolUseId": call, "content": list(content)}}:
            texts = [str(part["text"]) for part in content if isinstance(part, dict) and "text" in part]
            rest = [part for part in content if isinstance(part, dict) and "text" not in part]
            return [{"text": f"[result of call {call}: {''.join(texts)}]"}, *rest]
        case _:
            return [block]


def _cache_point(mark: JsonValue) -> JsonObject:
    ttl = mark.get("ttl") if isinstance(mark, dict) else None
    return {"cachePoint": {"type": "default", **({"ttl": ttl} if ttl else {})}}


_ROLES: Mapping[str, Callable[[BedrockConversation, JsonObject], None]] = {
    "system": BedrockConversation._instruction,
    "developer": BedrockConversation._instruction,
    "user": BedrockConversation._user,
    "assistant": BedrockConversation._assistant,
    "tool": BedrockConversation._tool,
}
_PARTS: Mapping[str, Callable[[BedrockConversation, JsonObject], JsonObject]] = {
    "text": BedrockConversation._text,
    "refusal": BedrockConversation._refusal,
    "image_url": BedrockConversation._image,
    "file": BedrockConversation._file,
    "input_audio": BedrockConversation._sound,
}
