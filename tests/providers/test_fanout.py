"""The answers of several calls put together. The numbers of the worked examples are those of the four APIs' page."""

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.completion import (
    Choice,
    Chunk,
    Completion,
    ContentLogprobs,
    LegacyLogprobs,
    Logprobs,
    TokenLogprob,
    Usage,
)
from providers.fanout import Part, UsageTally, billed, merge, rank, renumber, strip_logprobs

# Prompts A and B, two candidates each, one to a call.
SINGLES = (Part(0, 0, 1), Part(0, 1, 1), Part(1, 0, 1), Part(1, 1, 1))
USAGES = (Usage(3, 5), Usage(3, 4), Usage(2, 7), Usage(2, 1))


def answer(
    *texts: str, usage: Usage | None = None, fingerprint: str | None = "fp", tier: str | None = None
) -> Completion:
    return Completion(tuple([Choice(k, text, "stop") for k, text in enumerate(texts)]), usage, fingerprint, tier)


def answers() -> list[Completion]:
    return [answer(text, usage=usage) for text, usage in zip(("A0", "A1", "B0", "B1"), USAGES, strict=True)]


def test_the_worked_example_of_two_prompts_with_two_candidates() -> None:
    merged = merge(SINGLES, answers(), 2)
    assert [(choice.index, choice.text) for choice in merged.choices] == [(0, "A0"), (1, "A1"), (2, "B0"), (3, "B1")]
    assert merged.usage == Usage(5, 17)
    assert merged.usage.total_tokens == 22
    assert merged.system_fingerprint == "fp"
    paid = billed(answers())
    assert paid is not None
    assert paid.prompt_tokens == 10
    assert paid.completion_tokens == 17


def test_three_prompts_with_two_candidates_have_the_indices_0_to_5_in_whatever_order_the_calls_are() -> None:
    parts = (Part(2, 0, 2), Part(0, 0, 2), Part(1, 0, 2))
    merged = merge(parts, [answer("C0", "C1"), answer("A0", "A1"), answer("B0", "B1")], 2)
    assert [choice.index for choice in merged.choices] == list(range(6))
    assert [choice.text for choice in merged.choices] == ["A0", "A1", "B0", "B1", "C0", "C1"]


def test_calls_may_bring_several_candidates_each() -> None:
    parts = (Part(0, 0, 2), Part(0, 2, 1))
    merged = merge(parts, [answer("0", "1", usage=Usage(4, 2)), answer("2", usage=Usage(4, 3))], 3)
    assert [(choice.index, choice.text) for choice in merged.choices] == [(0, "0"), (1, "1"), (2, "2")]
    assert merged.usage == Usage(4, 5)


def test_everything_a_choice_says_besides_its_index_stays() -> None:
    choice = Choice(0, "a", "stop", "eos", ContentLogprobs(()), "r", "t", (), "\n")
    assert merge((Part(1, 0, 1),), [Completion((choice,), None)], 1).choices == (replace(choice, index=1),)


@pytest.mark.parametrize(("other", "kept"), [("fp", "fp"), ("fp2", None), (None, None)])
def test_fingerprint_and_tier_are_named_only_where_all_calls_agree(other: str | None, kept: str | None) -> None:
    parts = SINGLES[:2]
    assert merge(parts, [answer("a"), answer("b", fingerprint=other)], 2).system_fingerprint == kept
    assert merge(parts, [answer("a", tier="fp"), answer("b", tier=other)], 2).service_tier == kept


@pytest.mark.parametrize("texts", [(), ("a",), ("a", "b", "c")])
def test_a_call_that_answers_with_other_choices_than_its_own_is_no_part(texts: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=r"prompt 1 was answered with the choices \[.*\] instead of 2"):
        merge((Part(1, 0, 2),), [answer(*texts)], 2)


def test_details_are_counted_like_their_totals() -> None:
    usages = (
        Usage(8, 4, {"cached_tokens": 0}, {"reasoning_tokens": 3}),
        Usage(8, 2, {"cached_tokens": 8}, {"reasoning_tokens": 1, "audio_tokens": 1}),
        Usage(5, 1, {"cached_tokens": 2, "audio_tokens": 1}),
    )
    parts = (Part(0, 0, 1), Part(0, 1, 1), Part(1, 0, 1))
    completions = [answer("", usage=usage) for usage in usages]
    generated = {"reasoning_tokens": 4, "audio_tokens": 1}
    assert merge(parts, completions, 2).usage == Usage(13, 7, {"cached_tokens": 2, "audio_tokens": 1}, generated)
    assert billed(completions) == Usage(21, 7, {"cached_tokens": 10, "audio_tokens": 1}, generated)


def test_one_guess_makes_the_sum_a_guess() -> None:
    completions = [answer("", usage=Usage(1, 1)), answer("", usage=Usage(1, 1, estimated=True))]
    for parts in (SINGLES[:2], SINGLES[1:3]):
        assert merge(parts, completions, 2).usage == Usage(1 + (parts[1].prompt == 1), 2, estimated=True)
    assert billed(completions) == Usage(2, 2, estimated=True)


def test_a_call_without_usage_leaves_the_whole_without() -> None:
    completions = [answer("", usage=Usage(1, 1)), answer("")]
    assert merge(SINGLES[:2], completions, 2).usage is None
    assert billed(completions) is None
    assert billed([]) is None


def test_the_tally_of_a_stream_is_that_of_the_whole_once_every_call_has_reported() -> None:
    tally = UsageTally(SINGLES)
    tally.note(2, Usage(2, 0))
    for number in (3, 1, 2, 0):
        assert tally.merged is None
        assert tally.billed is None
        tally.note(number, USAGES[number])
    assert tally.merged == merge(SINGLES, answers(), 2).usage
    assert tally.billed == billed(answers())


@given(st.integers(1, 4), st.integers(1, 4), st.data())
def test_chunks_get_the_indices_of_the_merged_choices(prompts: int, n: int, data: st.DataObject) -> None:
    parts = []
    for prompt in range(prompts):
        cuts = sorted({0, n, *data.draw(st.lists(st.integers(0, n)))})
        parts += [Part(prompt, start, end - start) for start, end in pairwise(cuts)]
    seen = [renumber(part, Chunk(k), n).index for part in parts for k in range(part.count)]
    assert seen == list(range(prompts * n))
    whole = merge(parts, [answer(*[""] * part.count) for part in parts], n)
    assert [choice.index for choice in whole.choices] == seen


def test_a_renumbered_chunk_names_no_fingerprint() -> None:
    chunk = Chunk(0, "a", "stop", matched_stop="\n", system_fingerprint="fp")
    assert renumber(Part(2, 1, 1), chunk, 3) == Chunk(7, "a", "stop", matched_stop="\n")


@pytest.mark.parametrize("index", [-1, 2])
def test_a_chunk_of_a_choice_that_the_call_does_not_have_is_refused(index: int) -> None:
    with pytest.raises(ValueError, match=f"choice {index} was not asked for, 2 of prompt 0 were"):
        renumber(Part(0, 0, 2), Chunk(index), 2)


# The best of several candidates.


def arrays(*numbers: float | None) -> LegacyLogprobs:
    return LegacyLogprobs(tuple("x" * len(numbers)), numbers, None, None)


def content(*numbers: float) -> ContentLogprobs:
    return ContentLogprobs(tuple([TokenLogprob("x", number) for number in numbers]))


def candidates(*logprobs: Logprobs | None, usage: Usage | None = None) -> Completion:
    """Candidates A, B, C ... with these log probabilities."""
    return Completion(
        tuple([Choice(index, chr(65 + index), "stop", logprobs=given) for index, given in enumerate(logprobs)]), usage
    )


def texts(completion: Completion) -> str:
    assert [choice.index for choice in completion.choices] == list(range(len(completion.choices)))
    return "".join(choice.text for choice in completion.choices)


@pytest.mark.parametrize("form", [arrays, content])
def test_the_worked_example_of_the_best_of_three(form: Callable[..., Logprobs]) -> None:
    parts = (Part(0, 0, 1), Part(0, 1, 1), Part(0, 2, 1))
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


@pytest.mark.parametrize("logprobs", [None, content(), arrays()])
def test_a_text_without_log_probabilities_cannot_be_ranked(logprobs: Logprobs | None) -> None:
    with pytest.raises(ValueError, match="candidate 1 has no log probabilities"):
        rank(candidates(content(-1.0), logprobs), n=1, prompts=1, best_of=2)


def test_candidates_that_are_missing_are_not_ranked_around() -> None:
    with pytest.raises(ValueError, match="3 candidates are not 2 for each of 2 prompts"):
        rank(candidates(*[content(-1.0)] * 3), n=1, prompts=2, best_of=2)


def test_log_probabilities_that_nobody_asked_for_are_taken_out() -> None:
    whole = replace(candidates(content(-1.0), usage=Usage(1, 1)), system_fingerprint="fp")
    assert strip_logprobs(whole) == replace(candidates(None, usage=Usage(1, 1)), system_fingerprint="fp")
