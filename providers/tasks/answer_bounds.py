"""Limits the size of the response to a task's call, and parses it. A hostile response must not cost more than an honest
one.

A response is parsed at once, which blocks the event loop.
"""

from collections.abc import Collection

import orjson

from providers.dialects.shared.read_json import load_json, malformed
from providers.json_types import JsonObject, JsonValue

_VENDOR_FIELD_BYTES = 2**20
"""The most bytes of a response in addition to vectors and rankings, for the vendor's own fields."""

_BYTES_PER_VECTOR = 2**18
"""The most bytes of a vector: 8,192 numbers of 25 characters, and about as many bytes for white space."""

_BYTES_PER_DOCUMENT = 2**10
"""The most bytes of a document's index and score."""

_ESCAPE_GROWTH = 3
"""The factor by which a text may be longer in a response: two bytes of UTF-8 may become an escape of six bytes."""

_VALUES_PER_RESPONSE, _VALUES_PER_INPUT = 1000, 16
"""The most objects and lists of a response: the number for the response itself, and the additional number per input."""


def most_of_vectors(inputs: int) -> int:
    """Return the most bytes of a response with the vectors of `inputs` inputs, as numbers or base64."""
    return _VENDOR_FIELD_BYTES + inputs * _BYTES_PER_VECTOR


def most_of_ranking(documents: Collection[str], call_body: bytes) -> int:
    """Return the most bytes of a ranking, which may repeat the documents of the call's body."""
    return _VENDOR_FIELD_BYTES + len(documents) * _BYTES_PER_DOCUMENT + _ESCAPE_GROWTH * len(call_body)


def check_members(call_body: bytes, answer: bytes, inputs: int) -> None:
    """Raise UpstreamError if a response has far more objects and lists than `inputs` inputs justify: half a million
    vectors fit into 24 MB. Brackets of the call's body are added to the limit, since a response may repeat its
    texts."""
    found = answer.count(b"{") + answer.count(b"[")
    if found <= _VALUES_PER_RESPONSE:
        return
    if found > _VALUES_PER_RESPONSE + _VALUES_PER_INPUT * inputs + call_body.count(b"{") + call_body.count(b"["):
        raise malformed("has more values than were requested")


def parse_strictly(body: bytes) -> JsonValue:
    """Parse a response that holds no text of a model, so that it needs no lenient parsing. Raises
    UpstreamError(MALFORMED)."""
    try:
        return load_json(body)
    except orjson.JSONDecodeError:
        raise malformed("is not valid JSON") from None


def strict_object(body: bytes) -> JsonObject:
    """Parse a JSON object. Raises UpstreamError(MALFORMED)."""
    answer = parse_strictly(body)
    if not isinstance(answer, dict):
        raise malformed("is not a JSON object")
    return answer
