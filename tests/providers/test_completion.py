"""The common completion shape: the little that it computes."""

from providers.completion import Usage


def test_the_total_is_prompt_and_completion_whatever_the_details() -> None:
    assert Usage(7, 5).total_tokens == 12
    assert Usage(7, 5, {"cached_tokens": 3}, {"reasoning_tokens": 2}).total_tokens == 12
