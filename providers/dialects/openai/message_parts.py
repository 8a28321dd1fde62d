"""Writes message parts and tool calls without the fields that a vendor of the OpenAI family refuses.

Sources, November 2026: OpenAI OpenAPI 2.3.0 `ChatCompletionRequestMessageContentPart*`,
`ChatCompletionMessageToolCalls` and `ChatCompletionRequestFunctionMessage`, and of its Responses API, whose parts some
clients send to chats, `InputTextContent`, `InputImageContent` and `InputFileContent`; @openrouter/sdk 1.3.19 for
`cache_control` and `prompt_cache_breakpoint` on parts; Fireworks' error "Extra inputs are not permitted" for
`cache_control`. `image/jpg` is not a registered media type, and several vendors refuse it.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Final

import orjson

from providers.adaptation.file_data import PDF, fitting_file, media_type
from providers.dialects.shared.field_writers import without_markers
from providers.failure import Refusal
from providers.frozen_record import frozen
from providers.json_types import JsonObject, JsonValue
from providers.profile import Profile

_FILE_FIELDS: Final = ("file_data", "file_id", "file_url", "filename")
_JPG: Final = "data:image/jpg;"

_CALL_FIELDS: Final = frozenset({"id", "type", "function", "custom"})
_FUNCTION_FIELDS: Final = frozenset({"name", "arguments"})
"""The fields of a call's function. Other fields come from responses, such as `index` of a stream, and vendors refuse
them."""


def is_googles(extra: JsonValue) -> bool:
    """Return whether an `extra_content` holds nothing but Google's thought signature, which only Google reads."""
    return isinstance(extra, dict) and extra.keys() <= {"google"}


@frozen
class PartWriter:
    """The writer of the parts of one message's content."""

    profile: Profile
    dropped: list[str]

    def written(self, parts: Iterable[JsonValue]) -> list[JsonValue]:
        """Return the parts in the vendor's form. A part of a type that is not OpenAI's is unchanged: vendors that have
        the type read it, other vendors refuse it themselves."""
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
                part = self._file(part if kind == "file" else _nested(part, "file", _FILE_FIELDS, {}))
            case "refusal" if "refusal" not in self.profile.takes:
                text = {**part, "type": "text", "text": part.get("refusal")}
                part = {name: value for name, value in text.items() if name != "refusal"}
        return part

    def _file(self, part: JsonObject) -> JsonObject:
        """Return the part of a file in the vendor's form. Raises NotInChats for a file that the vendor's chats do not
        accept."""
        file, accepted = part.get("file"), self.profile.files
        if accepted == "any" or not isinstance(file, dict):
            return part
        fitted = fitting_file(file)
        if accepted == "none":
            raise NotInChats("messages", "'messages' may hold no files in a chat with this vendor.")
        if accepted == "addressed" and (address := fitted.get("file_url")):
            fitted = {name: value for name, value in fitted.items() if name != "file_url"}
            fitted = {"filename": "document", **fitted, "file_data": address}
        if accepted == "pdf" and not fitted.get("file_id") and not _is_pdf(fitted):
            raise NotInChats("messages", "'messages' may hold only PDFs, in base64, in a chat with this vendor.")
        return part if fitted is file else {**part, "file": fitted}


def are_texts_alone(parts: Iterable[JsonValue]) -> bool:
    """Return whether all parts are texts without other fields, which `PartWriter` returns unchanged."""
    for part in parts:
        if type(part) is not dict or len(part) != 2 or part.get("type") != "text" or "text" not in part:
            return False
    return True


class NotInChats(Refusal):
    """The refusal of content that a vendor accepts only in an API other than chat, if it has one."""


def _is_pdf(file: JsonObject) -> bool:
    data = file.get("file_data")
    return isinstance(data, str) and media_type(data) == PDF


def _nested(part: JsonObject, name: str, nested_keys: Collection[str], renamed: Mapping[str, str]) -> JsonObject:
    """Return a part of the Responses API in the form of a chat, which nests its fields in an object."""
    if isinstance(part.get(name), dict):
        return {**part, "type": name}
    given = {renamed.get(key, key): value for key, value in part.items()}
    outer = {key: value for key, value in given.items() if key not in nested_keys}
    nested: JsonObject = {key: value for key, value in given.items() if key in nested_keys and value is not None}
    return {**outer, "type": name, name: nested}


def _with_registered_type(part: JsonObject) -> JsonObject:
    image = part.get("image_url")
    url = image.get("url") if isinstance(image, dict) else image
    if not isinstance(url, str) or url[: len(_JPG)].lower() != _JPG:
        return part
    registered = f"data:image/jpeg;{url[len(_JPG) :]}"
    return {**part, "image_url": {**image, "url": registered} if isinstance(image, dict) else registered}


@frozen
class CallWriter:
    """The writer of the tool calls of one message."""

    profile: Profile
    dropped: list[str]

    def written(self, calls: Iterable[JsonValue]) -> list[JsonValue]:
        """Return the calls in the vendor's form."""
        return [self._call(call) if isinstance(call, dict) else call for call in calls]

    def _call(self, call: JsonObject) -> JsonObject:
        # Cache markers belong to parts and tools. No vendor of the family reads them on a call.
        call = without_markers(call, self.profile, self.dropped)
        if call.get("type") == "custom" and not self.profile.takes_tool("custom"):
            call = _as_function(call)
        function = call.get("function")
        if isinstance(function, dict) and len(function) > len(_FUNCTION_FIELDS):
            # For example `parsed_arguments` of OpenAI's own client.
            call = {**call, "function": {name: value for name, value in function.items() if name in _FUNCTION_FIELDS}}
        if call.keys() <= _CALL_FIELDS:
            return call
        extra = call.get("extra_content")
        if extra and "extra_content" not in self.profile.takes and not is_googles(extra):
            self.dropped.append("extra_content")
        return {name: value for name, value in call.items() if name in _CALL_FIELDS or name in self.profile.takes}


def are_functions_alone(calls: Collection[JsonValue]) -> bool:
    """Return whether there are calls, and all of them are function calls without other fields, which `CallWriter`
    returns unchanged."""
    for call in calls:
        if not (
            type(call) is dict
            and len(call) == 3
            and call.get("type") == "function"
            and "id" in call
            and type(function := call.get("function")) is dict
            and len(function) == len(_FUNCTION_FIELDS)
        ):
            return False
    return bool(calls)


def _as_function(call: JsonObject) -> JsonObject:
    """Return a custom tool call as a call of a function whose only argument is the tool's input."""
    custom = call.get("custom")
    nested = custom if isinstance(custom, dict) else {}
    arguments = orjson.dumps({"input": nested.get("input", "")}).decode()
    rest = {name: value for name, value in call.items() if name != "custom"}
    return {**rest, "type": "function", "function": {"name": nested.get("name", ""), "arguments": arguments}}


# OpenAI's older form of calls -----------------------------------------------------------------------------------------


def is_legacy(message: JsonObject) -> bool:
    """Return whether a message holds a call, or is a result, in the older form."""
    return "function_call" in message or message.get("role") == "function"


def without_legacy_calls(message: JsonObject) -> JsonObject:
    """Return the message with its call or result in the form of tools. The id of both is derived from the name."""
    if message.get("role") == "function":
        rest = {name: value for name, value in message.items() if name != "name"}
        return {**rest, "role": "tool", "tool_call_id": f"call_{message.get('name')}"}
    call = message["function_call"]
    rest = {name: value for name, value in message.items() if name != "function_call"}
    if not isinstance(call, dict) or rest.get("tool_calls"):
        return rest
    return {**rest, "tool_calls": [{"id": f"call_{call.get('name')}", "type": "function", "function": call}]}
