"""Parts of messages and calls of tools, with what a vendor of the OpenAI family refuses left out or renamed.

Sources, November 2026: OpenAI OpenAPI 2.3.0 `ChatCompletionRequestMessageContentPart*`,
`ChatCompletionMessageToolCalls` and `ChatCompletionRequestFunctionMessage`, and of its Responses API, whose parts some
clients send to chats, `InputTextContent`, `InputImageContent` and `InputFileContent`; @openrouter/sdk 1.3.19 for
`cache_control` and `prompt_cache_breakpoint` on parts; Fireworks' error "Extra inputs are not permitted" for the
former. `image/jpg` is no registered media type, and several vendors refuse it.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Final

import orjson

from providers.adaptation.file_data import PDF, fitting_file, media_type
from providers.dialects.shared.field_writers import without_markers
from providers.failure import Refusal
from providers.frozen_record import record
from providers.json_types import JsonObject, JsonValue
from providers.profile import Profile

_OF_FILE: Final = ("file_data", "file_id", "file_url", "filename")
_JPG: Final = "data:image/jpg;"

_CALL: Final = frozenset({"id", "type", "function", "custom"})
_FUNCTION: Final = frozenset({"name", "arguments"})
"""The fields of a call. Others come from responses (`index` of a stream, for one), and vendors refuse them."""


def is_googles(extra: JsonValue) -> bool:
    """Return whether an `extra_content` holds nothing but Google's thought signature, which only Google reads."""
    return isinstance(extra, dict) and extra.keys() <= {"google"}


@record
class PartWriter:
    """Writes the parts of one message's content."""

    profile: Profile
    dropped: list[str]

    def written(self, parts: Iterable[JsonValue]) -> list[JsonValue]:
        """Return the parts as the vendor takes them. A part of a type that is not OpenAI's goes as it is: the vendor
        that has the type reads it, any other answers for it."""
        return [self._part(part) if isinstance(part, dict) else part for part in parts]

    def _part(self, part: JsonObject) -> JsonObject:
        part = without_markers(part, self.profile, self.dropped)
        match part.get("type"):
            case "image_url":
                part = _with_registered_type(part)
            case "input_text" | "output_text":
                part = {**part, "type": "text"}
            case "input_image" if "image_url" in part:
                part = _with_registered_type(_nested(part, "image_url", ("url", "detail"), {"image_url": "url"}))
            case "file" | "input_file" as kind:
                part = self._file(part if kind == "file" else _nested(part, "file", _OF_FILE, {}))
            case "refusal" if "refusal" not in self.profile.takes:
                text = {**part, "type": "text", "text": part.get("refusal")}
                part = {name: value for name, value in text.items() if name != "refusal"}
        return part

    def _file(self, part: JsonObject) -> JsonObject:
        """Return a part that holds a file. Raises NotInChats for a file that the vendor's chats do not take."""
        file, taken = part.get("file"), self.profile.files
        if taken == "any" or not isinstance(file, dict):
            return part
        fitted = fitting_file(file)
        if taken == "none":
            raise NotInChats("messages", "'messages' may hold no files in a chat with this vendor.")
        if taken == "addressed" and (address := fitted.get("file_url")):
            fitted = {name: value for name, value in fitted.items() if name != "file_url"}
            fitted = {"filename": "document", **fitted, "file_data": address}
        if taken == "pdf" and not fitted.get("file_id") and not _is_pdf(fitted):
            raise NotInChats("messages", "'messages' may hold PDFs alone in a chat with this vendor, in base64.")
        return part if fitted is file else {**part, "file": fitted}


def are_texts_alone(parts: Iterable[JsonValue]) -> bool:
    """Return whether parts are all texts without further fields, which `PartWriter` returns unchanged."""
    for part in parts:
        if type(part) is not dict or len(part) != 2 or part.get("type") != "text" or "text" not in part:
            return False
    return True


class NotInChats(Refusal):
    """Content that a vendor takes in another API than that of chats, if it has one."""


def _is_pdf(file: JsonObject) -> bool:
    data = file.get("file_data")
    return isinstance(data, str) and media_type(data) == PDF


def _nested(part: JsonObject, name: str, members: Collection[str], renamed: Mapping[str, str]) -> JsonObject:
    """Return a part of the Responses API in the form of chat, which has an object for its members."""
    if isinstance(part.get(name), dict):
        return {**part, "type": name}
    given = {renamed.get(key, key): value for key, value in part.items()}
    outer = {key: value for key, value in given.items() if key not in members}
    held: JsonObject = {key: value for key, value in given.items() if key in members and value is not None}
    return {**outer, "type": name, name: held}


def _with_registered_type(part: JsonObject) -> JsonObject:
    image = part.get("image_url")
    url = image.get("url") if isinstance(image, dict) else image
    if not isinstance(url, str) or url[: len(_JPG)].lower() != _JPG:
        return part
    registered = f"data:image/jpeg;{url[len(_JPG) :]}"
    return {**part, "image_url": {**image, "url": registered} if isinstance(image, dict) else registered}


@record
class CallWriter:
    """Writes the calls of one message."""

    profile: Profile
    dropped: list[str]

    def written(self, calls: Iterable[JsonValue]) -> list[JsonValue]:
        """Return the calls as the vendor takes them."""
        return [self._call(call) if isinstance(call, dict) else call for call in calls]

    def _call(self, call: JsonObject) -> JsonObject:
        # Markers stand on parts and tools; no vendor of the family reads them on a call.
        call = without_markers(call, self.profile, self.dropped)
        if call.get("type") == "custom" and not self.profile.takes_tool("custom"):
            call = _as_function(call)
        function = call.get("function")
        if isinstance(function, dict) and len(function) > len(_FUNCTION):
            # `parsed_arguments` of OpenAI's own client, for one.
            call = {**call, "function": {name: value for name, value in function.items() if name in _FUNCTION}}
        if call.keys() <= _CALL:
            return call
        extra = call.get("extra_content")
        if extra and "extra_content" not in self.profile.takes and not is_googles(extra):
            self.dropped.append("extra_content")
        return {name: value for name, value in call.items() if name in _CALL or name in self.profile.takes}


def are_functions_alone(calls: Collection[JsonValue]) -> bool:
    """Return whether there are calls, all of them of functions without further fields, which `CallWriter` returns
    unchanged."""
    for call in calls:
        if not (
            type(call) is dict
            and len(call) == 3
            and call.get("type") == "function"
            and "id" in call
            and type(function := call.get("function")) is dict
            and len(function) == len(_FUNCTION)
        ):
            return False
    return bool(calls)


def _as_function(call: JsonObject) -> JsonObject:
    """Return a call of a custom tool as one of a function whose only argument is the tool's input."""
    custom = call.get("custom")
    held = custom if isinstance(custom, dict) else {}
    arguments = orjson.dumps({"input": held.get("input", "")}).decode()
    kept = {name: value for name, value in call.items() if name != "custom"}
    return {**kept, "type": "function", "function": {"name": held.get("name", ""), "arguments": arguments}}


# OpenAI's older form of calls -----------------------------------------------------------------------------------------


def is_legacy(message: JsonObject) -> bool:
    """Return whether a message holds a call, or is a result, in the older form."""
    return "function_call" in message or message.get("role") == "function"


def without_legacy_calls(message: JsonObject) -> JsonObject:
    """Return the message with its call or result in the form of tools; the id of both is made of the name."""
    if message.get("role") == "function":
        kept = {name: value for name, value in message.items() if name != "name"}
        return {**kept, "role": "tool", "tool_call_id": f"call_{message.get('name')}"}
    call = message["function_call"]
    kept = {name: value for name, value in message.items() if name != "function_call"}
    if not isinstance(call, dict) or kept.get("tool_calls"):
        return kept
    return {**kept, "tool_calls": [{"id": f"call_{call.get('name')}", "type": "function", "function": call}]}
