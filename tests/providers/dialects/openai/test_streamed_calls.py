"""Deltas of tool calls, as vendors cut them."""

from dataclasses import replace

import orjson
import pytest

from providers.completion import ToolCallDelta
from providers.dialects.openai.streamed_calls import StreamedCalls
from providers.dialects.shared.read_json import call_id
from providers.failure import UpstreamError
from providers.json_types import JsonObject, JsonValue
from tests.providers.dialects.kit import chunks
from tests.providers.dialects.openai.kit import pieces, played, sent, unbroken
from tests.support.looped import looped


def reader() -> StreamedCalls:
    return StreamedCalls(sent(), 0)


def piece(index: int, arguments: str, **more: JsonValue) -> JsonObject:
    return {"index": index, "function": {"arguments": arguments}, **more}


def test_the_first_piece_names_the_call_and_the_others_continue_it() -> None:
    calls = reader()
    begun: JsonObject = {"index": 0, "id": "c1", "type": "function", "function": {"name": "f", "arguments": ""}}
    assert calls.read([begun], "a") == (ToolCallDelta(0, "c1", "f"),)
    assert calls.read([piece(0, '{"a"'), piece(0, ":1}")], "a") == (
        ToolCallDelta(0, arguments='{"a"'),
        ToolCallDelta(0, arguments=":1}"),
    )
    assert calls.count == 1


@looped("function", [{}, {"arguments": ""}, {"arguments": None}])
def test_a_function_called_without_arguments_ends_with_an_empty_object(function: JsonObject) -> None:
    calls = reader()
    bare: list[JsonValue] = [{"index": at, "id": f"c{at}", "function": {"name": "f", **function}} for at in range(3)]
    calls.read(bare, "a")
    calls.read([{"index": 0, "function": {**function}}, piece(1, "{"), {"index": 0, "id": "c3", **bare_of("g")}], "a")
    calls.read([{"index": 4, "id": "c4", "type": "custom", "custom": {"name": "run", "input": ""}}], "a")
    assert calls.rest() == tuple([ToolCallDelta(at, arguments="{}") for at in (0, 2, 3)])
    assert calls.rest() == ()


def bare_of(name: str) -> JsonObject:
    return {"function": {"name": name, "arguments": ""}}


def test_arguments_are_read_in_runs_once_the_first_have_come() -> None:
    calls = reader()
    calls.read([{"index": 0, "id": "c0", **bare_of("f")}], "a")
    assert calls.passing(0) is None
    calls.read([piece(0, "{")], "a")
    assert calls.passing(0) == 0
    calls.read([{"index": 0, "id": "c1", **bare_of("g")}], "a")
    assert calls.passing(0) is None


def test_a_custom_tool_s_call_has_its_text() -> None:
    calls = reader()
    begun: JsonObject = {"index": 0, "id": "c1", "type": "custom", "custom": {"name": "run", "input": "ls"}}
    assert calls.read([begun], "a") == (ToolCallDelta(0, "c1", "run", "ls", "custom"),)
    assert calls.read([{"index": 0, "custom": {"input": " -l"}}], "a") == (
        ToolCallDelta(0, arguments=" -l", kind="custom"),
    )


def test_the_text_of_a_custom_tool_that_was_sent_as_a_function_comes_with_its_arguments() -> None:
    calls = StreamedCalls(replace(sent("groq"), custom_tools=frozenset({"run"})), 0)
    begun: JsonObject = {"index": 0, "id": "c1", "function": {"name": "run", "arguments": ""}}
    assert calls.read([begun], "a") == (ToolCallDelta(0, "c1", "run", kind="custom"),)
    assert calls.read([piece(0, '{"input":"l')], "a") == (ToolCallDelta(0, arguments="l", kind="custom"),)
    assert calls.read([piece(0, 's"}')], "a") == (ToolCallDelta(0, arguments="s", kind="custom"),)
    assert calls.rest() == ()


def test_arguments_of_a_custom_tool_that_are_no_text_come_at_the_end() -> None:
    calls = StreamedCalls(replace(sent("groq"), custom_tools=frozenset({"run"})), 0)
    begun: JsonObject = {"index": 0, "id": "c1", "function": {"name": "run", "arguments": '{"cmd":'}}
    assert calls.read([begun], "a") == (ToolCallDelta(0, "c1", "run", kind="custom"),)
    assert calls.read([piece(0, '"ls"}')], "a") == ()
    assert calls.rest() == (ToolCallDelta(0, arguments='{"cmd":"ls"}', kind="custom"),)
    assert calls.rest() == ()


def test_a_call_without_an_id_gets_one_of_its_own() -> None:
    calls = reader()
    begun: JsonObject = {"function": {"name": "f", "arguments": "{}"}}
    assert calls.read([begun], "a") == (ToolCallDelta(0, call_id("a", 0, 0), "f", "{}"),)


def test_further_members_of_a_call_come_with_it() -> None:
    extra: JsonObject = {"extra_content": {"google": {"thought_signature": "QQ"}}}
    begun: JsonObject = {"index": 0, "id": "c1", "function": {"name": "f", "arguments": "{}"}, **extra}
    (delta,) = reader().read([begun], "a")
    assert delta.extra == extra


@looped("function", [{}, {"function": None}, {"function": {}}, {"function": {"name": "", "arguments": ""}}])
def test_a_name_may_come_after_the_id(function: JsonObject) -> None:
    calls = reader()
    assert calls.read([{"index": 0, "id": "c1", "type": "function", "x": 1, **function}], "a") == ()
    assert calls.count == 0
    named: JsonObject = {"index": 0, "function": {"name": "f", "arguments": "{"}}
    assert calls.read([named], "a") == (ToolCallDelta(0, "c1", "f", "{", extra={"x": 1}),)
    assert calls.read([piece(0, "}"), {"index": 0, "id": "c1"}], "a") == (
        ToolCallDelta(0, arguments="}"),
        ToolCallDelta(0),
    )
    assert calls.rest() == ()


def test_a_name_may_be_repeated_in_every_piece() -> None:
    calls = reader()
    begun: JsonObject = {"index": 0, "id": "c1", "function": {"name": "f", "arguments": "{"}}
    more: JsonObject = {"index": 0, "id": "c1", "function": {"name": "f", "arguments": "}"}}
    assert calls.read([begun, more], "a") == (ToolCallDelta(0, "c1", "f", "{"), ToolCallDelta(0, arguments="}"))


@pytest.mark.parametrize("identity", [{}, {"id": "c1"}])
def test_a_name_in_two_pieces_is_refused_rather_than_cut(identity: JsonObject) -> None:
    calls = reader()
    begun: JsonObject = {"index": 0, "id": "c1", "function": {"name": "get_", "arguments": ""}}
    calls.read([begun], "a")
    with pytest.raises(UpstreamError, match="two names"):
        calls.read([{"index": 0, **identity, "function": {"name": "weather", "arguments": "{}"}}], "a")


def test_a_name_that_never_comes_is_no_call() -> None:
    calls = reader()
    assert calls.read([{"index": 0, "id": "c1"}], "a") == ()
    with pytest.raises(UpstreamError):
        calls.rest()


@looped(
    "entry",
    [
        None,
        7,
        {},
        {"index": 0},
        {"function": {}},
        {"custom": {"input": "x"}},
        {"id": 7},
        {"id": "c", "function": {"arguments": "{"}},
    ],
)
def test_a_call_of_nothing_is_no_answer(entry: JsonValue) -> None:
    with pytest.raises(UpstreamError):
        reader().read([entry], "a")


# Ends of calls --------------------------------------------------------------------------------------------------------


def _called(delta: JsonObject, reason: str | None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return b"data: " + orjson.dumps({"id": "a", "choices": [choice]}) + b"\n\n"


def _call(**function: str) -> JsonObject:
    return {"tool_calls": [{"index": 0, **({"id": "c"} if "name" in function else {}), "function": {**function}}]}


_BESIDE_EACH = [
    _called(_call(name="f", arguments=""), ""),
    *(_called(_call(arguments=part), "") for part in ('{"a":', "[1", ",2", "]}")),
]


@looped(
    "end",
    [
        pytest.param([_called({}, "tool_calls")], id="a reason follows"),
        pytest.param([_called({"content": " "}, ""), _called({}, "stop")], id="a text and a reason follow"),
        pytest.param([_called({}, "")], id="an empty event follows"),
        pytest.param([], id="nothing follows"),
    ],
)
@looped("size", [1, 100, 4096])
def test_an_empty_reason_beside_each_piece_of_a_call_ends_nothing_before_the_end(end: list[bytes], size: int) -> None:
    data = b"".join([*_BESIDE_EACH, *end, b"data: [DONE]\n\n"])
    events = unbroken(sent("openai_compatible"), *pieces(data, size))
    said = [call for chunk in chunks(events) for call in chunk.tool_calls]
    assert "".join(call.arguments for call in said) == '{"a":[1,2]}'
    assert [chunk.finish_reason for chunk in chunks(events) if chunk.finish_reason] == ["tool_calls"]


def test_an_empty_reason_beside_a_call_is_no_end_where_the_stream_is_cut() -> None:
    _, failure = played(sent("openai_compatible"), *_BESIDE_EACH)
    assert failure is not None
