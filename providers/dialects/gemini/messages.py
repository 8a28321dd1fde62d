"""Conversations on Gemini's wire: instructions, turns, images and files, function calls and their results.

Images are sent as the data or the address that the client gave; nothing is fetched.

Sources: `google-genai` 3.4.0 types `Content`, `Part`; "Function calling", "Thought signatures", "File input methods"
pages of the Gemini API and "Image understanding" of Vertex AI, November 2026.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import cast
from urllib.parse import urlsplit

from providers.dialects.gemini.tools import GeminiToolNames
from providers.dialects.shared.conversation import Walk, data_uri
from providers.dialects.shared.thought_signatures import SKIPPED, unpack_call_id
from providers.failure import Refusal
from providers.json_types import JsonObject, JsonValue

_IMAGES: Mapping[str, str] = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "webp": "image/webp",
    "heic": "image/heic",
    "heif": "image/heif",
}
"""The vendor's types of images, by the endings of file names."""

_SOUNDS = frozenset({"wav", "mp3", "aiff", "aac", "ogg", "flac"})
_RESOLUTIONS: Mapping[JsonValue, str] = {"low": "MEDIA_RESOLUTION_LOW", "high": "MEDIA_RESOLUTION_HIGH"}


class GeminiConversation:
    """Translates OpenAI-shaped messages to Gemini's contents.

    `modern` says that the model needs ids and signatures of calls. `folded` says that an instruction was moved,
    `resolutions` lists those of the images.
    """

    __slots__ = (
        "_called",
        "_count",
        "_instructions",
        "_modern",
        "_names",
        "_open",
        "_results",
        "_walk",
        "contents",
        "folded",
        "resolutions",
    )

    def __init__(self, names: GeminiToolNames, param: str, modern: bool) -> None:
        self._walk = Walk(param)
        self._names = names
        self._modern = modern
        self._instructions: list[JsonValue] = []
        self._open: JsonObject | None = None
        self._called: dict[str, _MadeCall] = {}
        self._count = 0
        self._results: list[tuple[int, JsonObject]] = []
        self.contents: list[JsonValue] = []
        self.folded = False
        self.resolutions: set[str] = set()

    def read(self, messages: Iterable[JsonValue]) -> None:
        """Translate OpenAI-shaped messages. Raises Refusal naming the message at fault."""
        for role, message in self._walk.each(messages):
            translate = _ROLES.get(role)
            if translate is None:
                raise self._walk.no_role(role)
            if role != "tool":
                self._give_results()
            translate(self, message)
        self._give_results()
        if not self.contents and self._instructions:
            # The vendor requires a turn to answer, so instructions without any become one.
            self.contents, self._instructions, self.folded = [_turn("user", self._instructions)], [], True
        if not self.contents:
            raise Refusal(self._walk.param, f"'{self._walk.param}' holds no text for the model to answer.", _BAD)

    @property
    def system(self) -> list[JsonValue]:
        """Return the parts of the instructions."""
        return self._instructions

    def _instruction(self, message: JsonObject) -> None:
        parts = self._parts(message.get("content"))
        if any(isinstance(part, dict) and "text" not in part for part in parts):
            raise self._walk.refusal("is an instruction and may only hold text")
        self.folded = self.folded or bool(parts and self.contents)
        self._instructions += parts

    def _user(self, message: JsonObject) -> None:
        self._add("user", self._parts(message.get("content")))

    def _assistant(self, message: JsonObject) -> None:
        content = self._parts(message.get("content")) + self._parts(message.get("refusal"))
        calls = message.get("tool_calls")
        parts: list[JsonValue] = []
        signature = _foreign_signature(message)
        for number, call in enumerate(calls if isinstance(calls, list) else ()):
            part, before = self._call(call, number)
            signature = signature or before
            parts.append(part)
        if signature and content and isinstance(content[-1], dict):
            content[-1]["thoughtSignature"] = signature
        self._add("model", content + parts)

    def _call(self, call: JsonValue, number: int) -> tuple[JsonObject, str | None]:
        """Return a call's part, and the signature of the text before it."""
        called = self._walk.read_call(call)
        own, signature, before = unpack_call_id(called.id)
        if isinstance(call, dict):
            signature = signature or _foreign_signature(call)
        name = self._names.used(called.name)
        function: JsonObject = {"name": name, "args": called.given}
        part: JsonObject = {"functionCall": function}
        if self._modern:
            function["id"] = own
        if signature:
            part["thoughtSignature"] = signature
        elif self._modern and not number:
            part["thoughtSignature"] = SKIPPED
        self._count += 1
        self._called[called.id] = _MadeCall(name, own, self._count)
        return part, before

    def _tool(self, message: JsonObject) -> None:
        call_id, content = message.get("tool_call_id"), message.get("content")
        if not isinstance(call_id, str):
            raise self._walk.refusal("is a tool's result without 'tool_call_id'", _BAD)
        call = self._called.get(call_id)
        if call is None:
            raise self._walk.refusal(f"answers the call '{call_id[:64]}', which no message before it makes", _BAD)
        parts = [{"text": content}] if isinstance(content, str) else self._parts(content)
        texts = [part["text"] for part in parts if isinstance(part, dict) and "text" in part]
        response: JsonObject = {"name": call.name, "response": {"output": "".join(map(str, texts))}}
        if media := [part for part in parts if isinstance(part, dict) and "text" not in part]:
            response["parts"] = cast(JsonValue, media)
        if self._modern:
            response["id"] = call.id
        self._results.append((call.number, {"functionResponse": response}))

    def _give_results(self) -> None:
        """Add one turn with the results of the turn before, in the order of its calls: some models match by order."""
        if self._results:
            self._results.sort(key=lambda result: result[0])
            self.contents.append(_turn("user", [part for _, part in self._results]))
            self._results, self._open = [], None

    def _add(self, role: str, parts: list[JsonValue]) -> None:
        """Add to the last turn of the same role, or begin one; results have a turn of their own."""
        if not parts:
            return
        held = self._open["parts"] if self._open is not None and self._open["role"] == role else None
        if isinstance(held, list):
            held += parts
        else:
            self._open = _turn(role, parts)
            self.contents.append(self._open)

    def _parts(self, content: JsonValue) -> list[JsonValue]:
        """Return the native parts of a message's content without blank ones, which the vendor refuses."""
        if not isinstance(content, list):
            return [{"text": content}] if isinstance(content, str) and content.strip() else []
        parts: list[JsonValue] = []
        for part in content:
            kind = part.get("type") if isinstance(part, dict) else None
            translate = _PARTS.get(kind) if isinstance(kind, str) else None
            if translate is None or not isinstance(part, dict):
                raise self._walk.no_part(kind)
            native = translate(self, part)
            if str(native.get("text", "x")).strip():
                parts.append(native)
        return parts

    def _text(self, part: JsonObject) -> JsonObject:
        return {"text": part.get("text")}

    def _refusal(self, part: JsonObject) -> JsonObject:
        return {"text": part.get("refusal")}

    def _image(self, part: JsonObject) -> JsonObject:
        url = self._walk.image_address(part)
        image = part.get("image_url")
        detail = image.get("detail") if isinstance(image, dict) else None
        if isinstance(detail, str) and detail in _RESOLUTIONS:
            self.resolutions.add(_RESOLUTIONS[detail])
        if url.startswith(("https://", "gs://")):
            media = _IMAGES.get(urlsplit(url).path.rpartition(".")[2].lower())
            if media is None:
                raise self._walk.refusal("has an image whose address does not end in its type, as in '.png'")
            return {"fileData": {"mimeType": media, "fileUri": url}}
        media, data = data_uri(url)
        media = "image/jpeg" if media == "image/jpg" else media
        if media not in _IMAGES.values():
            allowed = ", ".join(sorted(set(_IMAGES.values())))
            raise self._walk.refusal(f"has an image that is neither an address nor a base64 data URI of {allowed}")
        return {"inlineData": {"mimeType": media, "data": data}}

    def _file(self, part: JsonObject) -> JsonObject:
        file = part.get("file")
        uri = file.get("file_data") if isinstance(file, dict) else None
        media, data = data_uri(uri) if isinstance(uri, str) else ("", "")
        if not media:
            raise self._walk.refusal("has a file that is no base64 data URI with a type")
        return {"inlineData": {"mimeType": media, "data": data}}

    def _sound(self, part: JsonObject) -> JsonObject:
        sound = part.get("input_audio")
        data = sound.get("data") if isinstance(sound, dict) else None
        form = sound.get("format") if isinstance(sound, dict) else None
        if not isinstance(data, str) or form not in _SOUNDS:
            raise self._walk.refusal(f"has a sound that is not base64 data in one of {', '.join(sorted(_SOUNDS))}")
        return {"inlineData": {"mimeType": f"audio/{form}", "data": data}}


class _MadeCall:
    """A call of the conversation: its name and id on the wire, and its position among all calls."""

    __slots__ = ("id", "name", "number")

    def __init__(self, name: str, call_id: str, number: int) -> None:
        self.name = name
        self.id = call_id
        self.number = number


_BAD = "invalid_value"


def _turn(role: str, parts: list[JsonValue]) -> JsonObject:
    return {"role": role, "parts": parts}


def _foreign_signature(holder: JsonObject) -> str | None:
    """Return the signature that the vendor's own OpenAI-compatible endpoint puts beside a text or a call."""
    found: JsonValue = holder
    for step in ("extra_content", "google", "thought_signature"):
        found = found.get(step) if isinstance(found, dict) else None
    return found if isinstance(found, str) and found else None


_ROLES: Mapping[str, Callable[[GeminiConversation, JsonObject], None]] = {
    "system": GeminiConversation._instruction,
    "developer": GeminiConversation._instruction,
    "user": GeminiConversation._user,
    "assistant": GeminiConversation._assistant,
    "tool": GeminiConversation._tool,
}
_PARTS: Mapping[str, Callable[[GeminiConversation, JsonObject], JsonObject]] = {
    "text": GeminiConversation._text,
    "refusal": GeminiConversation._refusal,
    "image_url": GeminiConversation._image,
    "file": GeminiConversation._file,
    "input_audio": GeminiConversation._sound,
}
