"""Checks a conversation as deeply as every dialect relies on; which parts a vendor takes is its dialect's matter.

Roles and members: OpenAI OpenAPI 2.3.0 `ChatCompletionRequestMessage`.
"""

from collections.abc import Iterable, Iterator, Mapping

from providers.json_types import JsonObject, JsonValue
from providers.unified_request import PLAIN_ROLES, ChatPrompt
from proxy.surfaces.request.legacy_functions import modern
from proxy.surfaces.request.parse_json import MAX_ELEMENTS, has_too_many_elements
from proxy.surfaces.request.rule_kinds import Check, Invalid, boolean, check_at, json_object, string, text

MAX_MESSAGES = 4096
"""Far more turns than a context window holds."""

ROLES = ("system", "developer", "user", "assistant", "tool", "function")
MAY_LACK_CONTENT = frozenset({"assistant", "function"})


def messages(value: JsonValue) -> ChatPrompt:
    """Check messages: a known role and content of a known type. The objects themselves are passed on."""
    if not isinstance(value, list) or not value:
        raise Invalid("must be a non-empty list of messages")
    if len(value) > MAX_MESSAGES:
        raise Invalid(f"may hold at most {MAX_MESSAGES} messages")
    others: list[JsonObject] = []
    for index, item in enumerate(value):
        # A role and a text, as nearly all messages are: a call for each would cost more than all that it checks.
        if not (
            type(item) is dict
            and len(item) == 2
            and type(content := item.get("content")) is str
            and content
            and item.get("role") in PLAIN_ROLES
        ):
            others.append(check_at(_message, item, index))
    checked: tuple[JsonObject, ...] = tuple(value)  # type: ignore[arg-type]  # all are objects
    if not others:
        return ChatPrompt(checked, True)
    older = [message for message in others if "function_call" in message or message["role"] == "function"]
    _check_arguments(others, older)
    return ChatPrompt(modern(checked) if older else checked)


def _check_arguments(messages: Iterable[JsonObject], older: Iterable[JsonObject]) -> None:
    """Limit the JSON elements in arguments of calls: those strings do not count as elements of the body. `older` are
    the messages that make or answer calls in the form before tools."""
    texts = [text for message in messages if "tool_calls" in message for text in _arguments(message["tool_calls"])]
    texts += [text for message in older for text in _arguments([{"function": message.get("function_call")}])]
    if sum(map(len, texts)) > MAX_ELEMENTS and has_too_many_elements("".join(texts).encode(errors="replace")):
        raise Invalid(f"may hold at most {MAX_ELEMENTS} JSON elements in the arguments of all calls together")


def _arguments(calls: JsonValue) -> Iterator[str]:
    for call in calls if isinstance(calls, list) else ():
        for holder, name in (("function", "arguments"), ("custom", "input")):
            called = call.get(holder) if isinstance(call, dict) else None
            given = called.get(name) if isinstance(called, dict) else None
            if isinstance(given, str):
                yield given


def _message(value: JsonValue) -> JsonObject:
    message = json_object(value)
    role = message.get("role")
    if role not in ROLES:
        raise Invalid(f"must be one of {', '.join(repr(name) for name in ROLES)}", "role")
    content = message.get("content")
    if isinstance(content, list):
        for index, part in enumerate(content):
            check_at(_part, part, "content", index)
    elif content is None:
        if role not in MAY_LACK_CONTENT:
            raise Invalid("is required", "content")
    elif not isinstance(content, str):
        raise Invalid("must be a string or a list of parts", "content")
    if role == "function" and not isinstance(message.get("name"), str):
        raise Invalid("is required", "name")  # it is all that says which call this answers
    if len(message) > 2 or content is None:
        _members(message, _MESSAGE)
    return message


def _part(value: JsonValue) -> None:
    part = json_object(value)
    kind = check_at(text, part.get("type"), "type")
    rule = _PARTS.get(kind)
    if rule is not None:
        name, check = rule
        check_at(check, part.get(name), name)
    elif kind in _HELD:
        _members(part, _HELD[kind])
        if not any(part.get(name) for name in _HELD[kind]):
            raise Invalid(f"must have {' or '.join(repr(name) for name in _HELD[kind])}")
    if (marker := part.get("cache_control")) is not None:
        check_at(json_object, marker, "cache_control")


def _members(holder: JsonObject, rules: Mapping[str, Check]) -> None:
    for name, member in holder.items():
        check = rules.get(name)
        if check is not None and member is not None:
            check_at(check, member, name)


def _image_url(value: JsonValue) -> None:
    if not isinstance(value, str):
        check_at(text, json_object(value).get("url"), "url")


def _tool_calls(value: JsonValue) -> None:
    if not isinstance(value, list):
        raise Invalid("must be a list of tool calls")
    for index, item in enumerate(value):
        check_at(_tool_call, item, index)


def _tool_call(value: JsonValue) -> None:
    call = json_object(value)
    check_at(string, call.get("id"), "id")
    kind = call.get("type", "function")
    if kind == "function":
        check_at(_function_call, call.get("function"), "function")
    elif kind == "custom":
        check_at(_custom_call, call.get("custom"), "custom")
    if len(call) > 3:
        _members(call, _CALL)


def _function_call(value: JsonValue) -> None:
    function = json_object(value)
    check_at(text, function.get("name"), "name")
    check_at(string, function.get("arguments"), "arguments")


def _custom_call(value: JsonValue) -> None:
    custom = json_object(value)
    check_at(text, custom.get("name"), "name")
    check_at(string, custom.get("input"), "input")


def _objects(value: JsonValue) -> None:
    if not isinstance(value, list):
        raise Invalid("must be a list of objects")
    for index, item in enumerate(value):
        check_at(json_object, item, index)


def _thinking(value: JsonValue) -> None:
    """Check a text, or Mistral's list of texts."""
    if not isinstance(value, str):
        _objects(value)


# Content parts whose payload dialects read, by type; each dialect takes or refuses other types.
_PARTS: Mapping[str, tuple[str, Check]] = {
    "text": ("text", string),
    "input_text": ("text", string),
    "output_text": ("text", string),
    "refusal": ("refusal", string),
    "image_url": ("image_url", _image_url),
    "input_audio": ("input_audio", json_object),
    "file": ("file", json_object),
    "video_url": ("video_url", _image_url),
    "thinking": ("thinking", _thinking),
    "redacted_thinking": ("data", string),
}

# Parts of which one member has the payload.
_HELD: Mapping[str, Mapping[str, Check]] = {
    "input_image": {"image_url": _image_url, "file_id": text},
    "input_file": {"file_data": text, "file_url": text, "file_id": text},
}

_CALL: Mapping[str, Check] = {"extra_content": json_object, "cache_control": json_object}

_MESSAGE: Mapping[str, Check] = {
    "name": string,
    "refusal": string,
    "reasoning_content": string,
    "reasoning": string,
    "tool_call_id": string,
    "tool_calls": _tool_calls,
    "function_call": _function_call,
    "reasoning_details": _objects,
    "thinking_blocks": _objects,
    "cache_control": json_object,
    "extra_content": json_object,
    "is_error": boolean,
}
