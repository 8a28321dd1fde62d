"""Tool calls as blocks, non-streaming and streamed."""

import json

import pytest

from providers.completion import ToolCall, ToolCallDelta
from providers.failure import UpstreamError
from providers.json_types import JsonValue
from proxy.surfaces.anthropic.calls import MessageCalls, whole_calls
from tests.proxy.surfaces.anthropic.kit import objects
from tests.support.looped import looped


def test_a_whole_call_has_its_arguments_as_an_object() -> None:
    calls = (
        ToolCall("a", "f", '{"x": 1}', extra={"caller": {"type": "code"}, "extra_content": {}}),
        ToolCall("b", "g", " "),
        ToolCall("c", "h", "free text", "custom"),
    )
    assert whole_calls(calls, "tool_calls") == [
        {"caller": {"type": "code"}, "type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}},
        {"type": "tool_use", "id": "b", "name": "g", "input": {}},
        {"type": "tool_use", "id": "c", "name": "h", "input": {"input": "free text"}},
    ]


NO_OBJECTS = ("[1]", "1", "null", "{'a': 1}", "{bad", "{1:2}", "{,", "x", "\ud800", "\u00a0{}")
"""Arguments that do not begin like an object."""


@looped("arguments", [*NO_OBJECTS, '{"x"', "{", "{} {}"])
def test_arguments_that_are_no_object_become_an_argument(arguments: str) -> None:
    assert whole_calls((ToolCall("a", "f", arguments), ToolCall("b", "g", "{}")), "tool_calls") == [
        {"type": "tool_use", "id": "a", "name": "f", "input": {"arguments": arguments}},
        {"type": "tool_use", "id": "b", "name": "g", "input": {}},
    ]


def test_a_call_that_the_limit_cut_off_is_left_out_of_a_whole_answer() -> None:
    assert whole_calls((ToolCall("a", "f", "{}"), ToolCall("b", "f", '{"x"')), "length") == [
        {"type": "tool_use", "id": "a", "name": "f", "input": {}}
    ]


def event_summaries(*deltas: ToolCallDelta, finish: str = "tool_calls") -> list[tuple[str, int, str]]:
    """Return the events' types with their index, and the name or the partial JSON of each."""
    calls, index, stream = MessageCalls(), 2, b""
    for delta in deltas:
        frames, index = calls.add(delta, index)
        stream += frames
    frames, index = calls.finish(index, finish)
    told = []
    for each in objects(stream + frames):
        block, delta_ = each.get("content_block"), each.get("delta")
        shown = block.get("name") if isinstance(block, dict) else None
        shown = delta_.get("partial_json") if isinstance(delta_, dict) else shown
        at = each["index"]
        assert isinstance(at, int)
        told.append((str(each["type"]).removeprefix("content_block_"), at, str(shown or "")))
    return told


def test_calls_one_after_another_are_streamed_as_they_come() -> None:
    assert event_summaries(
        ToolCallDelta(0, "a", "f", '{"x":'),
        ToolCallDelta(0, arguments="1}"),
        ToolCallDelta(1, "b", "g"),
        ToolCallDelta(1, arguments="{}"),
    ) == [
        ("start", 2, "f"),
        ("delta", 2, '{"x":'),
        ("delta", 2, "1}"),
        ("stop", 2, ""),
        ("start", 3, "g"),
        ("delta", 3, "{}"),
        ("stop", 3, ""),
    ]


def test_calls_side_by_side_wait_for_the_first() -> None:
    assert event_summaries(
        ToolCallDelta(0, "a", "f", "{"),
        ToolCallDelta(1, "b", "g", "{"),
        ToolCallDelta(2, "c", "h"),
        ToolCallDelta(0, arguments='"x":1'),
        ToolCallDelta(1, arguments="}"),
        ToolCallDelta(0, arguments="}"),
    ) == [
        ("start", 2, "f"),
        ("delta", 2, '{"x":1'),
        ("delta", 2, "}"),
        ("stop", 2, ""),
        ("start", 3, "g"),
        ("delta", 3, "{}"),
        ("stop", 3, ""),
        ("start", 4, "h"),
        ("stop", 4, ""),
    ]


def test_a_call_without_arguments_needs_no_piece_and_a_custom_tool_s_text_is_its_only_argument() -> None:
    assert event_summaries(ToolCallDelta(0, "a", "f")) == [("start", 2, "f"), ("stop", 2, "")]
    assert event_summaries(ToolCallDelta(0, "a", "f", 'say "x"', "custom"))[1] == (
        "delta",
        2,
        '{"input":"say \\"x\\""}',
    )


def test_white_space_behind_a_call_that_has_ended_means_nothing() -> None:
    ended = (ToolCallDelta(0, "a", "f", "{}"), ToolCallDelta(1, "b", "g", "{}"))
    assert event_summaries(*ended, ToolCallDelta(0, arguments="\n")) == event_summaries(*ended)
    with pytest.raises(UpstreamError):
        event_summaries(*ended, ToolCallDelta(0, arguments="x"))


def streamed(arguments: str, *, finish: str, beside: int, size: int) -> JsonValue:
    """Return the input of a call whose arguments are streamed in chunks of `size`, as a client reads it: the plain
    text if it is not JSON. The call is the first of several, or held until the first ends."""
    pieces = [arguments[start : start + size] for start in range(0, len(arguments), size)]
    first = (ToolCallDelta(0, "a", "f", '{"x":'), ToolCallDelta(1, "b", "g"))
    deltas = [*first[: 2 * beside], *([] if beside else [ToolCallDelta(0, "a", "f")])]
    deltas += [ToolCallDelta(beside, arguments=piece) for piece in pieces]
    events = event_summaries(*deltas, *[ToolCallDelta(0, arguments="1}")][:beside], finish=finish)
    assert [kind for kind, index, _ in events if index == 2 + beside][-1] == "stop"
    shown = "".join([shown for kind, index, shown in events if kind == "delta" and index == 2 + beside])
    try:
        value: JsonValue = json.loads(shown)
    except json.JSONDecodeError:
        return shown
    return value


@looped("finish", ["tool_calls", "length"])
@looped("size", [1, 2, 99])
@looped("beside", [0, 1])
@looped("arguments", [*NO_OBJECTS, *[f" \n{each}" for each in NO_OBJECTS]])
def test_streamed_arguments_that_are_no_object_become_one(arguments: str, beside: int, size: int, finish: str) -> None:
    assert streamed(arguments, finish=finish, beside=beside, size=size) == {"arguments": arguments}


@looped("size", [1, 2, 99])
@looped("arguments", ["{}", ' {"x": "\'"}', '\n{ "a":{}}\n'])
def test_streamed_arguments_that_are_an_object_stay_as_they_are(arguments: str, size: int) -> None:
    for beside in (0, 1):
        assert streamed(arguments, finish="tool_calls", beside=beside, size=size) == json.loads(arguments)


def test_streamed_arguments_that_turn_out_to_be_no_object_or_are_cut_off_end_as_they_came_unless_held() -> None:
    for broken in ('{"x": bad}', '{"x"', "{} {}"):
        assert streamed(broken, finish="tool_calls", beside=0, size=2) == broken
        assert streamed(broken, finish="tool_calls", beside=1, size=2) == {"arguments": broken}
    assert streamed("{", finish="tool_calls", beside=0, size=2) == {"arguments": "{"}
    for cut in ("{", ' {"x', '{"x": 1'):
        assert [streamed(cut, finish="length", beside=beside, size=1) for beside in (0, 1)] == [cut, cut]


def test_a_call_is_streamed_as_soon_as_it_begins_like_an_object() -> None:
    calls = MessageCalls()
    begun = ToolCallDelta(0, "a", "f", " "), ToolCallDelta(0, arguments="{"), ToolCallDelta(0, arguments=' "x')
    frames = [calls.add(delta, 0)[0].count(b"input_json_delta") for delta in begun]
    assert frames == [0, 0, 1]
    assert objects(calls.add(ToolCallDelta(0, arguments="y"), 1)[0])[0]["delta"] == {
        "type": "input_json_delta",
        "partial_json": "y",
    }


def test_a_hundred_thousand_pieces_side_by_side_are_looked_at_once() -> None:
    calls, index = MessageCalls(), 0
    _, index = calls.add(ToolCallDelta(0, "a", "f", '{"x":"'), index)
    _, index = calls.add(ToolCallDelta(1, "b", "g", '{"x":"'), index)
    for _ in range(50_000):
        _, index = calls.add(ToolCallDelta(0, arguments="}"), index)
        _, index = calls.add(ToolCallDelta(1, arguments="}"), index)
    for number in (0, 1):
        _, index = calls.add(ToolCallDelta(number, arguments='"}'), index)
    frames, index = calls.finish(index, "tool_calls")
    assert index == 2
    assert len(objects(frames)) == 4


def test_whether_a_call_is_open_is_told() -> None:
    calls = MessageCalls()
    assert (calls.is_open, calls.begun) == (False, False)
    calls.add(ToolCallDelta(0, "a", "f", "{"), 0)
    assert (calls.is_open, calls.begun) == (True, True)
    assert calls.close_if_complete() == b""
    calls.add(ToolCallDelta(0, arguments="}"), 1)
    assert calls.close_if_complete() == b""
    assert calls.is_open
