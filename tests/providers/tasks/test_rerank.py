"""Requests for rankings as values."""

from tests.providers.tasks.kit import rank


def test_members_that_go_along_are_known_to_do_so() -> None:
    assert not rank().passes_unknown
    assert rank(unknown={"a": 1}).passes_unknown
    assert rank(extra_params={"a": 1}).passes_unknown
    assert rank(extra_headers={"a": "b"}).passes_unknown
