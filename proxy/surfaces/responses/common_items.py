"""Reads an input with only the commonest items in one pass: texts, calls of functions and of custom tools, their
results as texts, and reasoning that OpenAI encrypted.

Such an input needs no correction, and its conversation can be created later or never: a vendor with the same API gets
the items themselves. Any other input is read by `resolve_input`, `ConversationReader` and `native_items`, which find
every problem and its path. Both readers return the same result for each input that this one accepts.
"""

from collections.abc import Callable, Mapping
from typing import Final, cast

from providers.frozen_record import frozen
from providers.json_types import JsonObject, JsonValue
from providers.unified_request import PLAIN_ROLES
from proxy.surfaces.request.chat_messages import MAX_MESSAGES
from proxy.surfaces.request.parse_json import MAX_ELEMENTS, has_too_many_elements
from proxy.surfaces.responses.input_items import REASONING, ROLES, is_own_id
from proxy.surfaces.thinking_envelope import is_sealed

_MESSAGE: Final = "message"
_ARGUMENT_FIELDS: Final = {"function_call": "arguments", "custom_tool_call": "input"}
"""The fields with the arguments of calls, by the types of their items."""

_TEXTS: Final = frozenset({"input_text", "output_text", "text"})
_EMPTY_FIELDS: Final = frozenset({"annotations", "logprobs"})
"""Fields of a text of the model that have no effect if they are empty lists."""

_FULL_READER_FIELDS: Final = frozenset(
    {"extra_content", "namespace", "created_by", "parsed", "parsed_arguments", "role", "encrypted_content"}
)
"""Fields that an item may have besides the required ones, and that the full reader reads or leaves out."""


@frozen
class CommonInput:
    """The items of an input, each with its type, and `native`, the list of them in OpenAI's form.

    `plain` and `without_parts` have the same meaning as in ChatPrompt. `reasons` is true if at least one item is
    reasoning.
    """

    items: tuple[JsonObject, ...]
    native: list[JsonValue]
    plain: bool
    without_parts: bool
    reasons: bool


def common_input(given: JsonValue, instructed: bool) -> CommonInput | None:
    """Return an input that has only the commonest items; `None` at the first item of another kind. `instructed` is true
    if the request also has instructions."""
    if type(given) is not list or not 0 < len(given) < MAX_MESSAGES:
        return None
    typed: dict[int, JsonValue] = {}
    fitted: dict[int, JsonValue] = {}
    turn_texts, without_parts = 0, True
    for index, item in enumerate(given):
        if type(item) is not dict:
            return None
        kind = item.get("type")
        if kind is None and "type" not in item:
            kind = _MESSAGE
            typed[index] = item = {**item, "type": kind}
        rule = _RULES.get(kind) if type(kind) is str else None
        if kind == _MESSAGE and item.get("role") == "assistant":
            rule = _OF_MODEL
        if rule is None or (texts := rule.texts(item)) < 0:
            return None
        # All texts and calls of the model before the next item of another role form one message.
        turn_texts = turn_texts + texts if rule.of_model else 0
        if turn_texts > 1 or texts > 1:
            without_parts = False
        if len(item) != rule.fields and (fit := _in_openai_form(item, rule)) is not item:
            if fit is None:
                return None
            fitted[index] = fit
    items = _replaced(given, typed)
    return _checked_input(cast(list[JsonObject], items), _replaced(items, fitted), without_parts, instructed)


def _checked_input(
    items: list[JsonObject], native: list[JsonValue], without_parts: bool, instructed: bool
) -> CommonInput | None:
    """Return the input; `None` if its calls have too many arguments, or if it has no messages."""
    kinds = [item["type"] for item in items]
    reasoning = kinds.count(REASONING)
    if reasoning == len(items) and not instructed:
        return None
    arguments = [str(item[_ARGUMENT_FIELDS[item["type"]]]) for item in items if item["type"] in _ARGUMENT_FIELDS]
    if sum(map(len, arguments)) > MAX_ELEMENTS and has_too_many_elements("".join(arguments).encode(errors="replace")):
        return None
    plain = without_parts and _are_plain(items)
    return CommonInput(tuple(items), native, plain, without_parts, reasoning > 0)


def _are_plain(items: list[JsonObject]) -> bool:
    """Return whether the items are only plain messages and reasoning; each message has one text."""
    for item in items:
        kind = item["type"]
        if kind == _MESSAGE:
            if item["role"] not in PLAIN_ROLES:
                return False
        elif kind != REASONING:
            return False
    return True


def _replaced(items: list[JsonValue], replacements: Mapping[int, JsonValue]) -> list[JsonValue]:
    """Return the items with the items of `replacements` at their indexes; the unchanged list if there are no
    replacements."""
    if not replacements:
        return items
    copy = [*items]
    for index, item in replacements.items():
        copy[index] = item
    return copy


def _in_openai_form(item: JsonObject, rule: "_Rule") -> JsonObject | None:
    """Return an item with more than the required fields in OpenAI's form; `None` if one of its fields needs the full
    reader."""
    if None in item.values():
        item = {name: value for name, value in item.items() if value is not None}
    if not item.keys().isdisjoint(rule.read):
        return None
    if "id" in item and is_own_id(item["id"]):
        return {name: value for name, value in item.items() if name != "id"}
    return item


# Kinds of items -------------------------------------------------------------------------------------------------------


@frozen
class _Rule:
    """The rule for a kind of items. `texts` returns the number of texts in an item; the number is negative if the item
    is not a common one. `fields` is the number of fields that `texts` checks, and `read` are further fields that the
    full reader reads. `of_model` is true if the model makes such items."""

    texts: Callable[[JsonObject], int]
    fields: int
    read: frozenset[str]
    of_model: bool


def _message(item: JsonObject) -> int:
    return _texts(item.get("content")) if item.get("role") in ROLES else -1


def _texts(content: JsonValue) -> int:
    """Return the number of texts in a content; the number is negative if the content has anything besides texts, or an
    empty text."""
    if type(content) is str:
        return 1 if content else -1
    if type(content) is not list or not content:
        return -1
    for part in content:
        if type(part) is not dict or type(text := part.get("text")) is not str or not text:
            return -1
        kind = part.get("type")
        if type(kind) is not str or kind not in _TEXTS or (len(part) > 2 and not _is_bare(part)):
            return -1
    return len(content)


def _is_bare(part: JsonObject) -> bool:
    """Return whether a part is a text of the model without further contents."""
    rest = [value == [] for name, value in part.items() if name in _EMPTY_FIELDS]
    return part["type"] == "output_text" and len(rest) == len(part) - 2 and all(rest)


def _function_call(item: JsonObject) -> int:
    return 0 if type(item.get("arguments")) is str and _is_called(item) else -1


def _custom_call(item: JsonObject) -> int:
    return 0 if type(item.get("input")) is str and _is_called(item) else -1


def _is_called(item: JsonObject) -> bool:
    identity, name = item.get("call_id"), item.get("name")
    return type(identity) is str and identity != "" and type(name) is str and name != ""


def _result(item: JsonObject) -> int:
    identity, output = item.get("call_id"), item.get("output")
    if type(identity) is not str or not identity:
        return -1
    return 1 if type(output) is str else _texts(output)


def _reasoning(item: JsonObject) -> int:
    sealed = item.get("encrypted_content")
    if type(sealed) is not str or not sealed or is_sealed(sealed):
        return -1
    return 0 if _are_parts(item.get("summary")) and _are_parts(item.get("content")) else -1


def _are_parts(value: JsonValue) -> bool:
    """Return whether a value is absent or a list of parts."""
    if type(value) is not list:
        return value is None
    return all([type(part) is dict and type(kind := part.get("type")) is str and kind != "" for part in value])


_RULES: Final[Mapping[str, _Rule]] = {
    _MESSAGE: _Rule(_message, 3, _FULL_READER_FIELDS - {"role"}, False),
    "function_call": _Rule(_function_call, 4, _FULL_READER_FIELDS, True),
    "custom_tool_call": _Rule(_custom_call, 4, _FULL_READER_FIELDS, True),
    "function_call_output": _Rule(_result, 3, _FULL_READER_FIELDS, False),
    "custom_tool_call_output": _Rule(_result, 3, _FULL_READER_FIELDS, False),
    REASONING: _Rule(_reasoning, 0, _FULL_READER_FIELDS - {"encrypted_content"}, True),
}
_OF_MODEL: Final = _Rule(_message, 3, _FULL_READER_FIELDS - {"role"}, True)
"""The rule for messages of the model."""
