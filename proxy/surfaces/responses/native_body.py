"""Makes the body with which a Responses request goes on to OpenAI's own API.

It is the client's, with two differences. It refers to nothing that only this gateway stores: the conversation is
written out, and ids of this gateway's items are left out. And it holds no fields of the gateway's own.

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

_GATEWAYS: Final = frozenset({"previous_response_id", "inference_timeout"})
"""Fields that the gateway honours itself."""

_WINDOW: Final = "context_length_exceeded_behavior"

_OWN_MEMBERS: Final = frozenset({"extra_content"})
"""Fields of items that only this gateway writes; in messages also `encrypted_content`."""

_RESPONSES_OWN: Final = frozenset({"created_by", "parsed", "parsed_arguments"})
"""Fields of items and of their parts that OpenAI's client has in responses, and that the vendor refuses to get back:
"Unknown parameter: 'input[1].content[0].parsed'"."""


def native_request(
    draft: ResponsesDraft, items: Iterable[JsonValue], own: frozenset[str], unified: Mapping[str, Check]
) -> NativeRequest | None:
    """Return the request in OpenAI's form; `None` if it says something that only the unified request can.

    `items` are those of the whole conversation as OpenAI takes them, `own` the fields of the API, `unified` those that
    it does not have.
    """
    body: JsonObject = {}
    for name, value in draft.data.items():
        if name in own or name not in unified:
            if name not in _GATEWAYS and name not in draft.native_left_out:
                body[name] = value
        elif not (value is None or is_neutral(name, value) or (name, value) == (_WINDOW, "error")):
            return None
    if not isinstance(draft.data.get("input"), str) or draft.data.get("previous_response_id") is not None:
        body["input"] = items if isinstance(items, list) else [*items]
    if draft.data.get("stream") is True:
        options = draft.data.get("stream_options")
        wanted = isinstance(options, dict) and options.get("include_obfuscation") is True
        body["stream_options"] = {"include_obfuscation": wanted}
    else:
        body.pop("stream_options", None)
    return NativeRequest(NativeApi.RESPONSES, body)


def native_items(draft: ResponsesDraft, whole: Iterable[JsonObject]) -> Iterator[JsonValue]:
    """Yield items as OpenAI takes them. What another vendor thought says nothing to it: it is left out."""
    for item in whole:
        ours = is_own_id(item.get("id"))
        if item.get("type") == REASONING:
            sealed = item.get("encrypted_content")
            if (isinstance(sealed, str) and is_sealed(sealed)) or (ours and not sealed):
                draft.native_left_out[REASONING] = None
                continue
        foreign = _OWN_MEMBERS | {"id"} if ours else _OWN_MEMBERS
        if item.get("type") == "message":
            foreign |= {"encrypted_content"}
        yield _without_parts_own(_without(item, foreign | _RESPONSES_OWN))


def _without(holder: JsonObject, names: frozenset[str]) -> JsonObject:
    """Return an object without some fields and without nulls, which the vendor refuses in most: "Invalid type for
    'input[1].content': expected an array of objects, but got null instead"."""
    if holder.keys().isdisjoint(names) and None not in holder.values():
        return holder
    return {name: value for name, value in holder.items() if name not in names and value is not None}


def _without_parts_own(item: JsonObject) -> JsonObject:
    """Return an item with the parts of a message of the model as the vendor takes them back."""
    content = item.get("content")
    if item.get("role") != "assistant" or not isinstance(content, list):
        return item
    return {**item, "content": [_without(part, _RESPONSES_OWN) if isinstance(part, dict) else part for part in content]}
