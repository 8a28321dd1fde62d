"""Conversations on Anthropic's wire: system text, merged turns, images, tool calls and their results.

Nothing is fetched: an image stays the data or the URL that the client sent.

Sources: `anthropic` 2.12.0 types `MessageParam` and `ContentBlockParam`; "Messages" and "Vision" pages, November 2026.
"""

import re
from collections.abc import Callable, Iterable, Mapping

from providers.dialects.anthropic.tools import ToolNames
from providers.dialects.shared.conversation import Walk, data_uri, fit_call_id
from providers.failure import Refusal
from providers.json_types import JsonObject, JsonValue

Content = str | list[JsonValue]

_IMAGES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
_CALL_ID = re.compile(r"[a-zA-Z0-9_-]+")


class Conversation:
    """Translation of one conversation into native turns.

    `folded` says that an instruction from the middle moved to the system text.
    """

    __slots__ = ("_instructions", "_names", "_walk", "folded", "turns")

    def __init__(self, names: ToolNames, param: str) -> None:
        self._names = names
        self._walk = Walk(param)
        self._instructions: list[list[JsonObject]] = []
        self.turns: list[JsonObject] = []
        self.folded = False

    def read(self, messages: Iterable[JsonValue]) -> None:
        """Translate OpenAI-shaped messages. Raises Refusal naming the message at fault."""
        for role, message in self._walk.each(messages):
            translate = _ROLES.get(role)
            if translate is None:
                raise self._walk.no_role(role)
            translate(self, message)
        param = self._walk.param
        if not self.turns:
            raise Refusal(param, f"'{param}' holds no text for the model to answer.", "invalid_value")
        if self.turns[0]["role"] != "user":
            raise Refusal(param, "The vendor needs the first turn to be the user's.", "invalid_value")

    @property
    def system(self) -> Content:
        """The instructions as one text, or as blocks where one has `cache_control`; empty when there are none."""
        if any("cache_control" in block for blocks in self._instructions for block in blocks):
            return [block for blocks in self._instructions for block in blocks]
        return "\n\n".join(["".join([str(block["text"]) for block in blocks]) for blocks in self._instructions])

    def _instruction(self, message: JsonObject) -> None:
        blocks = [block for block in self._blocks(message.get("content")) if isinstance(block, dict)]
        if any(block["type"] != "text" for block in blocks):
            raise self._walk.refusal("is an instruction and may only hold text")
        if blocks:
            self.folded = self.folded or bool(self.turns)
            self._instructions.append(blocks)

    def _user(self, message: JsonObject) -> None:
        content = message.get("content")
        self._turn("user", content if isinstance(content, str) else self._blocks(content))

    def _assistant(self, message: JsonObject) -> None:
        content, refusal, calls = message.get("content"), message.get("refusal"), message.get("tool_calls")
        if isinstance(content, str) and not refusal and not calls:
            self._turn("assistant", content)
            return
        blocks = self._blocks(content) + self._blocks(refusal)
        for call in calls if isinstance(calls, list) else ():
            blocks.append(self._call(call))
        self._turn("assistant", blocks)

    def _tool(self, message: JsonObject) -> None:
        call, content = message.get("tool_call_id"), message.get("content")
        if not isinstance(call, str):
            raise self._walk.refusal("is a tool's result without 'tool_call_id'", "invalid_value")
        result: JsonObject = {"type": "tool_result", "tool_use_id": fit_call_id(call, _CALL_ID)}
        if native := content if isinstance(content, str) else self._blocks(content):
            result["content"] = native
        self._turn("user", [result])

    def _turn(self, role: str, content: Content) -> None:
        """Add to the last turn of the same role, or begin one. Blank text is left out: the vendor refuses it."""
        if not content or (isinstance(content, str) and not content.strip()):
            return
        last = self.turns[-1] if self.turns else None
        if last is None or last["role"] != role:
            self.turns.append({"role": role, "content": content})
            return
        blocks = _as_blocks(last["content"])
        blocks += _as_blocks(content)
        last["content"] = blocks

    def _blocks(self, content: JsonValue) -> list[JsonValue]:
        """Return the native blocks of a message's content, without blank ones."""
        if not isinstance(content, list):
            return [{"type": "text", "text": content}] if isinstance(content, str) and content.strip() else []
        blocks: list[JsonValue] = []
        for part in content:
            kind = part.get("type") if isinstance(part, dict) else None
            translate = _PARTS.get(kind) if isinstance(kind, str) else None
            if translate is None or not isinstance(part, dict):
                raise self._walk.no_part(kind)
            block = translate(self, part)
            if block.get("text", "x") == "" or str(block.get("text", "x")).isspace():
                continue
            if part.get("cache_control"):
                block["cache_control"] = part["cache_control"]
            blocks.append(block)
        return blocks

    def _text(self, part: JsonObject) -> JsonObject:
        return {"type": "text", "text": part.get("text")}

    def _refusal(self, part: JsonObject) -> JsonObject:
        return {"type": "text", "text": part.get("refusal")}

    def _image(self, part: JsonObject) -> JsonObject:
        url = self._walk.image_address(part)
        if url.startswith("https://"):
            return {"type": "image", "source": {"type": "url", "url": url}}
        media, data = data_uri(url)
        if media not in _IMAGES:
            allowed = ", ".join(sorted(_IMAGES))
            raise self._walk.refusal(
                f"has an image that is neither an https address nor a base64 data URI of {allowed}"
            )
        return {"type": "image", "source": {"type": "base64", "media_type": media, "data": data}}

    def _file(self, part: JsonObject) -> JsonObject:
        file = part.get("file")
        given = file.get("file_data") if isinstance(file, dict) else None
        media, data = data_uri(given) if isinstance(given, str) else ("", "")
        if not isinstance(file, dict) or media != "application/pdf":
            raise self._walk.refusal("has a file that is no base64 data URI of application/pdf")
        block: JsonObject = {"type": "document", "source": {"type": "base64", "media_type": media, "data": data}}
        if file.get("filename"):
            block["title"] = file["filename"]
        return block

    def _call(self, raw: JsonValue) -> JsonObject:
        call = self._walk.read_call(raw)
        identity = fit_call_id(call.id, _CALL_ID)
        return {"type": "tool_use", "id": identity, "name": self._names.used(call.name), "input": call.given}


def gives_addresses(turns: Iterable[JsonObject]) -> bool:
    """Return whether native turns hold an image by its URL, which Bedrock and Vertex AI do not fetch."""
    return any(_is_address(block) for turn in turns for block in _as_blocks(turn["content"]))


def _is_address(block: JsonValue) -> bool:
    match block:
        case {"type": "tool_result", "content": list(blocks)}:
            return any(_is_address(inner) for inner in blocks)
        case {"source": {"type": "url"}}:
            return True
        case _:
            return False


def _as_blocks(content: JsonValue) -> list[JsonValue]:
    return content if isinstance(content, list) else [{"type": "text", "text": content}]


_ROLES: Mapping[str, Callable[[Conversation, JsonObject], None]] = {
    "system": Conversation._instruction,
    "developer": Conversation._instruction,
    "user": Conversation._user,
    "assistant": Conversation._assistant,
    "tool": Conversation._tool,
}
_PARTS: Mapping[str, Callable[[Conversation, JsonObject], JsonObject]] = {
    "text": Conversation._text,
    "refusal": Conversation._refusal,
    "image_url": Conversation._image,
    "file": Conversation._file,
}
