"""A container's stream read from SageMaker's frames."""

from hypothesis import given
from hypothesis import strategies as st

from providers.dialects.sagemaker.container_stream import container_bytes
from providers.failure import FailureKind
from providers.framing.parse_aws_eventstream import encode
from tests.providers.dialects.kit import (
    SIZES,
    check_cuts,
    check_pieces,
    names_in,
    reader,
    sent_for,
    stream_failure,
    target_of,
    text_of,
    text_request,
)
from tests.providers.kit import failure_of
from tests.support.looped import looped

frames = reader("sagemaker", "frames", "bin")

SENT = sent_for(text_request("The sky"), target_of("sagemaker_tgi", base_url="https://host"))
PART = {":event-type": "PayloadPart", ":message-type": "event"}
BROKEN = {
    "error_model": (" is blue", FailureKind.SERVER),
    "error_slow": ("", FailureKind.TIMEOUT),
    "error_internal": ("", FailureKind.SERVER),
    "error_headers": ("", FailureKind.SERVER),
}


def test_the_fixtures_are_all_here() -> None:
    assert names_in("sagemaker", "frames") == sorted(f"{name}.bin" for name in (*BROKEN, "openai", "tgi"))


@given(st.binary(max_size=200), st.integers(1, 50))
def test_parts_are_joined_as_they_are(data: bytes, size: int) -> None:
    cut = b"".join(encode(PART, data[start : start + size]) for start in range(0, len(data), size))
    assert container_bytes(cut) == data


def test_other_events_are_passed_over() -> None:
    assert container_bytes(encode({**PART, ":event-type": "News"}, b"x") + encode(PART, b"a")) == b"a"


def test_the_events_are_the_same_whatever_the_pieces() -> None:
    check_pieces(SENT, frames("tgi"))


def test_a_stream_cut_at_any_byte_is_never_a_success() -> None:
    check_cuts(SENT, frames("tgi"), len(frames("tgi")))


@looped("size", SIZES)
@looped("name", BROKEN)
def test_a_frame_that_tells_a_failure_ends_the_stream(name: str, size: int) -> None:
    text, kind = BROKEN[name]
    events, error = stream_failure(SENT, frames(name), size)
    assert text_of(events) == text
    assert error.failure.kind is kind
    assert "10.0.0.7" not in error.failure.message


def test_bytes_that_are_no_frames_are_malformed() -> None:
    assert failure_of(container_bytes, b"data: something else\n\n").kind is FailureKind.MALFORMED
