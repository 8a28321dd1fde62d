"""Gemini's event streams: the same events whatever the cuts, and never a success that was not declared."""

from dataclasses import replace

import orjson

from providers.completion import Chunk, ContentLogprobs, Extras, StreamEvent, TokenLogprob, ToolCallDelta, Usage
from providers.dialects.shared.thought_signatures import pack_call_id, unpack_call_id
from providers.emulation.collect_stream import Gatherer
from providers.failure import FailureKind
from providers.framing.parse_sse import SSEParser
from tests.providers.dialects.gemini.kit import DIALECT, MEMBERS, SAID, SIGNATURE, SIGNED, sent, stream
from tests.providers.dialects.kit import chunks, streamed, text_of, usage_in
from tests.providers.kit import failure_of
from tests.support.looped import looped
from tests.support.nightly import by_day

SENT = sent(streamed=True)
WHOLE = (
    *("array", "blocked", "choice", "code", "empty", "image_first", "late_usage", "length", "logprobs", "noise"),
    *("pieces", "recitation", "safety_after_text", "signed_grounded", "text", "thinking", "tools", "tools_old"),
)
FIRST = pack_call_id("fc-1", SIGNATURE, None, "studio")


def failure_kind(data: bytes, size: int = 4096) -> FailureKind:
    return failure_of(streamed, SENT, data, size).kind


@looped("name", [name for name in WHOLE if name != "array"])
def test_a_stream_that_was_cut_before_its_end_was_declared_is_never_a_success(name: str) -> None:
    data = stream(name)
    ending = data.index(b'"blockReason"' if name == "blocked" else b'"finishReason"')
    declared = ending + len(data[ending:].splitlines()[0])
    for cut in range(0, declared, by_day(3, 1)):
        assert failure_kind(data[:cut]) is FailureKind.TRUNCATED
    assert text_of(streamed(SENT, data[:declared])) == text_of(streamed(SENT, data))


@looped("name", WHOLE)
def test_a_stream_has_no_finish_reason_before_its_body_ends(name: str) -> None:
    decoder = DIALECT.stream(SENT)
    events = list(decoder.feed(stream(name)))
    assert not decoder.complete
    assert all(chunk.finish_reason is None for chunk in chunks(events))


@looped("name", [name for name in WHOLE if name != "array"])
def test_a_stream_says_what_its_objects_say_together(name: str) -> None:
    parser = SSEParser()
    payloads = [orjson.loads(payload) for _, payload in parser.feed(stream(name))]
    gathered = Gatherer(1)
    for event in streamed(SENT, stream(name)):
        gathered.add(event)
    assert gathered.completion() == DIALECT.decode(SENT, orjson.dumps(payloads))


def test_text_comes_as_it_came_with_one_finish_and_one_usage() -> None:
    assert streamed(SENT, stream("text")) == [
        Chunk(text="Checking "),
        Chunk(text="Oslo: 3 °C "),
        Chunk(text="👋."),
        Chunk(finish_reason="stop", extras=Extras(answer=MEMBERS)),
        Usage(9, 9),
    ]


def test_an_array_in_the_place_of_events_is_read_too() -> None:
    assert text_of(streamed(SENT, stream("array"))) == "Checking Oslo."


def test_calls_come_whole_and_the_finish_remembers_them() -> None:
    events = chunks(streamed(SENT, stream("tools")))
    assert [delta for chunk in events for delta in chunk.tool_calls] == [
        ToolCallDelta(0, FIRST, "get_weather", '{"city":"Oslo","days":[1,2]}', extra=SIGNED),
        ToolCallDelta(1, "fc-2", "get_weather", '{"city":"Bergen"}'),
    ]
    assert (events[-1].finish_reason, text_of([*events])) == ("tool_calls", "I look both up.")


def test_a_signature_of_a_text_goes_with_the_call_after_it() -> None:
    events = chunks(streamed(SENT, stream("tools_old")))
    ids = [delta.id or "" for chunk in events for delta in chunk.tool_calls]
    assert [unpack_call_id(one)[1:] for one in ids] == [(None, SAID, "studio"), (None, None, None)]


def test_arguments_in_pieces_are_put_together() -> None:
    (delta,) = (delta for chunk in chunks(streamed(SENT, stream("pieces"))) for delta in chunk.tool_calls)
    assert (delta.id, delta.name) == (pack_call_id("fc-9", SIGNATURE, None, "studio"), "set_light")
    assert orjson.loads(delta.arguments) == {
        "brightness": 50,
        "place": {"room": "living room"},
        "colors": ["red", None],
        "on": True,
    }


def test_thinking_is_reasoning_and_no_text() -> None:
    events = streamed(SENT, stream("thinking"))
    assert "".join([chunk.reasoning or "" for chunk in chunks(events)]) == "The user wants Oslo."
    assert text_of(events) == "Oslo."
    assert [chunk.signature for chunk in chunks(events)][-1] == SIGNATURE
    assert usage_in(events) == Usage(9, 33, None, {"reasoning_tokens": 31})


def test_usage_may_follow_the_finish() -> None:
    usage = Usage(3210, 2, {"cached_tokens": 3000}, {"reasoning_tokens": 0})
    assert usage_in(streamed(SENT, stream("late_usage"))) == usage


def test_a_text_that_was_stopped_keeps_what_came() -> None:
    events = streamed(SENT, stream("safety_after_text"))
    assert text_of(events) == "First, "
    extras = Extras(answer=MEMBERS)
    expected = Chunk(0, "", "content_filter", "SAFETY", refusal="The rest was withheld.", extras=extras)
    assert chunks(events)[-1] == expected
    assert chunks(streamed(SENT, stream("recitation")))[-1].native_finish_reason == "RECITATION"
    assert chunks(streamed(SENT, stream("length")))[-1].finish_reason == "length"


def test_a_blocked_prompt_is_a_stream_of_one_end() -> None:
    assert streamed(SENT, stream("blocked")) == [
        Chunk(
            finish_reason="content_filter",
            native_finish_reason="PROHIBITED_CONTENT",
            extras=Extras(answer={"prompt_feedback": {"blockReason": "PROHIBITED_CONTENT"}, **MEMBERS}),
        ),
        Usage(12, 0),
    ]


def test_log_probabilities_come_with_their_text() -> None:
    first = chunks(streamed(SENT, stream("logprobs")))[0]
    assert (first.text, first.logprobs) == (
        "Yes",
        ContentLogprobs((TokenLogprob("Yes", -0.25, None, (TokenLogprob("Yes", -0.25),)),)),
    )


def test_noise_and_unknown_parts_change_nothing() -> None:
    events = streamed(SENT, stream("noise"))
    assert text_of(events) == "Still here."
    assert (chunks(events)[-1].finish_reason, chunks(events)[-1].native_finish_reason) == ("SUNSET", "SUNSET")


def test_a_bare_error_that_was_cut_is_a_stream_that_was() -> None:
    assert failure_kind(stream("error_bare")[:-6]) is FailureKind.TRUNCATED


def test_an_answer_that_the_model_broke_ends_after_its_text() -> None:
    decoder = DIALECT.stream(SENT)
    events: list[StreamEvent] = []
    data = stream("length").replace(b"MAX_TOKENS", b"UNEXPECTED_TOOL_CALL")
    assert failure_of(events.extend, decoder.feed(data)).kind is FailureKind.NONCONFORMING


@looped(
    "event",
    [
        b"data: 3",
        b'data: "words"',
        b"data: []",
        b'data: {"candidates":3}',
        b'data: {"candidates":[3,{"content":3},{"content":{"parts":[3,{"text":null}]}}]}',
        b'data: {"usageMetadata":3,"promptFeedback":{},"responseId":4}',
    ],
)
def test_events_without_what_is_needed_are_passed_over(event: bytes) -> None:
    data = event + b"\n\n" + stream("text")
    assert streamed(SENT, data) == streamed(SENT, stream("text"))


def test_an_endless_event_is_malformed() -> None:
    for piece in (b"data: " + b"x" * 2**20, b"[" + b" " * 2**20):
        decoder = DIALECT.stream(SENT)
        assert failure_of(all, (not list(decoder.feed(piece)) for _ in range(40))).kind is FailureKind.MALFORMED


def test_calls_get_back_the_names_the_client_gave() -> None:
    events = chunks(streamed(replace(SENT, tool_names={"get_weather": "get weather"}), stream("tools")))
    assert {delta.name for chunk in events for delta in chunk.tool_calls} == {"get weather"}


@looped("data", [b"", b"<html>502</html>", b'{"candidates":[]}', b": nothing\n\n"])
def test_a_body_without_an_answer_is_truncated(data: bytes) -> None:
    assert failure_kind(data) is FailureKind.TRUNCATED
