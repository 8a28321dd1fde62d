"""The best of several candidates.

The numbers of the worked example are from the page on the four APIs.
"""

import math
from collections.abc import Callable
from dataclasses import replace

import pytest

from providers.completion import Choice, Completion, ContentLogprobs, LegacyLogprobs, Logprobs, TokenLogprob, Usage
from providers.emulation.best_of import rank, strip_logprobs
from providers.emulation.merge_choices import CallShare, merge
from tests.support.looped import looped


def arrays(*numbers: float | None) -> LegacyLogprobs:
    return LegacyLogprobs(tuple("x" * len(numbers)), numbers, None, None)


def content(*numbers: float) -> ContentLogprobs:
    return ContentLogprobs(tuple([TokenLogprob("x", number) for number in numbers]))


def candidates(*logprobs: Logprobs | None, usage: Usage | None = None) -> Completion:
    """Return candidates A, B, C ... with these log probabilities."""
    return Completion(
        tuple([Choice(index, chr(65 + index), "stop", logprobs=given) for index, given in enumerate(logprobs)]), usage
    )


def texts(completion: Completion) -> str:
    assert [choice.index for choice in completion.choices] == list(range(len(completion.choices)))
    return "".join(choice.text for choice in completion.choices)


@pytest.mark.parametrize("form", [arrays, content])
def test_the_worked_example_of_the_best_of_three(form: Callable[..., Logprobs]) -> None:
    parts = (CallShare(0, 0, 1), CallShare(0, 1, 1), CallShare(0, 2, 1))
    given = [((-0.1, -0.2, -3.0), 3), ((-0.9, -0.9), 2), ((-1.0,) * 10, 10)]
    calls = [
        Completion((Choice(0, "ABC"[k], "stop", logprobs=form(*numbers)),), Usage(4, tokens))
        for k, (numbers, tokens) in enumerate(given)
    ]
    best = rank(merge(parts, calls, 3), n=1, prompts=1, best_of=3)
    assert texts(best) == "B"
    assert best.usage == Usage(4, 15)
    assert texts(rank(merge(parts, calls, 3), n=3, prompts=1, best_of=3)) == "BCA"


def test_equal_candidates_keep_their_order() -> None:
    assert texts(rank(candidates(*[arrays(-1.0, -1.0), arrays(-1.0)] * 2), n=3, prompts=1, best_of=4)) == "ABC"


def test_each_prompt_has_its_own_best() -> None:
    given = candidates(content(-2.0), content(-1.0), content(-3.0), content(-0.1), content(-0.2), content(-0.3))
    assert texts(rank(given, n=2, prompts=2, best_of=3)) == "BADE"


def test_tokens_without_a_number_do_not_count_and_impossible_ones_do() -> None:
    assert texts(rank(candidates(arrays(-1.0), arrays(None, -0.5)), n=1, prompts=1, best_of=2)) == "B"
    assert (
        texts(rank(candidates(content(-math.inf), content(math.nan), content(-5.0)), n=1, prompts=1, best_of=3)) == "C"
    )


def test_the_tokens_of_a_refusal_stand_in_for_the_texts() -> None:
    refusal = ContentLogprobs((), (TokenLogprob("no", -0.1),))
    assert texts(rank(candidates(content(-0.2), refusal), n=1, prompts=1, best_of=2)) == "B"


def test_a_candidate_without_a_token_comes_last() -> None:
    empty = Choice(0, "", "stop")
    full = Choice(1, "x", "stop", logprobs=arrays(-50.0))
    assert rank(Completion((empty, full), None), n=1, prompts=1, best_of=2).choices == (replace(full, index=0),)


@looped("logprobs", [None, content(), arrays()])
def test_a_text_without_log_probabilities_cannot_be_ranked(logprobs: Logprobs | None) -> None:
    with pytest.raises(ValueError, match="candidate 1 has no log probabilities"):
        rank(candidates(content(-1.0), logprobs), n=1, prompts=1, best_of=2)


def test_candidates_that_are_missing_are_not_ranked_around() -> None:
    with pytest.raises(ValueError, match="3 candidates are not 2 for each of 2 prompts"):
        rank(candidates(*[content(-1.0)] * 3), n=1, prompts=2, best_of=2)


def test_log_probabilities_that_nobody_asked_for_are_taken_out() -> None:
    whole = replace(candidates(content(-1.0), usage=Usage(1, 1)), system_fingerprint="fp")
    assert strip_logprobs(whole) == replace(candidates(None, usage=Usage(1, 1)), system_fingerprint="fp")
