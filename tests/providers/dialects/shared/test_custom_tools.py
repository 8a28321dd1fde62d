"""Custom tools as functions with one text parameter."""

from providers.completion import ToolCall
from providers.dialects.shared.custom_tools import InputReader, as_functions, complete_call, input_text
from providers.json_types import JsonObject
from providers.unified_request import Params
from tests.providers.kit import refusal_of
from tests.support.looped import looped

CUSTOM: JsonObject = {
    "type": "custom",
    "custom": {"name": "sql", "description": "Runs SQL.", "format": {"type": "text"}},
}
PLAIN: JsonObject = {"type": "function", "function": {"name": "now"}}


def test_a_custom_tool_becomes_a_function_and_the_choice_of_it_too() -> None:
    given: Params = {"tools": [PLAIN, CUSTOM], "tool_choice": {"type": "custom", "custom": {"name": "sql"}}}
    params, names = as_functions(given)
    assert names == {"sql"}
    assert params["tools"][0] is PLAIN
    function = params["tools"][1]["function"]
    assert isinstance(function, dict)
    assert (function["name"], function["description"]) == ("sql", "Runs SQL.")
    assert params["tool_choice"] == {"type": "function", "function": {"name": "sql"}}
    assert given["tools"] == [PLAIN, CUSTOM]


def test_other_tools_stay_as_they_are() -> None:
    params: Params = {"tools": [PLAIN]}
    assert as_functions(params) == (params, frozenset())
    assert as_functions({}) == ({}, frozenset())


@looped("custom", [{}, {"name": ""}, {"name": "a", "format": {"type": "grammar", "grammar": {"syntax": "lark"}}}])
def test_a_custom_tool_without_a_name_or_with_a_grammar_is_refused(custom: JsonObject) -> None:
    assert refusal_of(as_functions, {"tools": [{"type": "custom", "custom": custom}]}).param == "tools"


@looped(
    ("arguments", "text"),
    [('{"input":"SELECT 1"}', "SELECT 1"), ("SELECT 1", "SELECT 1"), ("{}", "{}"), ('{"input":3}', '{"input":3}')],
)
def test_the_text_is_read_from_the_arguments_however_the_model_wrote_them(arguments: str, text: str) -> None:
    assert input_text(arguments) == text


def test_a_call_of_a_custom_tool_alone_is_changed() -> None:
    call = ToolCall("a", "sql", '{"input":"x"}')
    assert complete_call(call, frozenset()) is call
    assert complete_call(call, frozenset({"sql"})) == ToolCall("a", "sql", "x", "custom")


@looped(
    ("arguments", "text"),
    [
        (r'{"input":"abc', "abc"),
        (r'{"input":"abc\u00', "abc"),
        (r'{"input":"a\ud83d b"}', "a\ufffd b"),
        (r'{"input":"a\ud83d', "a\ufffd"),
        ('{"input":"a\nb"}', "a\nb"),
        (r'{"input":"a\qb\uZZ"}', r"a\qb\uZZ"),
        ('{"patch":"x', '{"patch":"x'),
    ],
)
def test_of_arguments_that_are_no_json_the_text_is_what_can_be_read(arguments: str, text: str) -> None:
    assert input_text(arguments) == text


def read(pieces: list[str]) -> list[str]:
    reader = InputReader()
    return [*[reader.add(piece) for piece in pieces], reader.rest()]


@looped(
    "arguments",
    [
        r'{ "input" : "a\n\u00e9\ud83d\ude00 \"q\" \\\ud83d\\ude00 end", "more": [1]}',
        r'{"input":"abc\u12',
        r'{"input":"a\ud83d b"}',
        r'{"input":"a\uZZ b\q"}',
        '{"why":"z","input":"x"}',
        '{"input":{"a":1}}',
        "*** Begin Patch\n",
        "{}",
        '{"input":""}',
        '{"input":"\\',
    ],
)
def test_a_streamed_text_is_that_of_the_whole_arguments_whatever_the_cuts(arguments: str) -> None:
    whole = input_text(arguments)
    assert "".join(read([arguments])) == whole
    assert "".join(read([*arguments])) == whole
    for at in range(len(arguments)):
        assert "".join(read([arguments[:at], arguments[at:]])) == whole


def test_a_text_comes_as_the_model_writes_it() -> None:
    assert read(['{"input":"', "one ", "two\\", "n", '"}']) == ["", "one ", "two", "\n", "", ""]


def test_many_pieces_are_read_in_linear_time() -> None:
    assert len("".join(read(['{"input":"', *["x\\n"] * 200_000, '"}']))) == 400_000
    assert "".join(read([" "] * 200_000)) == " " * 200_000


def test_a_whole_call_without_arguments_has_an_empty_object() -> None:
    assert complete_call(ToolCall("a", "f", ""), frozenset()) == ToolCall("a", "f", "{}")
    assert complete_call(ToolCall("a", "sql", ""), frozenset({"sql"})) == ToolCall("a", "sql", "", "custom")
    written = ToolCall("a", "sql", "", "custom")
    assert complete_call(written, frozenset()) is written
