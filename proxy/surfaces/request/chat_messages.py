"""Checks a conversation as deeply as every dialect relies on; which parts a vendor takes is its dialect's matter.

Roles and members: OpenAI OpenAPI 2.3.0 `ChatCompletionRequestMessage`.
"""

from collections.abc import Iterable, Iterator, Mapping

from providers.json_types import JsonObject, JsonValue
from providers.unified_request import ChatPrompt
from proxy.surfaces.request.parse_json import MAX_ELEMENTS, has_too_many_elements
from proxy.surfaces.request.rule_kinds import Check, Invalid, check_at, json_object, string, text

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
    checked = tuple([check_at(_message, item, index) for index, item in enumerate(value)])
    _check_arguments(checked)
    return ChatPrompt(checked)


def _check_arguments(messages: Iterable[JsonObject]) -> None:
    """Limit the JSON elements in arguments of tool calls: those strings do not count as elements of the body."""
    texts = [text for message in messages if "tool_calls" in message for text in _arguments(message["tool_calls"])]
    if sum(map(len, texts)) > MAX_ELEMENTS and has_too_many_elements("".join(texts).encode(errors="replace")):
        raise Invalid(f"may hold at most {MAX_ELEMENTS} JSON elements in the arguments of all calls together")


def _arguments(calls: JsonValue) -> Iterator[str]:
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        arguments = function.get("arguments") if isinstance(function, dict) else None
        if isinstance(arguments, str):
            yield arguments


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
    if len(message) > 2:
        _members(message, _MESSAGE)
    return message


def _part(value: JsonValue) -> None:
    part = json_object(value)
    kind = check_at(text, part.get("type"), "type")
    rule = _PARTS.get(kind)
    if rule is not None:
        name, check = rule
        check_at(check, part.get(name), name)


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
    if call.get("type", "function") == "function":
        check_at(_function_call, call.get("function"), "function")


def _function_call(value: JsonValue) -> None:
    function = json_object(value)
    check_at(text, function.get("name"), "name")
    check_at(string, function.get("arguments"), "arguments")


# Content parts whose payload dialects read, by type; each dialect takes or refuses other types.
_PARTS: Mapping[str, tuple[str, Check]] = {
    "text": ("text", string),
    "refusal": ("refusal", string),
    "image_url": ("image_url", _image_url),
    "input_audio": ("input_audio", json_object),
    "file": ("file", json_object),
}

_MESSAGE: Mapping[str, Check] = {
    "name": string,
    "refusal": string,
    "reasoning_content": string,
    "reasoning": string,
    "tool_call_id": string,
    "tool_calls": _tool_calls,
    "function_call": _function_call,
}
