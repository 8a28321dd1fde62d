"""Reads a conversation in OpenAI's chat shape into `providers.conversation`, for dialects of another shape.

Besides OpenAI's own fields, messages may have the fields that clients of other gateways send: `reasoning_details`
(OpenRouter), `thinking_blocks` (LiteLLM), `reasoning_content` and `reasoning`, `thinking` parts, `extra_content`
(Google), `cache_control` (Anthropic, OpenRouter) on messages, parts and calls, and `prompt_cache_breakpoint` (OpenAI)
on parts.

Sources: OpenAI OpenAPI 2.3.0 `ChatCompletionRequestMessage`; @openrouter/sdk 1.3.19; litellm 1.109.1 `types/utils`,
November 2026.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from providers.adaptation.file_data import data_uri, named_type, with_data_url
from providers.conversation import (
    CITATION_FIELDS,
    CONTINUATION_FIELDS,
    DESCRIPTIVE_FIELDS,
    Address,
    Audio,
    Document,
    Image,
    InlineData,
    Media,
    OtherPart,
    Part,
    PlainMessage,
    Reasoning,
    RedactedReasoning,
    Role,
    Text,
    ToolResult,
    ToolUse,
    Turn,
    UploadedFile,
    Video,
)
from providers.dialects.shared.read_thinking import (
    google_signature,
    order_parts,
    position_in_turn,
    reasoning_of_message,
    thinking_block,
)
from providers.dialects.shared.tool_definitions import read_arguments
from providers.frozen_record import frozen
from providers.json_types import JsonObject, JsonValue

CACHE = "cache_control"
"""The name of the cache markers of messages, parts and calls, as reported in `x-dragoman-dropped`."""

_INVALID_VALUE = "invalid_value"

_ROLES: Mapping[JsonValue, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}

_REASONING_FIELDS = frozenset(
    {"reasoning", "reasoning_content", "reasoning_details", "reasoning_signature", "thinking_blocks"}
)
"""Fields of an assistant message that hold its reasoning."""
# Any other field is refused unless it is null or empty, since it would change the response. Clients send a response
# back with all its fields: unknown fields of an assistant message are left out, and reported unless they are in
# DESCRIPTIVE_FIELDS.
_KNOWN = frozenset(
    {"role", "content", "refusal", "tool_calls", "function_call", "tool_call_id", "name", "is_error", "images"}
    | {"extra_content", "cache_control"}
    | _REASONING_FIELDS
    | DESCRIPTIVE_FIELDS
    | CITATION_FIELDS
)
_UNREPORTED = _KNOWN - CITATION_FIELDS
"""Fields of an assistant message that are read, or left out without being reported."""

_PLAIN = _REASONING_FIELDS | {"role", "content", "tool_calls"}
_BESIDE_CALL = frozenset({"custom", "extra_content", CACHE})


def read_conversation(messages: Iterable[JsonValue], param: str = "messages") -> Iterator[Turn]:
    """Yield a turn for each message, in order. `param` is the client's field that holds the messages.

    Raises Refusal for a malformed message, and for a field that no vendor accepts.
    """
    for position, read in enumerate(read_messages(messages, param)):
        yield read.turn(param, position) if isinstance(read, PlainMessage) else read


def read_messages(messages: Iterable[JsonValue], param: str = "messages") -> Iterator[PlainMessage | Turn]:
    """Yield a `PlainMessage` for each plain message, and for any other message the turn that `read_conversation`
    yields. Raises Refusal in the same cases."""
    for position, message in enumerate(messages):
        plain = _plain(message) if isinstance(message, dict) else None
        if plain is None:
            yield _MessageReader(Turn("user", (), None, None, param, position)).read(message)
        else:
            yield plain


def _plain(message: JsonObject) -> PlainMessage | None:
    """Return the message as a `PlainMessage` if a `PlainMessage` can hold all its fields, otherwise `None`."""
    given = message.get("role")
    role = _ROLES.get(given) if isinstance(given, str) else None
    if role == "assistant":
        return _plain_turn(message)
    text = _only_text(message.get("content"))
    if role is None or text is None:
        return None
    if role != "tool":
        return PlainMessage(role, text) if len(message) == 2 else None
    call_id = message.get("tool_call_id")
    if len(message) == 3 and isinstance(call_id, str) and given == "tool":
        return PlainMessage(role, text, (), call_id)
    return None


def _plain_turn(message: JsonObject) -> PlainMessage | None:
    """Return an assistant message that has only reasoning, a text and function calls; `None` for any other message."""
    content, listed = message.get("content"), message.get("tool_calls")
    thinking: list[Part] = []
    if len(message) > 1 + ("content" in message) + ("tool_calls" in message):
        if _has_other_fields(message):
            return None
        thinking = reasoning_of_message(message)
        if any([position_in_turn(reasoning) != (0, 0) for reasoning in thinking]):
            return None
    text = "" if content is None else _only_text(content)
    if text is None or not (listed is None or isinstance(listed, list)):
        return None
    calls: list[ToolUse] = []
    for given in listed or ():
        call = _plain_call(given)
        if call is None:
            return None
        calls.append(call)
    return PlainMessage("assistant", text, calls, thinking=thinking)


def _only_text(content: JsonValue) -> str | None:
    """Return the text of a content that is a single text; `None` for any other content."""
    if isinstance(content, list) and len(content) == 1 and isinstance(part := content[0], dict):
        content = part.get("text") or None if len(part) == 2 and part.get("type") == "text" else None
    return content if isinstance(content, str) else None


def _has_other_fields(message: JsonObject) -> bool:
    """Return whether an assistant message has a value in a field other than `_PLAIN`. OpenAI's clients send a response
    back with all its empty fields."""
    return any([value is not None and value != [] for name, value in message.items() if name not in _PLAIN])


def _plain_call(call: JsonValue) -> ToolUse | None:
    """Return a function call that has no other fields; `None` for any other call."""
    if not isinstance(call, dict) or not _BESIDE_CALL.isdisjoint(call):
        return None
    function, identity = call.get("function"), call.get("id")
    name = function.get("name") if isinstance(function, dict) else None
    if not isinstance(function, dict) or not isinstance(identity, str) or not isinstance(name, str):
        return None
    arguments = read_arguments(function)
    return None if arguments is None else ToolUse(identity, name, arguments)


@frozen
class _MessageReader:
    """The reader of one message. `turn` is a turn without parts, which names the message in errors."""

    turn: Turn

    def read(self, message: JsonValue) -> Turn:
        if not isinstance(message, dict):
            raise self.turn.refusal("is not an object", _INVALID_VALUE)
        given = message.get("role")
        if not isinstance(given, str):
            raise self.turn.refusal("has no role", _INVALID_VALUE)
        role = _ROLES.get(given)
        if role is None:
            raise self.turn.refusal(f"has the role '{given}', which cannot be translated")
        self._check_fields(message)
        if role == "tool":
            parts: list[Part] = [self._result(message)]
        else:
            parts = self._content(message.get("content"))
            if role == "assistant":
                texts = [*_reasoning_first(parts), *self._refusal(message)] or self._transcript(message)
                parts = order_parts(reasoning_of_message(message), texts, self._calls(message))
        name = message.get("name")
        records: tuple[str, ...] = ()
        if role == "assistant" and not _UNREPORTED.issuperset(message):
            records = tuple([each for each in message if each not in _UNREPORTED and message[each]])
        return Turn(
            role,
            tuple(_with_marker_on_last(parts, _object(message.get(CACHE)))),
            name if isinstance(name, str) and role != "tool" else None,
            google_signature(message),
            self.turn.param,
            self.turn.position,
            records,
        )

    def _check_fields(self, message: JsonObject) -> None:
        free = message.get("role") == "assistant"
        if free and CONTINUATION_FIELDS.isdisjoint(message):
            return
        for name, member in message.items():
            if member and name not in _KNOWN and not (free and name not in CONTINUATION_FIELDS):
                raise self.turn.refusal(f"has the field '{name}', which the vendor does not have")

    def _result(self, message: JsonObject) -> ToolResult:
        call_id, name = message.get("tool_call_id"), message.get("name")
        if message.get("role") == "function":
            call_id = f"call_{name}"
        if not isinstance(call_id, str):
            raise self.turn.refusal("is a tool's result without 'tool_call_id'", _INVALID_VALUE)
        parts: list[Text | Image | Document | Audio | Video | OtherPart] = []
        for part in self._content(message.get("content")):
            if isinstance(part, ToolUse | ToolResult | Reasoning | RedactedReasoning):
                raise self.turn.no_part("thinking")
            parts.append(part)
        return ToolResult(
            call_id,
            tuple(parts),
            message.get("is_error") is True,
            name if isinstance(name, str) else None,
        )

    def _content(self, content: JsonValue) -> list[Part]:
        """Return the parts of a content. Blank texts stay, since only some vendors refuse them."""
        if isinstance(content, str):
            return [Text(content)] if content else []
        return [self._part(part) for part in content] if isinstance(content, list) else []

    def _part(self, part: JsonValue) -> Part:
        kind = part.get("type") if isinstance(part, dict) else None
        if not isinstance(part, dict) or not isinstance(kind, str):
            raise self.turn.no_part(str(kind))
        read = _PARTS.get(kind)
        return OtherPart(kind, part) if read is None else read(self, part)

    def _text(self, part: JsonObject) -> Part:
        text = part.get("refusal" if part["type"] == "refusal" else "text")
        return Text(text if isinstance(text, str) else "", _marker(part))

    def _reasoning(self, part: JsonObject) -> Part:
        return thinking_block(part)

    def _image(self, part: JsonObject) -> Part:
        image = part.get("image_url")
        url = image.get("url") if isinstance(image, dict) else image
        detail = image.get("detail") if isinstance(image, dict) else part.get("detail")
        if not isinstance(url, str) and isinstance(part.get("file_id"), str):
            media: Media = UploadedFile(str(part["file_id"]))
        elif isinstance(url, str):
            media = self._media(url, "an image", image, part)
        else:
            raise self.turn.refusal("has an image without a URL", _INVALID_VALUE)
        return Image(media, detail if isinstance(detail, str) else None, _marker(part))

    def _file(self, part: JsonObject) -> Part:
        file = part.get("file")
        file_fields = with_data_url(file if isinstance(file, dict) else part)
        data, address, file_id = file_fields.get("file_data"), file_fields.get("file_url"), file_fields.get("file_id")
        name = file_fields.get("filename")
        if isinstance(data, str) and data:
            media = self._media(data, "a file", file_fields)
        elif isinstance(address, str) and address:
            media = self._media(address, "a file", file_fields)
        elif isinstance(file_id, str) and file_id:
            media = UploadedFile(file_id)
        else:
            raise self.turn.refusal("has a file without 'file_data', 'file_url' or 'file_id'", _INVALID_VALUE)
        if isinstance(media, InlineData) and media.media_type.startswith("video/"):
            return Video(media, _marker(part))
        named = name if isinstance(name, str) and name else None
        return Document(media, named, cache=_marker(part))

    def _video(self, part: JsonObject) -> Part:
        video = part.get("video_url")
        url = video.get("url") if isinstance(video, dict) else video
        if not isinstance(url, str):
            raise self.turn.refusal("has a video without a URL", _INVALID_VALUE)
        return Video(self._media(url, "a video", video, part), _marker(part))

    def _audio(self, part: JsonObject) -> Part:
        sound = part.get("input_audio")
        data = sound.get("data") if isinstance(sound, dict) else None
        form = sound.get("format") if isinstance(sound, dict) else None
        if not isinstance(data, str) or not isinstance(form, str):
            raise self.turn.refusal("has audio without 'data' or 'format'", _INVALID_VALUE)
        return Audio(data, form, _marker(part))

    def _media(self, url: str, subject: str, *holders: JsonValue) -> Media:
        """Return the media at a URL or in a data URI. `subject` names the media in errors. The `holders` may name the
        media type."""
        if url[:5].lower() == "data:":
            media_type, data = data_uri(url)
            if not media_type:
                raise self.turn.refusal(f"has {subject} whose data URI is not in base64 or has no type")
            return InlineData("image/jpeg" if media_type == "image/jpg" else media_type, data)
        scheme, found, _ = url.partition("://")
        if not found or scheme.lower() not in ("https", "http", "gs", "s3"):
            raise self.turn.refusal(f"has {subject} that is neither a URL nor a data URI in base64")
        return Address(url, named_type(holders))

    def _refusal(self, message: JsonObject) -> list[Part]:
        refusal = message.get("refusal")
        return [Text(refusal)] if isinstance(refusal, str) and refusal else []

    def _transcript(self, message: JsonObject) -> list[Part]:
        """Return the transcript of a spoken response. Raises Refusal for audio without a transcript, which only its
        vendor can look up."""
        audio = message.get("audio")
        if not isinstance(audio, dict) or message.get("tool_calls"):
            return []
        transcript = audio.get("transcript")
        if not isinstance(transcript, str) or not transcript:
            raise self.turn.refusal(
                "has audio of another response without its 'transcript', which the vendor cannot look up"
            )
        return [Text(transcript)]

    def _calls(self, message: JsonObject) -> list[Part]:
        calls, legacy = message.get("tool_calls"), message.get("function_call")
        tool_uses: list[Part] = [self._call(call) for call in calls] if isinstance(calls, list) else []
        if not tool_uses and isinstance(legacy, dict):
            tool_uses.append(self._call({"id": f"call_{legacy.get('name')}", "function": legacy}))
        return tool_uses

    def _call(self, call: JsonValue) -> ToolUse:
        if (plain := _plain_call(call)) is not None:
            return plain
        if isinstance(call, dict) and isinstance(custom := call.get("custom"), dict):
            text = custom.get("input")
            given = text if isinstance(text, str) else ""
            return ToolUse(str(call.get("id")), str(custom.get("name")), {"input": given}, custom=given)
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(call, dict) or not isinstance(function, dict):
            raise self.turn.refusal("has a tool call that is not a function's")
        arguments = read_arguments(function)
        if arguments is None:
            raise self.turn.refusal("has a tool call whose 'arguments' are nested too deeply", _INVALID_VALUE)
        return ToolUse(
            str(call.get("id")),
            str(function.get("name")),
            arguments,
            google_signature(call),
            cache=_object(call.get(CACHE)),
        )


def _marker(part: JsonObject) -> JsonObject | None:
    """Return the cache marker of a part, otherwise `None`. OpenAI's marker has no lifetime that other vendors' caches
    support."""
    marker = part.get(CACHE)
    if marker is None and isinstance(part.get("prompt_cache_breakpoint"), dict):
        return {"type": "ephemeral"}
    return marker if isinstance(marker, dict) else None


def _object(value: JsonValue) -> JsonObject | None:
    return value if isinstance(value, dict) else None


def _reasoning_first(parts: list[Part]) -> list[Part]:
    """Return the parts with reasoning first, which is the order that vendors require."""
    return sorted(parts, key=lambda part: not isinstance(part, Reasoning | RedactedReasoning))


def _with_marker_on_last(parts: list[Part], marker: JsonObject | None) -> list[Part]:
    """Return the parts with the message's cache marker on the last part that can have one."""
    if marker is None:
        return parts
    for index in range(len(parts) - 1, -1, -1):
        part = parts[index]
        if not isinstance(part, Reasoning | RedactedReasoning | OtherPart):
            marked = part if part.cache is not None else replace(part, cache=marker)
            return [*parts[:index], marked, *parts[index + 1 :]]
    return parts


_PARTS: Mapping[str, Callable[[_MessageReader, JsonObject], Part]] = {
    "text": _MessageReader._text,
    "input_text": _MessageReader._text,
    "output_text": _MessageReader._text,
    "refusal": _MessageReader._text,
    "thinking": _MessageReader._reasoning,
    "redacted_thinking": _MessageReader._reasoning,
    "image_url": _MessageReader._image,
    "input_image": _MessageReader._image,
    "file": _MessageReader._file,
    "input_file": _MessageReader._file,
    "input_audio": _MessageReader._audio,
    "video_url": _MessageReader._video,
}
