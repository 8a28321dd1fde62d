"""The data of a choice besides text, reasoning and calls, as clients of every surface get it, non-streaming and
streamed."""

from typing import cast

import orjson

from providers.completion import Choice, Chunk, Completion, Extras, ToolCall, ToolCallDelta, Usage
from providers.emulation.collect_stream import Gatherer, to_chunks
from providers.json_types import JsonObject, JsonValue
from proxy.surfaces.completion_surface import CompletionSurface
from proxy.surfaces.response.extras import (
    choice_fields,
    delta_fields,
    message_fields,
    response_fields,
    text_fields,
)
from tests.proxy.surfaces.kit import FACTS, ROWS, USAGE, choices, complete, converse, every_row, objects, play
from tests.support.looped import looped

SIGNED: JsonObject = {
    "type": "reasoning.text",
    "text": "hm",
    "signature": "s",
    "format": "anthropic-claude-v1",
    "index": 0,
}
REDACTED: JsonObject = {"type": "reasoning.encrypted", "data": "QQ==", "format": "anthropic-claude-v1", "index": 1}
FOREIGN: JsonObject = {"type": "reasoning.encrypted", "data": "QQ==", "format": "google-gemini-v1", "index": 2}
SUMMARY: JsonObject = {"type": "reasoning.summary", "summary": "x", "format": "anthropic-claude-v1", "index": 3}
CITED: JsonObject = {
    "type": "url_citation",
    "url_citation": {"url": "u", "title": "t", "start_index": 0, "end_index": 2},
}
IMAGE: JsonObject = {"type": "image_url", "image_url": {"url": "data:image/png;base64,QQ=="}}
AUDIO: JsonObject = {"id": "a", "data": "QQ==", "transcript": "hi", "expires_at": 7}

EVERYTHING = Extras(
    reasoning_details=(SIGNED, REDACTED, FOREIGN, SUMMARY),
    annotations=(CITED,),
    images=(IMAGE,),
    audio=AUDIO,
    message={"executed_tools": [1]},
    choice={"content_filter_results": {"hate": {"filtered": False}}},
    answer={"prompt_filter_results": [], "x_groq": {"id": "g"}},
)
BLOCKS: list[JsonValue] = [
    {"type": "thinking", "thinking": "hm", "signature": "s"},
    {"type": "redacted_thinking", "data": "QQ=="},
]
MESSAGE: JsonObject = {
    "executed_tools": [1],
    "reasoning_details": [SIGNED, REDACTED, FOREIGN, SUMMARY],
    "thinking_blocks": BLOCKS,
    "annotations": [CITED],
    "images": [IMAGE],
    "audio": AUDIO,
}
DELTA: JsonObject = {
    **MESSAGE,
    "thinking_blocks": [
        {"type": "thinking", "thinking": "hm", "signature": "s", "index": 0},
        {"type": "redacted_thinking", "data": "QQ==", "index": 1},
    ],
    "annotations": [{**CITED, "index": 0}],
    "images": [{**IMAGE, "index": 0}],
}
CHOICE: JsonObject = {"content_filter_results": {"hate": {"filtered": False}}}
ANSWER: JsonObject = {"prompt_filter_results": [], "x_groq": {"id": "g"}}


def as_json(value: object) -> JsonValue:
    """Return the value after a JSON round trip."""
    read: JsonValue = orjson.loads(orjson.dumps(value))
    return read


def whole(row: CompletionSurface, choice: Choice, extra: JsonObject | None = None) -> JsonObject:
    body: JsonObject = orjson.loads(
        row.renderer(converse(row), FACTS).completion(Completion((choice,), USAGE, extra=extra))
    )
    return body


def stream(row: CompletionSurface, *events: Chunk | Usage, text: bool = False) -> list[JsonObject]:
    make = complete if text else converse
    return objects(play(row.renderer(make(row, stream=True, stream_options={"include_usage": True}), FACTS), *events))


def has(holder: JsonValue, members: JsonObject) -> bool:
    assert isinstance(holder, dict)
    return {name: holder.get(name) for name in members} == members


def test_each_kind_has_its_member() -> None:
    assert as_json(message_fields(EVERYTHING)) == MESSAGE
    assert as_json(choice_fields(EVERYTHING)) == CHOICE
    assert as_json(response_fields(EVERYTHING.answer)) == ANSWER
    assert (message_fields(None), choice_fields(None), response_fields(None), text_fields(None)) == ({}, {}, {}, {})
    assert message_fields(Extras()) == {}


def test_a_text_completion_shows_no_thinking() -> None:
    shown = {name: value for name, value in MESSAGE.items() if name not in ("reasoning_details", "thinking_blocks")}
    assert as_json(text_fields(EVERYTHING)) == {**shown, **CHOICE}


def test_the_vendor_s_own_never_replace_what_is_common() -> None:
    common: JsonObject = dict.fromkeys(
        (
            "role",
            "content",
            "refusal",
            "tool_calls",
            "reasoning",
            "reasoning_content",
            "index",
            "message",
            "delta",
            "text",
        ),
        1,
    )
    common |= dict.fromkeys(("logprobs", "finish_reason"), 1)
    extras = Extras(message=common, choice={**common, "native_finish_reason": "theirs"}, answer={"id": 1, "usage": 1})
    choice = Choice(0, "hi", "stop", "ours", extras=extras)
    for row in ROWS.values():
        body = whole(row, choice, {"system_fingerprint": "x", "model": "x", "object": "x", "choices": []})
        assert body["model"] == FACTS.model
        assert "system_fingerprint" not in body
        (rendered,) = choices(body)
        assert has(rendered, {"index": 0, "finish_reason": "stop", "native_finish_reason": "ours", "logprobs": None})
        assert has(rendered["message"], {"role": "assistant", "content": "hi", "refusal": None})
        given = complete(row)
        (text,) = choices(orjson.loads(row.renderer(given, FACTS).completion(Completion((choice,), USAGE))))
        assert has(text, {"index": 0, "text": "hi", "finish_reason": "stop", "native_finish_reason": "ours"})


@every_row
def test_a_whole_answer_has_everything(row: CompletionSurface) -> None:
    call = ToolCall("c", "f", "{}", extra={"extra_content": {"google": {"thought_signature": "s"}}})
    body = whole(row, Choice(0, "hi", "tool_calls", tool_calls=(call,), extras=EVERYTHING), ANSWER)
    assert has(body, ANSWER)
    (choice,) = choices(body)
    assert has(choice, CHOICE)
    assert has(choice["message"], MESSAGE)
    assert isinstance(choice["message"], dict)
    assert choice["message"]["tool_calls"] == [
        {
            "extra_content": {"google": {"thought_signature": "s"}},
            "id": "c",
            "type": "function",
            "function": {"name": "f", "arguments": "{}"},
        }
    ]


@every_row
@looped("alone", [False, True])
def test_a_stream_has_everything(row: CompletionSurface, alone: bool) -> None:
    first = Chunk(extras=EVERYTHING) if alone else Chunk(text="hi", extras=EVERYTHING)
    frames = stream(row, first, Chunk(text="!"), Chunk(finish_reason="stop"), USAGE)
    (frame,) = [each for each in frames if "x_groq" in each]
    assert has(frame, ANSWER)
    (choice,) = choices(frame)
    assert has(choice, {**CHOICE, "finish_reason": None})
    assert has(choice["delta"], {"role": "assistant", **DELTA})


@every_row
@looped("text", [False, True])
def test_what_comes_with_the_end_is_not_lost(row: CompletionSurface, text: bool) -> None:
    frames = stream(row, Chunk(text="hi"), Chunk(finish_reason="stop", extras=EVERYTHING), USAGE, text=text)
    joined: JsonObject = {}
    for frame in frames:
        for choice in choices(frame):
            joined |= {**frame, **choice, **cast("JsonObject", choice.get("delta") or {})}
    lists = {name: (MESSAGE if text else DELTA)[name] for name in ("annotations", "images")}
    wanted: JsonObject = {**CHOICE, **ANSWER, **lists, "finish_reason": "stop"}
    assert has(joined, wanted)
    assert sum(choice["finish_reason"] is not None for frame in frames for choice in choices(frame)) == 1


@every_row
@looped("text", [False, True])
@looped("place", [0, 1, 2])
def test_members_of_the_answer_alone_have_an_event(row: CompletionSurface, text: bool, place: int) -> None:
    events: list[Chunk | Usage] = [Chunk(text="hi"), Chunk(finish_reason="stop"), USAGE]
    events.insert(place, Chunk(extras=Extras(answer=ANSWER)))
    frames = stream(row, *events, text=text)
    assert sum(has(frame, ANSWER) for frame in frames) == 1
    said = [
        choice.get("text") or cast("JsonObject", choice.get("delta") or {}).get("content")
        for choice in choices(*frames)
    ]
    assert "".join(str(each) for each in said if each) == "hi"
    usages = [frame["usage"] for frame in frames if frame.get("usage")]
    assert len(usages) == 1


@every_row
def test_the_pieces_of_a_stream_join_to_the_whole(row: CompletionSurface) -> None:
    common: JsonObject = {"type": "reasoning.text", "format": "anthropic-claude-v1", "index": 0}
    pieces: list[JsonObject] = [{**common, "text": "h"}, {**common, "text": "m"}, {**common, "signature": "s"}]
    events = [
        Chunk(reasoning=str(piece.get("text", "")) or None, extras=Extras(reasoning_details=(piece,)))
        for piece in pieces
    ]
    deltas = [cast("JsonObject", choice["delta"]) for choice in choices(*stream(row, *events))]
    assert [delta["reasoning_details"] for delta in deltas] == [[piece] for piece in pieces]
    assert [delta.get("reasoning_content") for delta in deltas] == ["h", "m", None]
    assert [delta["thinking_blocks"] for delta in deltas] == [
        [{"type": "thinking", "thinking": "h", "index": 0}],
        [{"type": "thinking", "thinking": "m", "index": 0}],
        [{"type": "thinking", "thinking": "", "signature": "s", "index": 0}],
    ]


@every_row
def test_entries_of_a_stream_s_lists_are_numbered_through_each_choice(row: CompletionSurface) -> None:
    unnumbered: JsonObject = {"type": "reasoning.summary", "summary": "x"}
    own: JsonObject = {**IMAGE, "index": 7}
    both = Extras(reasoning_details=(unnumbered,), images=(IMAGE, IMAGE))
    events = [Chunk(extras=both), Chunk(1, extras=both), Chunk(extras=Extras(images=(own, IMAGE)))]
    deltas = [cast("JsonObject", choice["delta"]) for choice in choices(*stream(row, *events))]
    twice: list[JsonObject] = [{**IMAGE, "index": 0}, {**IMAGE, "index": 1}]
    assert [delta["images"] for delta in deltas] == [twice, twice, [own, {**IMAGE, "index": 3}]]
    assert deltas[0]["reasoning_details"] == [{**unnumbered, "index": 0}]


def test_pieces_of_a_block_of_thinking_share_a_place_of_their_own() -> None:
    text: JsonObject = {"type": "reasoning.text", "text": "a", "index": 1}
    hidden: JsonObject = {"type": "reasoning.encrypted", "data": "b", "index": 1}
    shown: dict[str, int] = {}
    found = [delta_fields(Extras(reasoning_details=(each,)), shown) for each in (text, text, hidden, text)]
    details = [cast("list[JsonObject]", each["reasoning_details"])[0] for each in found]
    assert [detail["index"] for detail in details] == [0, 0, 1, 0]


def test_entries_of_a_vendor_s_own_lists_are_numbered_too() -> None:
    shown: dict[str, int] = {}
    parts = Extras(message={"content_blocks": [{"a": 1}, {"b": 2}], "steps": ["x"]})
    assert delta_fields(parts, shown)["content_blocks"] == [{"a": 1, "index": 0}, {"b": 2, "index": 1}]
    again = delta_fields(parts, shown)
    assert (again["content_blocks"], again["steps"]) == ([{"a": 1, "index": 2}, {"b": 2, "index": 3}], ["x"])


def test_a_whole_answer_as_a_stream_and_back_loses_nothing() -> None:
    call = ToolCall("c", "f", "x", "custom", {"extra_content": {}})
    parts = Extras(EVERYTHING.reasoning_details, (CITED,), (IMAGE,), AUDIO, EVERYTHING.message, EVERYTHING.choice)
    first = Choice(0, "hi", "tool_calls", reasoning="hm", tool_calls=(call,), signature="s", extras=parts)
    completion = Completion((first, Choice(1, "ho", "stop")), USAGE, "fp", "flex", ANSWER)
    gatherer = Gatherer(2)
    for event in to_chunks(completion):
        gatherer.add(event)
    assert gatherer.completion() == completion


@every_row
def test_a_custom_call_is_rendered_as_one(row: CompletionSurface) -> None:
    body = whole(row, Choice(0, "", "tool_calls", tool_calls=(ToolCall("c", "f", "ls", "custom"),)))
    message = cast("JsonObject", choices(body)[0]["message"])
    assert message["tool_calls"] == [{"id": "c", "type": "custom", "custom": {"name": "f", "input": "ls"}}]
    deltas = [ToolCallDelta(0, "c", "f", "l", "custom"), ToolCallDelta(0, arguments="s", kind="custom")]
    frames = stream(row, *[Chunk(tool_calls=(delta,)) for delta in deltas])
    assert [cast("JsonObject", choice["delta"])["tool_calls"] for choice in choices(*frames)] == [
        [{"index": 0, "id": "c", "type": "custom", "custom": {"name": "f", "input": "l"}}],
        [{"index": 0, "custom": {"input": "s"}}],
    ]
