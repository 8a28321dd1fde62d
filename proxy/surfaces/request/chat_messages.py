"""Checks the parts of a conversation on which every dialect relies. Each dialect decides which parts its vendor
accepts.

Roles and fields: OpenAI OpenAPI 2.3.0 `ChatCompletionRequestMessage`.
"""

from collections.abc import Iterable, Iterator, Mapping

from providers.json_types import JsonObject, JsonValue
from providers.unified_request import PLAIN_ROLES, ChatPrompt
from proxy.surfaces.request.legacy_functions import modern
from proxy.surfaces.request.parse_json import MAX_ELEMENTS, has_too_many_elements
from proxy.surfaces.request.rule_kinds import Check, Invalid, boolean, check_at, json_object, string, text

MAX_MESSAGES = 4096
"""The most messages of a request, far more than a context window holds."""

ROLES = ("system", "developer", "user", "assistant", "tool", "function")
MAY_LACK_CONTENT = frozenset({"assistant", "function"})


def messages(value: JsonValue) -> ChatPrompt:
    """Check that each message has a known role and content of a known type. The message objects are returned
    unchanged."""
    if not isinstance(value, list) or not value:
        raise Invalid("must be a non-empty list of messages")
    if len(value) > MAX_MESSAGES:
        raise Invalid(f"may hold at most {MAX_MESSAGES} messages")
    others: list[JsonObject] = []
    usual, called = _check_each(value, others)
    checked: tuple[JsonObject, ...] = tuple(value)  # type: ignore[arg-type]  # all are objects
    if not (usual or others):
        return ChatPrompt(checked, True)
    older = [message for message in others if "function_call" in message or message["role"] == "function"]
    if called + sum(map(len, _all_arguments(others, older))) > MAX_ELEMENTS:
        _check_arguments(_all_arguments(checked, older))
    return ChatPrompt(modern(checked) if older else checked)


def _check_each(value: Iterable[JsonValue], others: list[JsonObject]) -> tuple[int, int]:
    """Check each message. Return the number of usual messages that are not plain texts, and the number of characters in
    the arguments of their calls. Messages that only `_message` can check are added to `others`.

    Nearly all messages are texts, results of tools, and turns that call functions, without further fields. Calling
    `_message` for them would cost five times as much as these tests of the same rules.
    """
    usual = characters = 0
    for index, item in enumerate(value):
        called: int | None = None
        if type(item) is dict and type(content := item.get("content")) is str:
            fields, role = len(item), item.get("role")
            if fields == 2 and content and role in PLAIN_ROLES:
                continue
            if fields == 3 and role == "tool" and type(item.get("tool_call_id")) is str:
                usual += 1
                continue
            if fields == 3 and role == "assistant":
                called = _called_in(item.get("tool_calls"))
        else:
            called = _called_without_text(item)
        if called is None:
            others.append(check_at(_message, item, index))
        else:
            usual, characters = usual + 1, characters + called
    return usual, characters


def _called_without_text(message: JsonValue) -> int | None:
    """Return the number of characters in calls, as `_called_in` does, for a message whose content is null or a list of
    text parts; `None` if it has other content or further fields."""
    if type(message) is not dict:
        return None
    content, role = message.get("content"), message.get("role")
    further = len(message) - ("content" in message) - 1
    if type(content) is list and _are_texts(content):
        if further == 0:
            return 0 if role in PLAIN_ROLES else None
        if further == 1 and role == "tool":
            return 0 if type(message.get("tool_call_id")) is str else None
    elif content is not None:
        return None
    return _called_in(message.get("tool_calls")) if further == 1 and role == "assistant" else None


def _are_texts(parts: Iterable[JsonValue]) -> bool:
    for part in parts:
        if type(part) is not dict or len(part) != 2 or part.get("type") != "text" or type(part.get("text")) is not str:
            return False
    return True


def _called_in(calls: JsonValue) -> int | None:
    """Return the number of characters in the arguments of calls; `None` unless all are calls of functions with only
    OpenAI's fields."""
    if type(calls) is not list:
        return None
    characters = 0
    for call in calls:
        if not (
            type(call) is dict
            and len(call) == 3
            and call.get("type") == "function"
            and type(call.get("id")) is str
            and type(function := call.get("function")) is dict
            and type(name := function.get("name")) is str
            and name
            and type(arguments := function.get("arguments")) is str
        ):
            return None
        characters += len(arguments)
    return characters


def _all_arguments(messages: Iterable[JsonObject], older: Iterable[JsonObject]) -> list[str]:
    """Return the arguments of the calls of messages. `older` are the messages with calls or results in the older form
    (`function_call`)."""
    texts = [text for message in messages if "tool_calls" in message for text in _arguments(message["tool_calls"])]
    return texts + [text for message in older for text in _arguments([{"function": message.get("function_call")}])]


def _check_arguments(texts: Iterable[str]) -> None:
    """Limit the number of JSON elements in the arguments of calls, because these strings do not count as elements of
    the body."""
    if has_too_many_elements("".join(texts).encode(errors="replace")):
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
        raise Invalid("is required", "name")  # such a result has no id, so only the name links it to its call
    if len(message) > 2 or content is None:
        _check_fields(message, _MESSAGE)
    return message


def _part(value: JsonValue) -> None:
    part = json_object(value)
    kind = check_at(text, part.get("type"), "type")
    rule = _PARTS.get(kind)
    if rule is not None:
        name, check = rule
        check_at(check, part.get(name), name)
    elif kind in _PAYLOAD_FIELDS:
        _check_fields(part, _PAYLOAD_FIELDS[kind])
        if not any(part.get(name) for name in _PAYLOAD_FIELDS[kind]):
            raise Invalid(f"must have {' or '.join(repr(name) for name in _PAYLOAD_FIELDS[kind])}")
    if (marker := part.get("cache_control")) is not None:
        check_at(json_object, marker, "cache_control")


def _check_fields(holder: JsonObject, rules: Mapping[str, Check]) -> None:
    for name, field_value in holder.items():
        check = rules.get(name)
        if check is not None and field_value is not None:
            check_at(check, field_value, name)


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
        _check_fields(call, _CALL)


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


# The checks of content parts whose payload dialects read, by type. Each dialect accepts or refuses other types.
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

# Parts whose payload is in one of several fields.
_PAYLOAD_FIELDS: Mapping[str, Mapping[str, Check]] = {
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
