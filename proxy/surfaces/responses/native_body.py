"""Builds the body of a Responses request that goes to OpenAI's own API.

It is the client's body, with two differences. It refers to nothing that only this gateway stores: the conversation is
written out, and ids of this gateway's items are left out. And it has no field of the gateway itself.

Sources: OpenAI OpenAPI 2.3.0 `CreateResponse`, `ResponseStreamOptions`, November 2026.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from providers.json_types import JsonObject, JsonValue
from providers.request_fields import is_neutral
from providers.unified_request import NativeApi, NativeRequest
from proxy.surfaces.request.rule_kinds import Check
from proxy.surfaces.responses.input_items import REASONING, is_own_id
from proxy.surfaces.responses.request_draft import ResponsesDraft
from proxy.surfaces.thinking_envelope import is_sealed

_GATEWAY_FIELDS: Final = frozenset({"previous_response_id", "inference_timeout"})
"""Fields that the gateway honours itself."""

_OVERFLOW_FIELD: Final = "context_length_exceeded_behavior"

_GATEWAY_ITEM_FIELDS: Final = frozenset({"extra_content"})
"""Fields of items that only this gateway writes. In messages, `encrypted_content` is another such field."""

_RESPONSE_ONLY_FIELDS: Final = frozenset({"created_by", "parsed", "parsed_arguments"})
"""Fields that OpenAI's client has in the items of responses and in their parts, and that the vendor refuses in
requests: "Unknown parameter: 'input[1].content[0].parsed'"."""


def native_request(
    draft: ResponsesDraft, items: Iterable[JsonValue], own: frozenset[str], unified: Mapping[str, Check]
) -> NativeRequest | None:
    """Return the request in OpenAI's form; `None` if it has a field that only the unified request can express.

    `items` are the items of the whole conversation in OpenAI's form, `own` the fields of the API, `unified` the fields
    that the API does not have.
    """
    body: JsonObject = {}
    for name, value in draft.data.items():
        if name in own or name not in unified:
            if name not in _GATEWAY_FIELDS and name not in draft.native_left_out:
                body[name] = value
        elif not (value is None or is_neutral(name, value) or (name, value) == (_OVERFLOW_FIELD, "error")):
            return None
    if not isinstance(draft.data.get("input"), str) or draft.data.get("previous_response_id") is not None:
        body["input"] = items if isinstance(items, list) else [*items]
    if draft.data.get("stream") is True:
        options = draft.data.get("stream_options")
        obfuscated = isinstance(options, dict) and options.get("include_obfuscation") is True
        body["stream_options"] = {"include_obfuscation": obfuscated}
    else:
        body.pop("stream_options", None)
    return NativeRequest(NativeApi.RESPONSES, body)


def native_items(draft: ResponsesDraft, whole: Iterable[JsonObject]) -> Iterator[JsonValue]:
    """Yield items in OpenAI's form. Reasoning of another vendor is left out, because OpenAI cannot read it."""
    for item in whole:
        is_own = is_own_id(item.get("id"))
        if item.get("type") == REASONING:
            sealed = item.get("encrypted_content")
            if (isinstance(sealed, str) and is_sealed(sealed)) or (is_own and not sealed):
                draft.native_left_out[REASONING] = None
                continue
        foreign = _GATEWAY_ITEM_FIELDS | {"id"} if is_own else _GATEWAY_ITEM_FIELDS
        if item.get("type") == "message":
            foreign |= {"encrypted_content"}
        yield _without_response_only_fields(_without(item, foreign | _RESPONSE_ONLY_FIELDS))


def _without(holder: JsonObject, names: frozenset[str]) -> JsonObject:
    """Return an object without some fields and without nulls. The vendor refuses null in most fields: "Invalid type for
    'input[1].content': expected an array of objects, but got null instead"."""
    if holder.keys().isdisjoint(names) and None not in holder.values():
        return holder
    return {name: value for name, value in holder.items() if name not in names and value is not None}


def _without_response_only_fields(item: JsonObject) -> JsonObject:
    """Return an item. If it is a message of the model, its parts get the form that the vendor accepts."""
    content = item.get("content")
    if item.get("role") != "assistant" or not isinstance(content, list):
        return item
    return {
        **item,
        "content": [_without(part, _RESPONSE_ONLY_FIELDS) if isinstance(part, dict) else part for part in content],
    }
