"""The wire format, read by protobuf's own types."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.common.v1.common_pb2 import AnyValue

from proxy.tracing.protobuf_wire import LIMIT, SMALL, field, varint
from tests.support.looped import looped

pytestmark = pytest.mark.smoke


@looped("value", [0, 127, 128, 2047, 2048, 2**63 - 1, -1, -(2**63)])
def test_numbers_of_every_size_read_as_they_were_written(value: int) -> None:
    assert AnyValue.FromString(b"\x18" + varint(value)).int_value == value


@looped(("value", "written"), [(0, "00"), (127, "7f"), (128, "8001"), (2047, "ff0f"), (2048, "8010")])
def test_numbers_are_seven_bits_a_byte(value: int, written: str) -> None:
    assert varint(value).hex() == written


def test_the_small_ones_are_the_same() -> None:
    assert [*SMALL] == [varint(value) for value in range(LIMIT)]


@given(st.integers(0, 3 * LIMIT))
def test_bodies_of_every_length_do(size: int) -> None:
    assert AnyValue.FromString(field(b"\x0a", b"x" * size)).string_value == "x" * size
