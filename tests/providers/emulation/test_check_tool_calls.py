"""The arguments of calls of strict tools are held against their parameters."""

from typing import cast

import pytest

from providers.completion import Chunk, ToolCallDelta
from providers.constraints.constraint_styles import Unenforceable
from providers.emulation.check_answer import MAX_CHECKED, compile_check
from providers.emulation.check_tool_calls import FinishedCalls, strict_tool_checks
from providers.json_types import JsonObject
from providers.unified_request import Params

SCHEMA: JsonObject = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


def params(*functions: JsonObject) -> Params:
    return cast(Params, {"tools": [{"type": "function", "function": function} for function in functions]})


def strict(name: str, schema: JsonObject) -> JsonObject:
    return {"name": name, "strict": True, "parameters": schema}


def test_only_strict_functions_are_checked() -> None:
    checks = strict_tool_checks(params(strict("f", SCHEMA), {"name": "g", "parameters": SCHEMA}))
    assert set(checks) == {"f"}
    keeps = compile_check(checks["f"])
    assert keeps('{"a": 1}') is None
    assert keeps('{"a": "1"}') == "it does not keep the schema"
    assert keeps("[]") == "it does not keep the schema"


def test_a_schema_too_large_to_be_checked_is_unenforceable() -> None:
    with pytest.raises(Unenforceable):
        strict_tool_checks(params(strict("f", {"description": "a" * MAX_CHECKED})))


def test_a_call_is_whole_when_its_choice_ends() -> None:
    checks = strict_tool_checks(params(strict("f", SCHEMA)))
    calls = FinishedCalls(checks)
    assert not [*calls.add(Chunk(0, tool_calls=(ToolCallDelta(0, "1", "f", '{"a"'),)))]
    assert not [*calls.add(Chunk(0, tool_calls=(ToolCallDelta(1, "2", "g", "{}"), ToolCallDelta(0, arguments=": 1}"))))]
    assert [*calls.add(Chunk(0, finish_reason="tool_calls"))] == [(checks["f"], '{"a": 1}')]


def test_a_call_that_was_cut_is_not_checked() -> None:
    calls = FinishedCalls(strict_tool_checks(params(strict("f", SCHEMA))))
    assert not [*calls.add(Chunk(0, finish_reason="length", tool_calls=(ToolCallDelta(0, "1", "f", '{"a"'),)))]


def test_ten_thousand_calls_are_each_checked_once() -> None:
    calls = FinishedCalls(strict_tool_checks(params(strict("f", SCHEMA))))
    for number in range(10_000):
        assert not [*calls.add(Chunk(0, tool_calls=(ToolCallDelta(number, str(number), "f", "{}"),)))]
    assert len([*calls.add(Chunk(0, finish_reason="tool_calls"))]) == 10_000
