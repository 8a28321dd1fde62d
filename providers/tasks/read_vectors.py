"""Reads the vectors in vendors' responses, from JSON numbers or base64, within limits of size, and refuses malformed
vectors."""

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
"""The most numbers of one response: 2,048 vectors of 4,096 numbers. As doubles they take 64 MB."""

_LARGEST = 3.4028234663852886e38
"""The largest single float. A larger double would become infinite in base64."""

_NUMBERS = frozenset({int, float})
_FLOAT_BYTES = 4


def read_vectors(values: Iterable[JsonValue]) -> tuple[Vector, ...]:
    """Return the vectors, each a list of numbers or base64. Raises UpstreamError(MALFORMED)."""
    vectors: list[Vector] = []
    count = 0
    for value in values:
        vector = read_vector(value)
        count += len(vector)
        if count > MOST_NUMBERS:
            raise malformed("has more numbers than are read")
        vectors.append(vector)
    return tuple(vectors)


def read_vector(value: JsonValue) -> Vector:
    """Return one vector. Raises UpstreamError(MALFORMED) if it is empty or has anything but finite numbers."""
    if isinstance(value, str):
        vector = _from_base64(value)
    elif isinstance(value, list) and _NUMBERS.issuperset(map(type, value)):
        vector = array("d", cast(list[float], value))
    else:
        raise malformed("has a vector that is not a list of numbers")
    if not vector:
        raise malformed("has an empty vector")
    # The sum of single floats is finite as a double if all of them are finite.
    if not math.isfinite(sum(vector)) or max(vector) > _LARGEST or min(vector) < -_LARGEST:
        raise malformed("has a vector with a number that is not finite")
    return vector


def _from_base64(text: str) -> Vector:
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise malformed("has a vector that is not base64") from None
    if len(data) % _FLOAT_BYTES:
        raise malformed("has a vector whose base64 is not a list of single floats")
    vector = array("f", data)
    if sys.byteorder == "big":
        vector.byteswap()
    return vector


def write_base64(vector: Vector) -> str:
    """Return a vector as the base64 of little-endian single floats, which is OpenAI's form."""
    single = vector if vector.typecode == "f" else array("f", vector)
    if sys.byteorder == "big":
        single = array("f", single)
        single.byteswap()
    return base64.b64encode(single.tobytes()).decode("ascii")


def listed(holder: JsonObject, name: str) -> list[JsonValue]:
    """Return the value of a field that must be a list. Raises UpstreamError(MALFORMED)."""
    value = holder.get(name)
    if not isinstance(value, list):
        raise malformed(f"has no list {name!r}")
    return value
