"""Gemini's finish reasons in the common words."""

import pytest

from providers.dialects.gemini.finish_reasons import check_finish, finish_reason
from providers.failure import FailureKind, UpstreamError
from tests.support.looped import looped


@looped(
    ("reason", "called", "expected"),
    [
        ("STOP", False, ("stop", None)),
        ("STOP", True, ("tool_calls", None)),
        ("MAX_TOKENS", True, ("length", None)),
        ("CONTINUATION", False, ("length", "CONTINUATION")),
        ("RECITATION", False, ("content_filter", "RECITATION")),
        ("MODEL_ARMOR", False, ("content_filter", "MODEL_ARMOR")),
        ("SUNSET", False, ("SUNSET", "SUNSET")),
        ("SUNSET", True, ("SUNSET", "SUNSET")),
    ],
)
def test_reasons_are_the_common_ones(reason: str, called: bool, expected: tuple[str, str | None]) -> None:
    assert finish_reason(reason, called) == expected


def test_a_reason_that_means_failure_is_one_and_tells_the_vendors_words() -> None:
    check_finish("STOP", "Model generated function call(s).")
    with pytest.raises(UpstreamError, match="MALFORMED_FUNCTION_CALL: Malformed") as caught:
        check_finish("MALFORMED_FUNCTION_CALL", "Malformed function call: f(")
    assert caught.value.failure.kind is FailureKind.NONCONFORMING
