"""The errors of the mock."""

from providers.mock.errors import STATUSES, bad_request, by_status, overflow
from tests.support.looped import looped


@looped("status", sorted(STATUSES))
def test_every_error_has_the_four_members_and_a_message(status: int) -> None:
    error = by_status(status)
    body = error.body()["error"]
    assert error.status == status
    assert isinstance(body, dict)
    assert list(body) == ["message", "type", "param", "code"]
    assert body["message"]


def test_a_fault_of_the_request_names_the_field() -> None:
    error = bad_request("n", "too many")
    assert (error.status, error.param, error.kind) == (400, "n", "invalid_request_error")


def test_the_overflow_has_numbers_that_fit_each_other() -> None:
    error = overflow(12)
    assert error.code == "context_length_exceeded"
    assert "maximum context length is 11 tokens" in error.message
    assert "resulted in 12 tokens" in error.message
