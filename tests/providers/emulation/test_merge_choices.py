"""The responses of several calls merged into one.

The numbers of the worked examples are from the page on the four APIs.
"""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.completion import Choice, Chunk, Completion, ContentLogprobs, Extras, Usage
from providers.emulation.merge_choices import CallShare, UsageTally, billed_usage, merge, renumber, require_choices
from tests.support.looped import looped

# Prompts A and B, with two candidates each, one per call.
SINGLES = (CallShare(0, 0, 1), CallShare(0, 1, 1), CallShare(1, 0, 1), CallShare(1, 1, 1))
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
    paid = billed_usage(answers())
    assert paid is not None
    assert paid.prompt_tokens == 10
    assert paid.completion_tokens == 17


def test_three_prompts_with_two_candidates_have_the_indices_0_to_5_in_whatever_order_the_calls_are() -> None:
    parts = (CallShare(2, 0, 2), CallShare(0, 0, 2), CallShare(1, 0, 2))
    merged = merge(parts, [answer("C0", "C1"), answer("A0", "A1"), answer("B0", "B1")], 2)
    assert [choice.index for choice in merged.choices] == list(range(6))
    assert [choice.text for choice in merged.choices] == ["A0", "A1", "B0", "B1", "C0", "C1"]


def test_calls_may_bring_several_candidates_each() -> None:
    parts = (CallShare(0, 0, 2), CallShare(0, 2, 1))
    merged = merge(parts, [answer("0", "1", usage=Usage(4, 2)), answer("2", usage=Usage(4, 3))], 3)
    assert [(choice.index, choice.text) for choice in merged.choices] == [(0, "0"), (1, "1"), (2, "2")]
    assert merged.usage == Usage(4, 5)


def test_everything_a_choice_says_besides_its_index_stays() -> None:
    choice = Choice(0, "a", "stop", "eos", ContentLogprobs(()), "r", "t", (), "\n")
    assert merge((CallShare(1, 0, 1),), [Completion((choice,), None)], 1).choices == (replace(choice, index=1),)


@looped(("other", "kept"), [("fp", "fp"), ("fp2", None), (None, None)])
def test_fingerprint_and_tier_are_named_only_where_all_calls_agree(other: str | None, kept: str | None) -> None:
    parts = SINGLES[:2]
    assert merge(parts, [answer("a"), answer("b", fingerprint=other)], 2).system_fingerprint == kept
    assert merge(parts, [answer("a", tier="fp"), answer("b", tier=other)], 2).service_tier == kept


@looped("texts", [(), ("a",), ("a", "b", "c")])
def test_a_call_that_answers_with_other_choices_than_its_own_is_no_part(texts: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=r"prompt 1 was answered with the choices \[.*\] instead of 2"):
        merge((CallShare(1, 0, 2),), [answer(*texts)], 2)


def test_details_are_counted_like_their_totals() -> None:
    usages = (
        Usage(8, 4, {"cached_tokens": 0}, {"reasoning_tokens": 3}),
        Usage(8, 2, {"cached_tokens": 8}, {"reasoning_tokens": 1, "audio_tokens": 1}),
        Usage(5, 1, {"cached_tokens": 2, "audio_tokens": 1}),
    )
    parts = (CallShare(0, 0, 1), CallShare(0, 1, 1), CallShare(1, 0, 1))
    completions = [answer("", usage=usage) for usage in usages]
    generated = {"reasoning_tokens": 4, "audio_tokens": 1}
    assert merge(parts, completions, 2).usage == Usage(13, 7, {"cached_tokens": 2, "audio_tokens": 1}, generated)
    assert billed_usage(completions) == Usage(21, 7, {"cached_tokens": 10, "audio_tokens": 1}, generated)


def test_one_guess_makes_the_sum_a_guess() -> None:
    completions = [answer("", usage=Usage(1, 1)), answer("", usage=Usage(1, 1, estimated=True))]
    for parts in (SINGLES[:2], SINGLES[1:3]):
        assert merge(parts, completions, 2).usage == Usage(1 + (parts[1].prompt == 1), 2, estimated=True)
    assert billed_usage(completions) == Usage(2, 2, estimated=True)


def test_a_call_without_usage_leaves_the_whole_without() -> None:
    completions = [answer("", usage=Usage(1, 1)), answer("")]
    assert merge(SINGLES[:2], completions, 2).usage is None
    assert billed_usage(completions) is None
    assert billed_usage([]) is None


def test_the_tally_of_a_stream_is_that_of_the_whole_once_every_call_has_reported() -> None:
    tally = UsageTally(SINGLES)
    tally.note(2, Usage(2, 0))
    for number in (3, 1, 2, 0):
        assert tally.merged is None
        assert tally.billed is None
        tally.note(number, USAGES[number])
    assert tally.merged == merge(SINGLES, answers(), 2).usage
    assert tally.billed == billed_usage(answers())


@given(st.integers(1, 4), st.integers(1, 4), st.data())
def test_chunks_get_the_indices_of_the_merged_choices(prompts: int, n: int, data: st.DataObject) -> None:
    parts = []
    for prompt in range(prompts):
        cuts = sorted({0, n, *data.draw(st.lists(st.integers(0, n)))})
        parts += [CallShare(prompt, start, end - start) for start, end in pairwise(cuts)]
    seen = [renumber(part, Chunk(k), n).index for part in parts for k in range(part.count)]
    assert seen == list(range(prompts * n))
    whole = merge(parts, [answer(*[""] * part.count) for part in parts], n)
    assert [choice.index for choice in whole.choices] == seen


def test_a_renumbered_chunk_names_no_fingerprint() -> None:
    chunk = Chunk(0, "a", "stop", matched_stop="\n", system_fingerprint="fp")
    assert renumber(CallShare(2, 1, 1), chunk, 3) == Chunk(7, "a", "stop", matched_stop="\n")


@pytest.mark.parametrize("index", [-1, 2])
def test_a_chunk_of_a_choice_that_the_call_does_not_have_is_refused(index: int) -> None:
    with pytest.raises(ValueError, match=f"choice {index} was not requested, 2 of prompt 0 were"):
        renumber(CallShare(0, 0, 2), Chunk(index), 2)


def test_extras_stay_with_their_choices_and_those_of_every_answer_come_together() -> None:
    shares = [CallShare(0, 0, 1), CallShare(1, 0, 1)]
    images = Extras(images=({"i": 1},))
    one = Completion((Choice(0, "a", "stop", extras=images),), None, extra={"citations": ["x"], "id": 1})
    two = Completion((Choice(0, "b", "stop"),), None, extra={"citations": ["y"], "id": 2})
    merged = merge(shares, [one, two], 1)
    assert merged.extra == {"citations": ["x", "y"], "id": 2}
    assert one.extra == {"citations": ["x"], "id": 1}
    assert [choice.extras for choice in merged.choices] == [images, None]
    chunk = Chunk(0, extras=Extras(answer={"citations": ["x"]}))
    assert renumber(shares[1], chunk, 1) == Chunk(1, extras=Extras(answer={"citations": ["x"]}))


@looped("indices", [(0,), (0, 2), (1, 2), (-1, 0), (0, 1, 2), (0, 0)])
def test_other_choices_than_asked_for_are_refused(indices: tuple[int, ...]) -> None:
    choices = tuple([Choice(index, "x", "stop") for index in indices])
    with pytest.raises(ValueError, match="choice"):
        require_choices(replace(answer("a"), choices=choices), 2)
    with pytest.raises(ValueError, match="not requested"):
        require_choices(replace(answer("a"), choices=(Choice(1, "x", "stop"),)), 1)
    assert require_choices(answer("a", "b"), 2) == answer("a", "b")
