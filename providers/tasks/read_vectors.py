"""Reads the vectors of vendors' answers within bounds, from JSON numbers or base64, and nothing that is no vector."""

import base64
import binascii
import math
import sys
from array import array
from collections.abc import Iterable
from typing import cast

from providers.dialects.shared.read_json import malformed
from providers.json_types import JsonObject, JsonValue
from providers.tasks.embeddings import Vector

MOST_NUMBERS = 2**23
"""Numbers of one answer: 2,048 vectors of 4,096. As doubles they take 64 MB."""

_LARGEST = 3.4028234663852886e38
"""The largest single float; a larger double would become infinite in base64."""

_NUMBERS = frozenset({int, float})
_WIDTH = 4


def read_vectors(values: Iterable[JsonValue]) -> tuple[Vector, ...]:
    """Return the vectors, each a list of numbers or base64. Raises UpstreamError(MALFORMED)."""
    vectors: list[Vector] = []
    held = 0
    for value in values:
        vector = read_vector(value)
        held += len(vector)
        if held > MOST_NUMBERS:
            raise malformed("has more numbers than are read")
        vectors.append(vector)
    return tuple(vectors)


def read_vector(value: JsonValue) -> Vector:
    """Return one vector. Raises UpstreamError(MALFORMED) for an empty one, and for what is no finite number."""
    if isinstance(value, str):
        vector = _from_base64(value)
    elif isinstance(value, list) and _NUMBERS.issuperset(map(type, value)):
        vector = array("d", cast(list[float], value))
    else:
        raise malformed("has a vector that is no list of numbers")
    if not vector:
        raise malformed("has an empty vector")
    # A sum of single floats is finite as a double unless one of them is not.
    if not math.isfinite(sum(vector)) or max(vector) > _LARGEST or min(vector) < -_LARGEST:
        raise malformed("has a vector with a number that is not finite")
    return vector


def _from_base64(text: str) -> Vector:
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise malformed("has a vector that is no base64") from None
    if len(data) % _WIDTH:
        raise malformed("has a vector whose base64 is no list of single floats")
    vector = array("f", data)
    if sys.byteorder == "big":
        vector.byteswap()
    return vector


def write_base64(vector: Vector) -> str:
    """Return a vector as the base64 of little-endian single floats, as OpenAI writes it."""
    single = vector if vector.typecode == "f" else array("f", vector)
    if sys.byteorder == "big":
        single = array("f", single)
        single.byteswap()
    return base64.b64encode(single.tobytes()).decode("ascii")


def listed(holder: JsonObject, name: str) -> list[JsonValue]:
    """Return a member that must be a list. Raises UpstreamError(MALFORMED)."""
    value = holder.get(name)
    if not isinstance(value, list):
        raise malformed(f"has no list {name!r}")
    return value
