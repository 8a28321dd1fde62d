"""Cohere's event streams: the same events whatever the cuts, and never a success that was not declared."""

from dataclasses import replace

import orjson

from providers.completion import Chunk, ToolCallDelta, Usage
from providers.dialect import RunDecoder
from providers.failure import FailureKind
from providers.json_types import JsonObject
from providers.unified_request import Guided
from tests.providers.dialects.kit import (
    chat_request,
    chunks,
    decoded,
    fixture,
    gathered,
    only,
    reader,
    sent_for,
    stream_failure,
    streamed,
    target_of,
    text_of,
    usage_in,
)
from tests.support.looped import looped

stream = reader("cohere", "streams", "sse")

TARGET = target_of("cohere")
SENT = sent_for(replace(chat_request(), stream=True), TARGET)
CHOOSE = sent_for(replace(chat_request(guided=Guided("choice", ("yes", "no"))), stream=True), TARGET)
ALSO_WHOLE = ("text", "tools", "thinking", "length", "empty", "choice", "logprobs")


@looped("name", ALSO_WHOLE)
def test_a_stream_says_what_the_whole_answer_says(name: str) -> None:
    whole = decoded(SENT, fixture("cohere", "answers", f"{name}.json"))
    made = gathered(streamed(SENT, stream(name)))
    assert [replace(call, arguments=call.arguments.replace(" ", "")) for call in only(made).tool_calls] == list(
        only(whole).tool_calls
    )
    assert replace(only(made), tool_calls=()) == replace(only(whole), tool_calls=())
    assert made.usage == whole.usage


def test_calls_are_counted_densely_apart_from_content() -> None:
    deltas = [delta for chunk in chunks(streamed(SENT, stream("tools"))) for delta in chunk.tool_calls]
    assert deltas == [
        ToolCallDelta(0, "get_weather_a1", "get_weather"),
        ToolCallDelta(0, arguments='{"city":'),
        ToolCallDelta(0, arguments=' "Oslo"}'),
        ToolCallDelta(1, "now_b2", "now"),
        ToolCallDelta(1, arguments="{}"),
    ]


def test_calls_get_back_the_names_the_client_gave() -> None:
    sent = replace(SENT, tool_names={"get_weather": "get weather"})
    deltas = [delta for chunk in chunks(streamed(sent, stream("tools"))) for delta in chunk.tool_calls]
    assert deltas[0].name == "get weather"


def test_noise_and_unknown_events_change_nothing() -> None:
    events = streamed(SENT, stream("noise"))
    assert text_of(events) == "Still here."
    assert chunks(events)[-1].finish_reason == "SUNSET"
    assert usage_in(events) is None


def test_a_citation_is_told_behind_its_text() -> None:
    split_citations = [chunk.extras for chunk in chunks(streamed(SENT, stream("citations"), 1)) if chunk.extras]
    assert split_citations[0].message is not None
    citations = split_citations[0].message["citations"]
    assert isinstance(citations, list)
    assert isinstance(citation := citations[0], dict)
    assert citation["text"] == "automation of tasks"


def test_a_citation_of_a_web_page_is_an_annotation_of_the_whole_text() -> None:
    data = stream("citations").replace(b'"title":"benefits.txt"', b'"title":"Benefits","url":"https://example.com/b"')
    (extras,) = [chunk.extras for chunk in chunks(streamed(SENT, data)) if chunk.extras and not chunk.finish_reason]
    span: JsonObject = {"start_index": 21, "end_index": 40}
    page: JsonObject = {"url": "https://example.com/b", "title": "Benefits"}
    assert extras.annotations == ({"type": "url_citation", "url_citation": {**page, **span}},)
    assert extras.message is None


def test_thinking_and_plans_come_as_details_too() -> None:
    details = [
        detail
        for name in ("thinking", "tools")
        for chunk in chunks(streamed(SENT, stream(name)))
        if chunk.extras
        for detail in chunk.extras.reasoning_details
    ]
    kinds = [(detail["type"], detail["format"]) for detail in details]
    assert set(kinds) == {("reasoning.text", "unknown"), ("reasoning.summary", "unknown")}


def test_the_arguments_of_a_custom_tool_come_as_its_text_in_one_piece() -> None:
    sent = replace(SENT, custom_tools=frozenset({"get_weather"}))
    data = stream("tools").replace(b"city", b"input")
    deltas = [delta for chunk in chunks(streamed(sent, data, 1)) for delta in chunk.tool_calls if delta.index == 0]
    assert [(delta.name, delta.arguments, delta.kind) for delta in deltas] == [
        ("get_weather", "", "custom"),
        (None, "Oslo", "custom"),
    ]


def test_a_choice_comes_unwrapped_in_one_piece() -> None:
    end, usage = streamed(CHOOSE, stream("choice"), 1)
    assert isinstance(end, Chunk)
    assert (end.text, end.finish_reason, usage) == ("yes", "stop", Usage(90, 6))
    assert text_of(streamed(CHOOSE, stream("length"))) == "It never"
    assert stream_failure(CHOOSE, stream("text"))[1].failure.kind is FailureKind.MALFORMED


def test_an_end_in_failure_has_the_vendors_words_or_ours() -> None:
    assert stream_failure(SENT, stream("error_after_text"))[1].failure.message == "internal server error"
    broken_off = "The upstream ended its response with an error."
    assert stream_failure(SENT, stream("error_first"))[1].failure.message == broken_off


def test_the_only_stop_is_the_one_that_matched() -> None:
    sent = sent_for(replace(chat_request(stop=("x",)), stream=True), TARGET)
    data = stream("text").replace(b'"COMPLETE"', b'"STOP_SEQUENCE"')
    assert chunks(streamed(sent, data))[-1].matched_stop == "x"
    assert chunks(streamed(SENT, data))[-1].matched_stop is None


def test_an_error_envelope_in_the_stream_is_that_error() -> None:
    data = stream("text").split(b"event: content-delta")[0] + b'data: {"message":"internal error","id":"x"}\n\n'
    assert stream_failure(SENT, data)[1].failure.message == "internal error"


@looped(
    "event",
    [
        b'data: {"type":["x"]}',
        b'data: {"type":"content-delta","delta":3}',
        b'data: {"type":"content-delta","delta":{"message":{"content":{"text":0}}}}',
        b'data: {"type":"tool-plan-delta","delta":{"message":{}}}',
    ],
)
def test_events_without_what_is_needed_are_passed_over(event: bytes) -> None:
    assert streamed(SENT, event + b"\n\n" + stream("text")) == streamed(SENT, stream("text"))


def test_a_citation_after_runs_of_text_points_into_the_whole_text() -> None:
    decoder = SENT.target.dialect.stream(SENT)
    assert isinstance(decoder, RunDecoder)
    said = b'data: {"type":"content-delta","index":%d,"delta":{"message":{"content":{"text":"%b"}}}}\n\n'
    assert not list(decoder.feed(b'event: message-start\ndata: {"type":"message-start","id":"1"}\n\n'))
    texts = []
    for index in (1, 2):
        found = decoder.read_run(said % (index, "é".encode()) + said % (index, b"b"))
        assert found is not None
        texts += [chunk.text for chunk in found[0].chunks()]
        assert found[1] == b""
    source: JsonObject = {"document": {"url": "https://a.example"}}
    citation: JsonObject = {"start": 0, "end": 2, "content_index": 2, "sources": [source]}
    event: JsonObject = {"type": "citation-start", "delta": {"message": {"citations": citation}}}
    (split_citations,) = decoder.feed(b"data: %b\n\n" % orjson.dumps(event))
    assert texts == ["é", "b", "é", "b"]
    assert isinstance(split_citations, Chunk)
    assert split_citations.extras is not None
    (annotation,) = split_citations.extras.annotations
    assert annotation["url_citation"] == {
        "url": "https://a.example",
        "title": "https://a.example",
        "start_index": 2,
        "end_index": 4,
    }


def call_event(kind: str, **function: str) -> bytes:
    held: JsonObject = {"message": {"tool_calls": {"id": "c1", "type": "function", "function": {**function}}}}
    return b"data: %b\n\n" % orjson.dumps({"type": f"tool-call-{kind}", "index": 0, "delta": held})


END = b'data: {"type":"message-end","delta":{"finish_reason":"TOOL_CALL"}}\n\n'


@looped(
    ("events", "arguments"),
    [
        ([call_event("start", name="now"), call_event("end")], "{}"),
        ([call_event("start", name="now", arguments=""), call_event("delta", arguments=""), call_event("end")], "{}"),
        ([call_event("start", name="now")], "{}"),
        ([call_event("start", name="now", arguments="{"), call_event("delta", arguments="}"), call_event("end")], "{}"),
        ([call_event("start", name="now"), call_event("delta", arguments='{"a":1}')], '{"a":1}'),
    ],
)
def test_a_call_without_arguments_has_an_empty_object(events: list[bytes], arguments: str) -> None:
    (call,) = only(gathered(streamed(SENT, b"".join([*events, END])))).tool_calls
    assert (call.name, call.arguments) == ("now", arguments)
