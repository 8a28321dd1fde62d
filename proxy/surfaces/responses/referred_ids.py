"""Finds what a Responses body refers to by id, before it is parsed.

Source: OpenAI OpenAPI 2.3.0 `CreateResponse.previous_response_id`, `ItemReferenceParam`, November 2026.
"""

from proxy.surfaces.request.parse_json import InvalidJson, decode
from proxy.surfaces.surface import ReferredIds

MAX_ID_LENGTH = 128
"""Characters; ours have 56 at most, OpenAI's 64. A longer one was never given out."""

MAX_REFERENCES = 1024
"""Items of one body that are looked up; the AI SDK sends one for each item of the answers so far."""

REFERENCE = "item_reference"

_NONE = ReferredIds()


def referred_ids(body: bytes) -> ReferredIds:
    """Return the ids that a body refers to, each once, in order; none for a body that is no JSON object."""
    if b"previous_response_id" not in body and b"item_reference" not in body:
        return _NONE
    try:
        data = decode(body)
    except InvalidJson:
        return _NONE
    previous, items = data.get("previous_response_id"), data.get("input")
    listed = items if isinstance(items, list) else ()
    named = [item.get("id") for item in listed if isinstance(item, dict) and item.get("type") == REFERENCE]
    known = dict.fromkeys(name for name in named if isinstance(name, str) and is_id(name))
    return ReferredIds(
        previous if isinstance(previous, str) and is_id(previous) else None, tuple(known)[:MAX_REFERENCES]
    )


def is_id(text: str) -> bool:
    """Return whether a text can be the id of anything that is stored."""
    return 0 < len(text) <= MAX_ID_LENGTH and text.isascii() and text.isprintable()
