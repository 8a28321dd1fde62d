"""The items of a Responses request: checked, with references resolved, and including the items of the responses that
the request continues.

Sources: OpenAI OpenAPI 2.3.0 `InputItem`, `EasyInputMessage`, `CreateResponse.previous_response_id`,
`ItemReferenceParam`; openai 3.54.0 `types/responses`; bodies of the AI SDK's tool loop and of Codex CLI 0.169.0,
measured in November 2026.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from providers.json_types import JsonObject, JsonValue
from proxy.errors import ErrorFacts, FieldProblem, GatewayError, invalid_request
from proxy.surfaces.request.parse_json import InvalidJson, decode
from proxy.surfaces.request.rule_kinds import Check, Invalid, check_at, json_object, string, text
from proxy.surfaces.responses.request_draft import ResponsesDraft
from proxy.surfaces.surface import ReferredIds, RequestContext

MAX_ITEMS: Final = 8192
"""The most items of a whole conversation, including items of stored responses. Each turn with a call adds three
items."""

MAX_ID_LENGTH: Final = 128
"""The most characters of an id. The gateway's ids have at most 56, and OpenAI's have 64, so no client ever received a
longer id."""

MAX_REFERENCES: Final = 1024
"""The most items of one body that are looked up. The AI SDK sends one reference for each item of the responses so
far."""

REFERENCE: Final = "item_reference"

REASONING: Final = "reasoning"

ROLES: Final = ("user", "assistant", "system", "developer")

_OURS: Final = re.compile(r"[a-z]{2,5}_[0-9a-zA-Z-]+_[a-z]?[0-9]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class ResolvedInput:
    """The items of a request. `own` are the items of its body, with references resolved; `whole` also has the items
    before them."""

    own: tuple[JsonObject, ...]
    whole: tuple[JsonObject, ...]


def resolve_input(draft: ResponsesDraft, context: RequestContext) -> ResolvedInput:
    """Return the items of a request. Raises GatewayError for a reference to an item or response that is not stored, and
    Invalid for invalid items."""
    previous = draft.data.get("previous_response_id")
    chain = context.chain if isinstance(previous, str) else ()
    if isinstance(previous, str) and (not chain or chain[-1].id != previous):
        raise previous_not_found(previous)
    own = tuple(_resolved(draft, _checked(draft.data.get("input")), context.items))
    before = [item for each in chain for item in (*each.input, *_output(each.response))]
    if len(before) + len(own) > MAX_ITEMS:
        raise Invalid(f"may hold at most {MAX_ITEMS} items, including the items of the responses before it")
    return ResolvedInput(own, (*before, *own))


def previous_not_found(previous: str) -> GatewayError:
    """Return the error for a response that is not stored, or is another team's."""
    message = f"Previous response with id '{previous[:128]}' not found."
    return invalid_request((FieldProblem(("previous_response_id",), message, "previous_response_not_found"),))


def with_ids(items: Iterable[JsonObject], unique: str) -> tuple[JsonObject, ...]:
    """Return items in the form in which they are stored: each has an id, its own or one made from its position."""
    return tuple(
        item if isinstance(item.get("id"), str) else {**item, "id": f"{_prefix(item)}_{unique}_i{position}"}
        for position, item in enumerate(items)
    )


def is_own_id(name: JsonValue) -> bool:
    """Return whether an id of an item may be an id of this gateway, which no vendor knows."""
    return isinstance(name, str) and _OURS.fullmatch(name) is not None


_PREFIXES: Mapping[str, str] = {
    "message": "msg",
    "reasoning": "rs",
    "function_call": "fc",
    "function_call_output": "fco",
    "custom_tool_call": "ctc",
    "custom_tool_call_output": "ctco",
    "local_shell_call": "lsh",
    "shell_call": "sh",
    "apply_patch_call": "apc",
    "tool_search_call": "tsc",
}


def _prefix(item: JsonObject) -> str:
    return _PREFIXES.get(str(item.get("type")), "item")


def _output(response: JsonObject) -> list[JsonObject]:
    output = response.get("output")
    return [item for item in output if isinstance(item, dict)] if isinstance(output, list) else []


def _checked(given: JsonValue) -> Iterator[JsonObject]:
    """Yield the items of `input`, each with its type. Raises Invalid."""
    if isinstance(given, str):
        yield {"type": "message", "role": "user", "content": [{"type": "input_text", "text": given}]}
        return
    if given is None:
        return
    if not isinstance(given, list):
        raise Invalid("must be a string or a list of items")
    if len(given) > MAX_ITEMS:
        raise Invalid(f"may hold at most {MAX_ITEMS} items")
    for index, item in enumerate(given):
        yield check_at(_item, item, index)


def _item(value: JsonValue) -> JsonObject:
    item = json_object(value)
    kind = item.get("type")
    if kind is None:
        if "role" not in item:
            raise Invalid("is required", "type")
        item = {**item, "type": "message"}
        kind = "message"
    rules = _ITEMS.get(check_at(text, kind, "type"))
    for name, check in (rules or {}).items():
        check_at(check, item.get(name), name)
    return item


def _role(value: JsonValue) -> None:
    if value not in ROLES:
        raise Invalid(f"must be one of {', '.join(repr(name) for name in ROLES)}")


def _content(value: JsonValue) -> None:
    """Check a text or a list of parts."""
    if isinstance(value, str):
        return
    if not isinstance(value, list):
        raise Invalid("must be a string or a list of parts")
    _parts(value)


def _parts(value: JsonValue) -> None:
    """Check a list of parts; null counts as an empty list."""
    if value is None:
        return
    if not isinstance(value, list):
        raise Invalid("must be a list of parts")
    for index, part in enumerate(value):
        check_at(text, check_at(json_object, part, index).get("type"), index, "type")


def _text_or_none(value: JsonValue) -> None:
    if value is not None:
        string(value)


_CALLED: Mapping[str, Check] = {"call_id": text, "name": text, "namespace": _text_or_none}
_IDENTIFIED: Mapping[str, Check] = {"call_id": text}
_ANSWERED: Mapping[str, Check] = {"call_id": text, "output": _content}

_ITEMS: Mapping[str, Mapping[str, Check]] = {
    "message": {"role": _role, "content": _content},
    "function_call": {**_CALLED, "arguments": string},
    "custom_tool_call": {**_CALLED, "input": string},
    "function_call_output": _ANSWERED,
    "custom_tool_call_output": _ANSWERED,
    **dict.fromkeys(("local_shell_call", "shell_call", "apply_patch_call"), _IDENTIFIED),
    **dict.fromkeys(("shell_call_output", "apply_patch_call_output"), _IDENTIFIED),
    REASONING: {"summary": _parts, "content": _parts, "encrypted_content": _text_or_none},
    REFERENCE: {"id": text},
}


def _resolved(
    draft: ResponsesDraft, items: Iterable[JsonObject], stored: Mapping[str, JsonObject]
) -> Iterator[JsonObject]:
    """Yield the items with references replaced by their items. Reasoning that is no longer stored is left out."""
    for item in items:
        if item["type"] != REFERENCE:
            yield item
            continue
        name = str(item["id"])
        found = stored.get(name)
        if found is not None:
            yield found
        elif name.startswith("rs_"):
            draft.left_out[REASONING] = draft.native_left_out[REASONING] = None
        else:
            raise _item_not_found(name)


def _item_not_found(name: str) -> GatewayError:
    """Return the error for a reference to an item that is not stored, or is another team's."""
    message = f"Item with id '{name[:128]}' not found; send the item itself."
    return GatewayError(ErrorFacts(404, "invalid_request_error", "item_not_found", message, "input"))


# References -----------------------------------------------------------------------------------------------------------

_NONE: Final = ReferredIds()


def referred_ids(body: bytes) -> ReferredIds:
    """Return the ids to which a body refers, each once, in order; empty for a body that is not a JSON object."""
    try:
        return ids_referred_to(decode(body))
    except InvalidJson:
        return _NONE


def ids_referred_to(data: Mapping[str, JsonValue]) -> ReferredIds:
    """Return the ids to which the fields of a body refer, each once, in order."""
    previous, items = data.get("previous_response_id"), data.get("input")
    listed = items if isinstance(items, list) else ()
    named = [item.get("id") for item in listed if isinstance(item, dict) and item.get("type") == REFERENCE]
    if previous is None and not named:
        return _NONE
    known = dict.fromkeys(name for name in named if isinstance(name, str) and is_id(name))
    return ReferredIds(
        previous if isinstance(previous, str) and is_id(previous) else None, tuple(known)[:MAX_REFERENCES]
    )


def is_id(text: str) -> bool:
    """Return whether a text can be the id of a stored object."""
    return 0 < len(text) <= MAX_ID_LENGTH and text.isascii() and text.isprintable()
