"""Conversations on Anthropic's wire: system text, merged turns, images, tool calls and their results.

Never tool definitions, and never a network: an image stays the data or the address that the client sent.

Sources: `anthropic` 2.12.0 types `MessageParam` and `ContentBlockParam`; "Messages" and "Vision" pages, November 2026.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping

from providers.dialects.anthropic_tools import ToolNames
from providers.dialects.native_messages import NO_ARGUMENTS, arguments_of, says_nothing
from providers.failure import Refusal
from providers.unified import JsonObject, JsonValue

Content = str | list[JsonValue]

_IMAGES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
_CALL_ID = re.compile(r"[a-zA-Z0-9_-]+")

# Besides these, a member that is null or empty asks for nothing. Reasoning of earlier turns cannot be given back, since
# the vendor takes it only with its signature; annotations are about an answer and not part of it.
_MEMBERS = frozenset(
    {"role", "content", "refusal", "tool_calls", "tool_call_id", "reasoning", "reasoning_content", "annotations"}
)


class Conversation:
    """Native turns in the making. `folded` says that an instruction from the middle moved to the system text."""

    __slots__ = ("_instructions", "_names", "_param", "_position", "folded", "turns")

    def __init__(self, names: ToolNames, param: str) -> None:
        self._names = names
        self._param = param
        self._position = 0
        self._instructions: list[list[JsonObject]] = []
        self.turns: list[JsonObject] = []
        self.folded = False

    def read(self, messages: Iterable[JsonValue]) -> None:
        """Translate OpenAI-shaped messages. Raises Refusal naming the message at fault."""
        for position, message in enumerate(messages):
            self._position = position
            if not isinstance(message, dict):
                raise self._refuse("is not an object", "invalid_value")
            role = message.get("role")
            if len(message) > 2:
                self._check_members(message)
            translate = _ROLES.get(role) if isinstance(role, str) else None
            if translate is None:
                raise self._refuse(f"has the role '{role}', which cannot be translated")
            translate(self, message)
        if not self.turns:
            raise Refusal(self._param, f"'{self._param}' holds no text for the model to answer.", "invalid_value")
        if self.turns[0]["role"] != "user":
            raise Refusal(self._param, "The vendor needs the first turn to be the user's.", "invalid_value")

    @property
    def system(self) -> Content:
        """The instructions as one text, or as blocks where one carries a cache mark; empty when there are none."""
        if any("cache_control" in block for blocks in self._instructions for block in blocks):
            return [block for blocks in self._instructions for block in blocks]
        return "\n\n".join(["".join([str(block["text"]) for block in blocks]) for blocks in self._instructions])

    def _refuse(self, reason: str, code: str = "unsupported_parameter") -> Refusal:
        where = f"messages[{self._position}]" if self._param == "messages" else f"'{self._param}'"
        return Refusal(self._param, f"{where} {reason}.", code)

    def _check_members(self, message: JsonObject) -> None:
        for name, member in message.items():
            if name not in _MEMBERS and member and not says_nothing(message.get("role"), name, member):
                raise self._refuse(f"has the member '{name}', which the vendor has no place for")

    def _instruction(self, message: JsonObject) -> None:
        blocks = [block for block in self._blocks(message.get("content")) if isinstance(block, dict)]
        if any(block["type"] != "text" for block in blocks):
            raise self._refuse("is an instruction and may only hold text")
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
            raise self._refuse("is a tool's result without 'tool_call_id'", "invalid_value")
        result: JsonObject = {"type": "tool_result", "tool_use_id": _call_id(call)}
        if said := content if isinstance(content, str) else self._blocks(content):
            result["content"] = said
        self._turn("user", [result])

    def _turn(self, role: str, content: Content) -> None:
        """Add to the last turn of the same role, or begin one. The vendor refuses blank text, so it is left out."""
        if not content or (isinstance(content, str) and not content.strip()):
            return
        last = self.turns[-1] if self.turns else None
        if last is None or last["role"] != role:
            self.turns.append({"role": role, "content": content})
            return
        said = _as_blocks(last["content"])
        said += _as_blocks(content)
        last["content"] = said

    def _blocks(self, content: JsonValue) -> list[JsonValue]:
        """Native blocks of a message's content, without blank ones."""
        if not isinstance(content, list):
            return [{"type": "text", "text": content}] if isinstance(content, str) and content.strip() else []
        blocks: list[JsonValue] = []
        for part in content:
            kind = part.get("type") if isinstance(part, dict) else None
            translate = _PARTS.get(kind) if isinstance(kind, str) else None
            if translate is None or not isinstance(part, dict):
                raise self._refuse(f"has a part of type '{kind}', which cannot be translated")
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
        image = part.get("image_url")
        url = image.get("url") if isinstance(image, dict) else image
        if not isinstance(url, str):
            raise self._refuse("has an image without an address", "invalid_value")
        if url.startswith("https://"):
            return {"type": "image", "source": {"type": "url", "url": url}}
        media, data = _data_uri(url)
        if media not in _IMAGES:
            allowed = ", ".join(sorted(_IMAGES))
            raise self._refuse(f"has an image that is neither an https address nor a base64 data URI of {allowed}")
        return {"type": "image", "source": {"type": "base64", "media_type": media, "data": data}}

    def _file(self, part: JsonObject) -> JsonObject:
        file = part.get("file")
        data_uri = file.get("file_data") if isinstance(file, dict) else None
        media, data = _data_uri(data_uri) if isinstance(data_uri, str) else ("", "")
        if not isinstance(file, dict) or media != "application/pdf":
            raise self._refuse("has a file that is no base64 data URI of application/pdf")
        block: JsonObject = {"type": "document", "source": {"type": "base64", "media_type": media, "data": data}}
        if file.get("filename"):
            block["title"] = file["filename"]
        return block

    def _call(self, call: JsonValue) -> JsonObject:
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(call, dict) or not isinstance(function, dict):
            raise self._refuse("has a tool call that is not a function's")
        given = arguments_of(function)
        if given is None:
            raise self._refuse(NO_ARGUMENTS, "invalid_value")
        name = self._names.used(str(function.get("name")))
        return {"type": "tool_use", "id": _call_id(str(call.get("id"))), "name": name, "input": given}


def gives_addresses(turns: Iterable[JsonObject]) -> bool:
    """Whether native turns hold an image by its address, which the platforms that Claude is a guest on do not fetch."""
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


def _call_id(given: str) -> str:
    """An id that the vendor takes: others' ids may hold characters it refuses, and call and result must agree."""
    return given if _CALL_ID.fullmatch(given) else f"call_{hashlib.sha256(given.encode()).hexdigest()[:32]}"


def _data_uri(url: str) -> tuple[str, str]:
    """Media type and base64 data; empty when it is something else."""
    head, _, data = url.partition(",")
    scheme, _, rest = head.partition(":")
    media, _, encoding = rest.partition(";")
    return (media.lower(), data) if scheme == "data" and encoding == "base64" and data else ("", "")


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
