"""Calls of tools as blocks, whole and streamed."""

import pytest

from providers.completion import ToolCall, ToolCallDelta
from providers.failure import FailureKind, UpstreamError
from proxy.surfaces.anthropic.calls import MessageCalls, whole_calls
from tests.proxy.surfaces.anthropic.kit import objects


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


@pytest.mark.parametrize("arguments", ["[1]", "1", '{"x"', "null", "{} {}", "\ud800"])
def test_arguments_that_are_no_object_are_the_vendor_s_error(arguments: str) -> None:
    with pytest.raises(UpstreamError) as caught:
        whole_calls((ToolCall("a", "f", arguments),), "tool_calls")
    assert caught.value.failure.kind is FailureKind.MALFORMED


def test_a_call_that_the_limit_cut_off_is_left_out_of_a_whole_answer() -> None:
    assert whole_calls((ToolCall("a", "f", "{}"), ToolCall("b", "f", '{"x"')), "length") == [
        {"type": "tool_use", "id": "a", "name": "f", "input": {}}
    ]


def played(*deltas: ToolCallDelta, finish: str = "tool_calls") -> list[tuple[str, int, str]]:
    """The events' types with their index, and the name or piece that each brings."""
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
    assert played(
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
    assert played(
        ToolCallDelta(0, "a", "f", "{"),
        ToolCallDelta(1, "b", "g", "{"),
        ToolCallDelta(2, "c", "h"),
        ToolCallDelta(0, arguments='"x":1'),
        ToolCallDelta(1, arguments="}"),
        ToolCallDelta(0, arguments="}"),
    ) == [
        ("start", 2, "f"),
        ("delta", 2, "{"),
        ("delta", 2, '"x":1'),
        ("delta", 2, "}"),
        ("stop", 2, ""),
        ("start", 3, "g"),
        ("delta", 3, "{}"),
        ("stop", 3, ""),
        ("start", 4, "h"),
        ("stop", 4, ""),
    ]


def test_a_call_without_arguments_needs_no_piece() -> None:
    assert played(ToolCallDelta(0, "a", "f")) == [("start", 2, "f"), ("stop", 2, "")]


def test_a_custom_tool_s_text_is_its_only_argument() -> None:
    assert played(ToolCallDelta(0, "a", "f", 'say "x"', "custom"))[1] == ("delta", 2, '{"input":"say \\"x\\""}')


def test_white_space_behind_a_call_that_has_ended_means_nothing() -> None:
    ended = (ToolCallDelta(0, "a", "f", "{}"), ToolCallDelta(1, "b", "g", "{}"))
    assert played(*ended, ToolCallDelta(0, arguments="\n")) == played(*ended)
    with pytest.raises(UpstreamError):
        played(*ended, ToolCallDelta(0, arguments="x"))


@pytest.mark.parametrize("place", [0, 1])
def test_a_streamed_call_that_makes_no_sense_breaks_the_stream(place: int) -> None:
    pieces = ["{}", "{}"]
    pieces[place] = "[1"
    deltas = (ToolCallDelta(0, "a", "f", pieces[0]), ToolCallDelta(1, "b", "g", pieces[1]))
    with pytest.raises(UpstreamError):
        played(*deltas)
    assert played(*deltas, finish="length")[-1][0] == "stop"


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
