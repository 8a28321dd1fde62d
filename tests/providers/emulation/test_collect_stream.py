"""Non-streaming responses made from streams, streams made from non-streaming responses, and estimated usage."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.completion import (
    Choice,
    Chunk,
    Completion,
    ContentLogprobs,
    FinishReason,
    LegacyLogprobs,
    Logprobs,
    StreamEvent,
    TokenLogprob,
    ToolCall,
    ToolCallDelta,
    Usage,
)
from providers.emulation.collect_stream import Gatherer, to_chunks
from tests.support.looped import looped

words = st.text("ab é", max_size=6)
reasons: st.SearchStrategy[FinishReason] = st.sampled_from(["stop", "length", "content_filter", "tool_calls"])
tokens = st.lists(st.builds(TokenLogprob, words, st.floats(-9, 0)), max_size=4).map(tuple)


@st.composite
def arrays(draw: st.DrawFn) -> LegacyLogprobs:
    size = draw(st.integers(0, 4))
    texts = tuple(draw(st.lists(words, min_size=size, max_size=size)))
    numbers = tuple(draw(st.lists(st.none() | st.floats(-9, 0), min_size=size, max_size=size)))
    tops = tuple({text: -1.0} for text in texts)
    return LegacyLogprobs(
        texts, numbers, draw(st.sampled_from([None, tops])), draw(st.sampled_from([None, tuple(range(size))]))
    )


choices = st.builds(
    Choice,
    index=st.just(0),
    text=words,
    finish_reason=reasons,
    native_finish_reason=st.none() | words,
    logprobs=st.none() | st.builds(ContentLogprobs, tokens, tokens) | arrays(),
    refusal=st.none() | words,
    reasoning=st.none() | words,
    tool_calls=st.lists(st.builds(ToolCall, words, words, words), max_size=3).map(tuple),
    matched_stop=st.none() | words | st.integers(),
    signature=st.none() | words,
)


@st.composite
def completions(draw: st.DrawFn) -> Completion:
    drawn = draw(st.lists(choices, min_size=1, max_size=3))
    return Completion(
        tuple([replace(choice, index=index) for index, choice in enumerate(drawn)]),
        draw(st.none() | st.builds(Usage, st.integers(0, 9), st.integers(0, 9))),
        draw(st.none() | words),
        draw(st.none() | words),
    )


def gathered(events: Sequence[StreamEvent], expected: int = 1) -> Completion:
    gatherer = Gatherer(expected)
    for event in events:
        gatherer.add(event)
    return gatherer.completion()


@given(completions())
def test_a_whole_answer_survives_becoming_a_stream(completion: Completion) -> None:
    assert gathered(list(to_chunks(completion)), len(completion.choices)) == completion


def letters(event: StreamEvent) -> list[StreamEvent]:
    if isinstance(event, Usage):
        return [event]
    index, refused = event.index, event.text == event.refusal
    gains = [Chunk(index, reasoning=letter) for letter in event.reasoning or ""]
    gains += [Chunk(index, letter, refusal=letter if refused else None) for letter in event.text]
    gains += [Chunk(index, refusal=letter) for letter in event.refusal or "" if not refused]
    for call in event.tool_calls:
        gains.append(Chunk(index, tool_calls=(replace(call, arguments=""),)))
        gains += [Chunk(index, tool_calls=(ToolCallDelta(call.index, arguments=letter),)) for letter in call.arguments]
    return [*gains, replace(event, text="", reasoning=None, refusal=None, tool_calls=())]


@given(completions())
def test_pieces_of_several_choices_are_sorted_out(completion: Completion) -> None:
    # Without empty strings, which a chunk cannot distinguish from an absent value.
    spoken = [
        replace(choice, refusal=choice.refusal or None, reasoning=choice.reasoning or None)
        for choice in completion.choices
    ]
    completion = replace(completion, choices=tuple(spoken))
    streams = [letters(event) for event in to_chunks(completion)]
    longest = max(len(stream) for stream in streams)
    interleaved = [stream[turn] for turn in range(longest) for stream in streams if turn < len(stream)]
    assert gathered(interleaved, len(spoken)) == completion


def test_log_probabilities_are_joined_in_their_form() -> None:
    content: list[Logprobs] = [ContentLogprobs((TokenLogprob(text, -1.0),)) for text in "ab"]
    legacy: list[Logprobs] = [LegacyLogprobs((text,), (-1.0,), None, None) for text in "ab"]
    for pieces, whole in [
        (content, ContentLogprobs((TokenLogprob("a", -1.0), TokenLogprob("b", -1.0)))),
        (legacy, LegacyLogprobs(("a", "b"), (-1.0, -1.0), None, None)),
    ]:
        chunks = [Chunk(text=text, logprobs=piece) for text, piece in zip("ab", pieces, strict=True)]
        assert gathered([*chunks, Chunk(finish_reason="stop")]).choices[0].logprobs == whole


def test_a_refusal_is_the_text_only_where_there_is_no_other() -> None:
    refusal, end = Chunk(text="No.", refusal="No."), Chunk(finish_reason="stop")
    assert gathered([refusal, end]).choices == (Choice(0, "No.", "stop", refusal="No."),)
    assert gathered([Chunk(text="Well."), refusal, end]).choices == (Choice(0, "Well.", "stop", refusal="No."),)


def test_the_last_usage_counts() -> None:
    assert gathered([Usage(1, 0), Chunk(finish_reason="stop"), Usage(1, 2)]).usage == Usage(1, 2)
    assert gathered([Chunk(finish_reason="stop")]).usage is None


@looped(
    ("events", "message"),
    [
        ([], "choice 0 never finished"),
        ([Chunk(0, "a", "stop")], "choice 1 never finished"),
        ([Chunk(0, "a"), Chunk(1, "b", "stop")], "choice 0 never finished"),
        ([Chunk(0, "a", "stop"), Chunk(1, "b", "stop"), Chunk(2, "c", "stop")], "choice 2 was not requested, 2 were"),
    ],
)
def test_an_answer_that_is_not_whole_is_none(events: list[StreamEvent], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        gathered(events, 2)


@looped("delta", [ToolCallDelta(0, "id"), ToolCallDelta(0, None, "f"), ToolCallDelta(0)])
def test_a_call_that_nobody_named_is_none(delta: ToolCallDelta) -> None:
    with pytest.raises(ValueError, match="tool call 0 of choice 0 has no id or no name"):
        gathered([Chunk(tool_calls=(delta,), finish_reason="tool_calls")])
