"""Vendors' own fields in streams of the OpenAI family: when they arrive, and the cost of them and of plain text."""

import sys
from collections import Counter

from providers.completion import Chunk, Extras, StreamEvent, ToolCallDelta
from providers.dialects.shared.read_json import call_id
from providers.json_types import JsonObject, JsonValue
from tests.faults.memory import growth
from tests.providers.dialects.kit import chunks
from tests.providers.dialects.openai.kit import DIALECT, frame, played, sent, text, unbroken
from tests.providers.dialects.openai.test_stream import DONE, delta


def bare(choices: JsonValue = None, **members: JsonValue) -> bytes:
    """Return a frame whose top-level fields are the vendor's own."""
    return frame({"id": "x", "object": "chat.completion.chunk", "choices": choices or [], **members})


def extras_in(events: list[StreamEvent]) -> list[Extras]:
    return [chunk.extras for chunk in chunks(events) if chunk.extras is not None]


def test_what_a_vendor_says_of_itself_waits_for_content() -> None:
    decoder = DIALECT.stream(sent("groq"))
    role: JsonValue = [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}]
    assert list(decoder.feed(bare(prompt_filter_results=[{"prompt_index": 0}]))) == []
    assert list(decoder.feed(bare(role, x_groq={"id": "r1"}))) == []
    assert list(decoder.feed(delta("Hi"))) == [
        Chunk(extras=Extras(answer={"prompt_filter_results": [{"prompt_index": 0}]})),
        Chunk(extras=Extras(answer={"x_groq": {"id": "r1"}})),
        Chunk(text="Hi"),
    ]
    assert list(decoder.feed(delta(" there"))) == [Chunk(text=" there")]


def test_only_little_of_it_waits() -> None:
    decoder = DIALECT.stream(sent())
    events = [event for number in range(100) for event in decoder.feed(bare(note=number))]
    assert len(events) == 100
    large = list(DIALECT.stream(sent()).feed(bare(note="x" * 300_000)))
    assert [chunk.extras for chunk in chunks(large)] == [Extras(answer={"note": "x" * 300_000})]


def test_media_citations_and_thinking_are_content() -> None:
    detail: JsonObject = {"type": "reasoning.encrypted", "data": "QQ", "index": 0}
    for name in ("reasoning_details", "annotations", "images"):
        choice: JsonObject = {"index": 0, "delta": {name: [detail]}}
        assert len(list(DIALECT.stream(sent()).feed(frame({"choices": [choice]})))) == 1
    assert len(list(DIALECT.stream(sent()).feed(delta(None, audio={"data": "QQ"})))) == 1


def test_members_come_with_the_first_chunk_of_their_event_or_alone() -> None:
    first: JsonValue = [{"index": 0, "delta": {"content": "Hi"}}, {"index": 1, "delta": {"content": "Ho"}}]
    events, _ = played(
        sent(choices=2), bare(first, a=1), bare(b=2), delta(None, "stop"), delta(None, "stop", 1), bare(c=3), DONE
    )
    assert chunks(events)[:3] == [
        Chunk(0, "Hi", extras=Extras(answer={"a": 1})),
        Chunk(1, "Ho"),
        Chunk(extras=Extras(answer={"b": 2})),
    ]
    assert chunks(events)[-1] == Chunk(extras=Extras(answer={"c": 3}))


def test_members_that_each_event_repeats_are_told_once() -> None:
    told: JsonObject = {"citations": ["https://a.example"], "type": "message"}
    text: JsonValue = [{"index": 0, "delta": {"content": "Hi"}}]
    end: JsonValue = [{"index": 0, "delta": {}, "finish_reason": "stop"}]
    events, _ = played(
        sent(), bare(text, **told), bare(text, **told), bare(end, **{**told, "type": "end"}, provider="Groq"), DONE
    )
    assert [extras.answer for extras in extras_in(events)] == [told, {"type": "end", "provider": "Groq"}]


def test_empty_members_are_not_told() -> None:
    events, _ = played(sent(), bare(prompt_logprobs=None, warnings=[]), delta("Hi"), delta(None, "stop"), DONE)
    assert extras_in(events) == []


def test_a_choice_s_own_members_may_follow_its_end() -> None:
    late: JsonObject = {"index": 0, "finish_reason": None, "content_filter_results": {"hate": {"filtered": False}}}
    events = unbroken(sent("azure"), delta("Hi"), delta(None, "stop"), frame({"choices": [late]}), DONE)
    assert chunks(events)[-1] == Chunk(extras=Extras(choice={"content_filter_results": {"hate": {"filtered": False}}}))


def test_the_older_form_of_a_streamed_call_is_a_tool_call() -> None:
    events, _ = played(
        sent(),
        delta(None, function_call={"name": "f", "arguments": ""}),
        delta(None, function_call={"arguments": "{}"}),
        delta(None, "function_call"),
        DONE,
    )
    made = call_id(None, 0, 0)
    assert [call for chunk in chunks(events) for call in chunk.tool_calls] == [
        ToolCallDelta(0, made, "f"),
        ToolCallDelta(0, arguments="{}"),
    ]
    assert chunks(events)[-1].finish_reason == "tool_calls"


def test_marks_are_cited_across_events_where_the_sources_came_first() -> None:
    numbered: list[JsonValue] = [{"link": "https://a.example", "refer": "ref_1"}]
    text: list[bytes] = []
    sources = b""
    for listed, mark in (({"web_search": numbered}, "ref_1"), ({"citations": ["https://a.example"]}, "1")):
        text = [bare([{"index": 0, "delta": {"content": piece}}]) for piece in ("Oslo", " [", *mark, "].")]
        sources = bare([{"index": 0, "delta": {"role": "assistant"}}], **listed)
        citation: JsonObject = {"url": "https://a.example", "title": "", "start_index": 5, "end_index": 7 + len(mark)}
        cited: JsonObject = {"type": "url_citation", "url_citation": citation}
        events, _ = played(sent(), sources, *text, delta(None, "stop"), DONE)
        assert [extras.annotations for extras in extras_in(events) if extras.annotations] == [(cited,)]
    events, _ = played(sent(), text[0], sources, *text[1:], delta(None, "stop"), DONE)
    assert not any(extras.annotations for extras in extras_in(events))


def test_the_tier_of_any_event_is_that_of_the_answer() -> None:
    tier = frame({"choices": [{"index": 0, "delta": {"content": "b"}}], "service_tier": "flex"})
    events, _ = played(sent(), delta("a"), tier, delta("c"), delta(None, "stop"), DONE)
    assert chunks(events)[-1].service_tier == "flex"


def test_a_character_in_two_events_is_one() -> None:
    halves = b'data: {"choices":[{"index":0,"delta":{"content":"%b"}}]}\n\n'
    events = unbroken(sent(), halves % rb"a\ud83d", halves % rb"\ude00b", delta(None, "stop"), DONE)
    assert text(events) == "a\U0001f600b"


def test_an_unknown_member_in_every_event_is_passed_on_and_not_kept() -> None:
    decoder = DIALECT.stream(sent())
    list(decoder.feed(delta("Hi")))

    with growth() as grown:
        for number in range(5_000):
            choice: JsonObject = {"index": 0, "delta": {"content": "x", f"n{number}": "y" * 100}}
            assert len(list(decoder.feed(bare([choice], **{f"m{number}": 1})))) == 1
    assert grown.bytes < 2 * 2**20


def test_an_event_of_text_costs_no_more_calls_than_it_takes() -> None:
    """Each function call adds to the cost of every token of every response."""
    events = b"".join(bare([{"index": 0, "delta": {"content": "x"}, "logprobs": None}], usage=None) for _ in range(100))
    decoder = DIALECT.stream(sent())
    list(decoder.feed(delta("Hi")))
    calls = Counter[str]()
    sys.setprofile(lambda frame, event, arg: calls.update((event,)))
    try:
        assert len(list(decoder.feed(events))) == 100
    finally:
        sys.setprofile(None)
    assert calls["call"] <= 1_110
