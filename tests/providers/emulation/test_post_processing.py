"""Post-processing of responses: stops found in a real stream however it is cut, echoed prompts, checked constraints,
chosen candidates, and estimated usage."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.completion import (
    Choice,
    Chunk,
    Completion,
    Extras,
    FinishReason,
    LegacyLogprobs,
    StreamEvent,
    ToolCall,
    ToolCallDelta,
    Usage,
)
from providers.dialect import StreamDecoder
from providers.emulation.collect_stream import Gatherer
from providers.emulation.post_processing import PostProcessing, PostProcessor, StopScanningDecoder, echo_only
from providers.failure import FailureKind, UpstreamError
from providers.json_types import JsonObject
from providers.unified_request import TextPrompt
from tests.providers.dialects.kit import chat_request, sent_for, target_of
from tests.providers.dialects.openai.kit import DIALECT, completion, frame, sent
from tests.providers.kit import failure_of
from tests.support.http_scripts import DONE

STOP = PostProcessing(stops=("END",))
USAGE: JsonObject = {"choices": [], "usage": {"prompt_tokens": 6, "completion_tokens": 2, "total_tokens": 8}}


def said(text: str, index: int = 0, reason: str | None = None) -> bytes:
    return frame({"choices": [{"index": index, "text": text, "finish_reason": reason}]})


def scanning(finishing: PostProcessing = STOP, count: int = 1) -> StopScanningDecoder:
    """Return a stop scanner behind the decoder of the OpenAI family."""
    return StopScanningDecoder(DIALECT.stream(sent(chats=False, choices=count)), finishing, count)


def events_until_complete(decoder: StreamDecoder, pieces: Sequence[bytes]) -> list[StreamEvent]:
    """Return the events of the chunks until the decoder is complete or the body ends."""
    events: list[StreamEvent] = []
    for piece in pieces:
        events.extend(decoder.feed(piece))
        if decoder.complete:
            return events
    events.extend(decoder.finish())
    return events


def text_of(events: Sequence[StreamEvent], index: int = 0) -> str:
    return "".join(event.text for event in events if isinstance(event, Chunk) and event.index == index)


def ends(events: Sequence[StreamEvent]) -> list[tuple[int, str | None]]:
    return [(event.index, event.finish_reason) for event in events if isinstance(event, Chunk) and event.finish_reason]


# Stops in a stream ---------------------------------------------------------------------------------------------------

HIT = said("one E") + said("N") + said("D two") + said("", reason="length") + frame(USAGE) + DONE


def test_a_stop_is_found_wherever_the_stream_is_cut() -> None:
    for place in range(len(HIT) + 1):
        decoder = scanning()
        events = events_until_complete(decoder, [HIT[:place], HIT[place:]])
        assert text_of(events) == "one "
        assert ends(events) == [(0, "stop")]
        assert decoder.complete


def test_a_stop_is_found_byte_by_byte_and_the_rest_is_of_no_use() -> None:
    decoder = scanning()
    pieces = [HIT[place : place + 1] for place in range(len(HIT))]
    read = 0
    for piece in pieces:
        read += 1
        list(decoder.feed(piece))
        if decoder.complete:
            break
    assert decoder.cut == {0}
    assert read == len(said("one E") + said("N") + said("D two"))


@given(st.text("aEND", max_size=30), st.lists(st.integers(0, 30), max_size=5), st.integers(1, 60), st.booleans())
def test_the_answer_is_the_same_however_text_and_bytes_are_cut(
    text: str, places: list[int], size: int, keep: bool
) -> None:
    edges = [0, *sorted(min(place, len(text)) for place in places), len(text)]
    texts = [text[start:end] for start, end in pairwise(edges)]
    stream = b"".join(map(said, texts)) + said("", reason="length") + frame(USAGE) + DONE
    events = events_until_complete(
        scanning(PostProcessing(stops=("END",), keep=keep)),
        [stream[at : at + size] for at in range(0, len(stream), size)],
    )
    before, stop, _ = text.partition("END")
    assert text_of(events) == before + (stop if keep else "")
    assert ends(events) == [(0, "stop" if stop else "length")]


def test_an_answer_that_a_stop_cuts_has_the_prompt_that_the_vendor_reported() -> None:
    """The vendor would report the total usage only at the end of its stream, which is not read."""
    start = b'data: {"type": "message_start", "message": {"usage": {"input_tokens": 90, "output_tokens": 1}}}\n\n'
    delta = b'data: {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "%b"}}\n\n'
    target = target_of("anthropic", max_output_tokens=9)
    inner = target.dialect.stream(sent_for(replace(chat_request(), stream=True), target))
    events = events_until_complete(
        StopScanningDecoder(inner, STOP, 1), [start, *[delta % text for text in (b"12345", b"END", b"x")]]
    )
    assert text_of(events) == "12345"
    assert events[-1] == Usage(90, 2, estimated=True)


def test_a_stream_without_a_stop_is_as_it_was() -> None:
    stream = said("one") + said("two") + said("", reason="stop") + frame(USAGE) + DONE
    decoder = scanning()
    assert events_until_complete(decoder, [stream]) == events_until_complete(
        DIALECT.stream(sent(chats=False)), [stream]
    )
    assert decoder.cut == set()


def test_what_could_have_become_a_stop_is_given_at_the_end() -> None:
    assert text_of(events_until_complete(scanning(), [said("one EN") + said("", reason="stop") + DONE])) == "one EN"
    assert text_of(events_until_complete(scanning(), [said("one EN", reason="length")])) == "one EN"


def test_each_choice_is_searched_by_itself_and_all_must_end() -> None:
    decoder = scanning(count=2)
    events = list(decoder.feed(said("aE") + said("bE", 1) + said("ND", 1)))
    assert (decoder.complete, decoder.cut) == (False, {1})
    events += decoder.feed(said("never", 1) + said("ND"))
    assert (decoder.complete, decoder.cut) == (True, {0, 1})
    assert (text_of(events), text_of(events, 1)) == ("a", "b")
    assert ends(events) == [(1, "stop"), (0, "stop")]


def test_a_choice_that_was_cut_and_one_that_ended_make_an_answer() -> None:
    decoder = scanning(count=2)
    events = list(decoder.feed(said("a", 1, "length") + said("bEND")))
    assert decoder.complete
    assert ends(events) == [(1, "length"), (0, "stop")]


def test_a_choice_that_the_vendor_ended_after_the_hit_generates_no_more() -> None:
    decoder = scanning(count=2)
    list(decoder.feed(said("aEND") + said("", 0, "stop") + said("b", 1)))
    assert (decoder.complete, decoder.cut) == (False, set())
    events = events_until_complete(decoder, [said("", 1, "stop") + frame(USAGE), DONE])
    assert Usage(6, 2) in events


def test_a_stop_in_the_very_last_piece_leaves_the_usage_to_be_read() -> None:
    decoder = scanning()
    events = events_until_complete(decoder, [said("aEND", reason="stop"), frame(USAGE), DONE])
    assert (text_of(events), ends(events), events[-1]) == ("a", [(0, "stop")], Usage(6, 2))


def test_what_goes_wrong_after_every_choice_was_cut_does_not_matter() -> None:
    decoder = scanning()
    events = list(decoder.feed(said("aEND") + frame({"error": {"message": "it broke"}})))
    assert (text_of(events), ends(events), decoder.complete) == ("a", [(0, "stop")], True)


def test_a_vendor_that_ended_in_the_same_piece_as_the_hit_has_its_end_read() -> None:
    decoder = scanning()
    events = events_until_complete(decoder, [said("aEND") + said("", reason="length"), frame(USAGE), DONE])
    assert (text_of(events), ends(events), events[-1]) == ("a", [(0, "stop")], Usage(6, 2))
    assert decoder.cut == set()


def test_a_stream_that_breaks_before_a_stop_is_broken() -> None:
    events = scanning().feed(said("aE") + frame({"error": {"message": "it broke"}}))
    assert text_of([next(events)]) == "a"
    with pytest.raises(UpstreamError):
        next(events)
    with pytest.raises(UpstreamError):
        events_until_complete(scanning(), [said("aE")])


# Echoed prompts ----- -------------------------------------------------------------------------------------------------


def client_chunks(finisher: PostProcessor, *chunks: Chunk) -> list[Chunk]:
    """Return the chunks that the client receives."""
    return [out for chunk in chunks for out in finisher.feed(chunk)]


def test_each_choice_gets_the_prompt_it_is_for_once() -> None:
    finisher = PostProcessor(PostProcessing(echo=("A:", "B:"), n=2, candidates=2))
    chunks = [Chunk(index, f"{index}") for index in (2, 0, 3, 1)] + [Chunk(index, "!", "stop") for index in range(4)]
    texts = [(chunk.index, chunk.text) for chunk in client_chunks(finisher, *chunks)]
    assert texts == [(2, "B:2"), (0, "A:0"), (3, "B:3"), (1, "A:1"), (0, "!"), (1, "!"), (2, "!"), (3, "!")]


def test_a_whole_answer_gets_its_prompts_too() -> None:
    answer = Completion((Choice(0, "1", "stop"), Choice(1, "2", "length", refusal="no")), Usage(1, 2))
    whole = PostProcessor(PostProcessing(echo=("A:", "B:"))).whole(answer)
    assert [(choice.text, choice.finish_reason, choice.refusal) for choice in whole.choices] == [
        ("A:1", "stop", None),
        ("B:2", "length", "no"),
    ]
    assert whole.usage == Usage(1, 2)


def test_where_nothing_is_to_be_done_nothing_is_touched() -> None:
    chunk = Chunk(0, "a", "stop")
    assert client_chunks(PostProcessor(PostProcessing()), chunk)[0] is chunk


# Candidates ----------------------------------------------------------------------------------------------------------


def candidate(index: int, text: str, *logprobs: float) -> Choice:
    tokens = tuple(text[:1] for _ in logprobs)
    return Choice(index, text, "stop", logprobs=LegacyLogprobs(tokens, logprobs, None, None) if logprobs else None)


def test_the_likeliest_candidate_is_kept_and_its_log_probabilities_only_where_asked_for() -> None:
    answer = Completion(
        (candidate(0, "A", -0.1, -0.2, -3.0), candidate(1, "B", -0.9, -0.9), candidate(2, "C", *[-1.0] * 10)),
        Usage(4, 15),
    )
    kept = PostProcessing(candidates=3).ranked(answer, 1)
    assert [(choice.index, choice.text) for choice in kept.choices] == [(0, "B")]
    assert kept.choices[0].logprobs is not None
    assert kept.usage == Usage(4, 15)
    (choice,) = PostProcessing(candidates=3, drop_logprobs=True).ranked(answer, 1).choices
    assert choice.logprobs is None


def test_without_more_candidates_nothing_is_chosen() -> None:
    answer = Completion((candidate(0, "A"), candidate(1, "B")), None)
    assert PostProcessing(n=2, candidates=2).ranked(answer, 1) is answer


def test_candidates_without_log_probabilities_cannot_be_chosen_among() -> None:
    assert (
        failure_of(
            PostProcessing(candidates=2).ranked, Completion((candidate(0, "A", -1.0), candidate(1, "B")), None), 1
        ).kind
        is FailureKind.MALFORMED
    )


# Responses that the gateway makes ----- -------------------------------------------------------------------------------


def test_prompts_that_are_only_repeated_are_answered_with_nothing_for_each_choice() -> None:
    request = completion({"n": 2, "echo": True, "max_tokens": 0}, TextPrompt(("abcde", "x")))
    answer = echo_only(request)
    assert [(choice.index, choice.text, choice.finish_reason) for choice in answer.choices] == [
        (index, "", "length") for index in range(4)
    ]
    assert answer.usage == Usage(3, 0, estimated=True)


def chunked(answer: Completion, reason: FinishReason) -> Iterator[Chunk]:
    for choice in answer.choices:
        for letter in choice.text:
            yield Chunk(choice.index, letter)
        yield Chunk(choice.index, finish_reason=reason)


@given(st.lists(st.text("ab", max_size=4), min_size=1, max_size=4), st.sampled_from(["length", "stop"]))
def test_streams_and_whole_answers_are_finished_alike(texts: list[str], reason: FinishReason) -> None:
    answer = Completion(tuple(Choice(index, text, reason) for index, text in enumerate(texts)), None)
    finishing = PostProcessing(echo=tuple(f"{number}:" for number in range(len(texts))))
    gatherer, finisher = Gatherer(len(texts)), PostProcessor(finishing)
    for chunk in chunked(answer, reason):
        for out in finisher.feed(chunk):
            gatherer.add(out)
    assert gatherer.completion() == PostProcessor(finishing).whole(answer)


def test_members_of_an_answer_after_its_end_cut_no_vendor_off() -> None:
    class Trailing:
        """A decoder that returns fields of the response after its only choice has ended."""

        complete = False

        def feed(self, data: bytes) -> Iterator[StreamEvent]:
            yield Chunk(text="x", finish_reason="stop")
            yield Chunk(extras=Extras(answer={"a": 1}))

        def finish(self) -> Iterator[StreamEvent]:
            return iter(())

    decoder = StopScanningDecoder(Trailing(), STOP, 1)
    assert list(decoder.feed(b"")) == [Chunk(text="x", finish_reason="stop"), Chunk(extras=Extras(answer={"a": 1}))]
    assert decoder.cut == set()


def test_a_whole_answer_s_extras_stay_and_its_citations_move_by_the_prompt() -> None:
    cited: JsonObject = {"type": "url_citation", "url_citation": {"start_index": 0, "end_index": 1}}
    moved: JsonObject = {"type": "url_citation", "url_citation": {"start_index": 3, "end_index": 4}}
    extras = Extras(annotations=(cited,), images=({"i": 1},))
    completion = Completion((Choice(0, "x", "stop", extras=extras),), None, extra={"a": 1})
    (choice,) = (whole := PostProcessor(PostProcessing(echo=("abc",))).whole(completion)).choices
    assert (choice.text, choice.extras) == ("abcx", Extras(annotations=(moved,), images=({"i": 1},)))
    assert whole.extra == {"a": 1}


def test_an_error_in_an_event_of_its_own_changes_nothing_after_the_end() -> None:
    call = sent_for(replace(chat_request(), stream=True), target_of("anthropic"))
    decoder = StopScanningDecoder(call.target.dialect.stream(call), STOP, 1)
    begun, said_so, broken = (
        b'data: {"type":"content_block_delta","delta":{"type":"text_delta","text":"a"}}\n\n',
        b'data: {"type":"content_block_delta","delta":{"type":"text_delta","text":"END"}}\n\n',
        b'data: {"type":"error","error":{"type":"overloaded_error","message":"x"}}\n\n',
    )
    assert text_of(events_until_complete(decoder, [begun, said_so])) == "a"
    assert list(decoder.feed(broken)) == []


# One call of a tool ---------------------------------------------------------------------------------------------------


def test_the_first_call_of_each_choice_is_kept_whole_and_streamed() -> None:
    finishing = PostProcessing(n=2, candidates=2, one_call=True)
    usage = Usage(3, 9)
    calls = (ToolCall("a", "f", "{}"), ToolCall("b", "g", "{}"))
    answer = Completion(tuple(Choice(index, "", "tool_calls", tool_calls=calls) for index in range(2)), usage)
    kept = PostProcessor(finishing).whole(answer)
    assert kept == Completion(tuple(Choice(index, "", "tool_calls", tool_calls=calls[:1]) for index in range(2)), usage)
    gatherer, finisher = Gatherer(2), PostProcessor(finishing)
    for index in range(2):
        for number, call in enumerate(calls):
            pieces = (ToolCallDelta(number, call.id, call.name, "{"),)
            for piece in (pieces, (ToolCallDelta(number, arguments="}"),)):
                for chunk in finisher.feed(Chunk(index, tool_calls=piece)):
                    gatherer.add(chunk)
        gatherer.add(Chunk(index, finish_reason="tool_calls"))
    gatherer.add(usage)
    assert gatherer.completion() == kept
