"""The vectors in vendors' responses, valid and hostile, and their base64 form."""

import base64
import struct
from array import array

import pytest

from providers.failure import FailureKind, UpstreamError
from providers.json_types import JsonObject, JsonValue
from providers.tasks import read_vectors
from providers.tasks.read_vectors import listed, read_vector, write_base64
from tests.providers.kit import failure_of
from tests.support.looped import looped


def _base64(*values: float) -> str:
    return base64.b64encode(struct.pack(f"<{len(values)}f", *values)).decode()


def _refused(value: JsonValue) -> str:
    failure = failure_of(read_vector, value)
    assert failure.kind is FailureKind.MALFORMED
    return failure.message


def test_numbers_stay_the_doubles_that_the_vendor_wrote() -> None:
    assert [*read_vector([0.1, -2, 3e-7])] == [0.1, -2.0, 3e-7]


def test_base64_is_little_endian_single_floats() -> None:
    assert [*read_vector(_base64(0.5, -2.0))] == [0.5, -2.0]


def test_numbers_are_written_as_the_base64_that_openai_writes() -> None:
    assert write_base64(array("d", [0.1, -2.0])) == _base64(0.1, -2.0)
    assert write_base64(array("f", [0.1, -2.0])) == _base64(0.1, -2.0)


def test_base64_that_was_read_is_written_as_it_was() -> None:
    text = _base64(0.1, 1e-30, -3.25)
    assert write_base64(read_vector(text)) == text


@looped(
    "value",
    [
        *(None, 3, {}, [], "", [[0.1]], [None], ["0.1"], [True, 0.1], [{}]),
        *("AAA", "AAAA", "====", "not base64", "AAAAgA==AAAA"),
        *([1e39], [-1e300, 1.0], [1e308, 1e308]),
    ],
)
def test_what_is_no_vector_is_no_answer(value: JsonValue) -> None:
    _refused(value)


@looped("bits", ["0000c07f", "0000807f", "000080ff"])
def test_base64_may_hold_neither_infinity_nor_what_is_no_number(bits: str) -> None:
    text = base64.b64encode(struct.pack("<f", 1.0) + bytes.fromhex(bits)).decode()
    assert "not finite" in _refused(text)


def test_an_answer_with_too_many_numbers_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_vectors, "MOST_NUMBERS", 4)
    read = 0

    def endless() -> JsonValue:
        nonlocal read
        read += 1
        return [1.0, 2.0]

    with pytest.raises(UpstreamError, match="malformed"):
        read_vectors.read_vectors(endless() for _ in range(100))
    assert read == 3


def test_a_list_is_a_list() -> None:
    assert listed({"a": [1]}, "a") == [1]
    holders: list[JsonObject] = [{}, {"a": {}}, {"a": None}]
    for holder in holders:
        with pytest.raises(UpstreamError):
            listed(holder, "a")
