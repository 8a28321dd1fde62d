"""How large the answer to a task's call may be, and its parsing: a hostile answer must cost no more than an honest one.

The whole of an answer is parsed at once, in which time nothing else runs.
"""

from collections.abc import Collection

import orjson

from providers.dialects.shared.read_json import load_json, malformed
from providers.json_types import JsonObject, JsonValue

_SPARE = 2**20
"""Bytes of an answer beside vectors and rankings: the vendor's own members."""

_PER_VECTOR = 2**18
"""Bytes of a vector: 8,192 numbers of 25 characters, with as much again for white space."""

_PER_DOCUMENT = 2**10
"""Bytes of a document's place and score."""

_ESCAPED = 3
"""How much longer a text may come back: two bytes of UTF-8 as an escape of six."""

_SPARE_MEMBERS, _PER_INPUT = 1000, 16
"""Objects and lists of an answer: beside the inputs, and for each of them."""


def most_of_vectors(inputs: int) -> int:
    """Return how many bytes the vectors of so many inputs may have, as numbers or base64."""
    return _SPARE + inputs * _PER_VECTOR


def most_of_ranking(documents: Collection[str], asked: bytes) -> int:
    """Return how many bytes a ranking may have, with the documents of the call's body."""
    return _SPARE + len(documents) * _PER_DOCUMENT + _ESCAPED * len(asked)


def check_members(asked: bytes, answer: bytes, inputs: int) -> None:
    """Raise UpstreamError for an answer with far more objects and lists than so many inputs ask for: half a million
    vectors fit into 24 MB. The texts of a call, which may come back, have brackets too."""
    found = answer.count(b"{") + answer.count(b"[")
    if found > _SPARE_MEMBERS and found > _SPARE_MEMBERS + _PER_INPUT * inputs + asked.count(b"{") + asked.count(b"["):
        raise malformed("has more members than were asked for")


def parse_strictly(body: bytes) -> JsonValue:
    """Parse an answer that quotes no text of a model's, so that nothing in it needs mending. Raises
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
