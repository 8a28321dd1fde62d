"""Strict tools are sent in the vendor's strict form, and the gateway checks the arguments that the vendor does not
enforce."""

from functools import partial
from typing import cast

import pytest

from providers.capabilities import NO_PROMISE, Capabilities
from providers.completion import Chunk, ToolCallDelta
from providers.emulation import check_tool_calls
from providers.emulation.check_answer import MAX_CHECKED, AnswerCheck, compile_check
from providers.emulation.check_tool_calls import FinishedCalls, StrictTools, has_strict_tools
from providers.failure import Refusal
from providers.json_types import JsonObject
from providers.unified_request import Params
from tests.support.cpu_growth import growth
from tests.support.looped import looped
from tests.support.nightly import some

SCHEMA: JsonObject = {
    "type": "object",
    "properties": {"a": {"type": "integer"}},
    "required": ["a"],
    "additionalProperties": False,
}
AT_LEAST: JsonObject = {**SCHEMA, "properties": {"a": {"type": "integer", "minimum": 1}}}
NOWHERE = Capabilities({})


def strict(name: str, schema: JsonObject) -> JsonObject:
    return {"type": "function", "function": {"name": name, "strict": True, "parameters": schema}}


def loose(name: str, schema: JsonObject) -> JsonObject:
    return {"type": "function", "function": {"name": name, "parameters": schema}}


def checks_of(*tools: JsonObject, table: Capabilities = NOWHERE) -> dict[str, AnswerCheck]:
    held = StrictTools(table)
    for tool in tools:
        held.fitted(tool)
    return held.checks


def test_only_strict_functions_promise_their_arguments() -> None:
    assert has_strict_tools(cast(Params, {"tools": [loose("f", {}), strict("g", {})]}))
    assert not has_strict_tools(cast(Params, {"tools": [loose("f", {}), {"type": "web_search"}]}))
    assert not has_strict_tools({})


def test_where_nothing_is_promised_a_tool_is_not_strict_and_its_calls_are_checked() -> None:
    held = StrictTools(NOWHERE)
    assert held.fitted(strict("f", SCHEMA)) == loose("f", SCHEMA)
    assert held.fitted(loose("g", SCHEMA)) == loose("g", SCHEMA)
    assert set(held.checks) == {"f"}
    keeps = compile_check(held.checks["f"])
    assert keeps('{"a": 1}') is None
    assert keeps('{"a": "1"}') == "it does not satisfy the schema"
    assert keeps("[]") == "it does not satisfy the schema"


def test_what_the_vendor_enforces_is_not_checked() -> None:
    held = StrictTools(Capabilities({}, strict_tools="anthropic"))
    tool = strict("f", SCHEMA)
    assert held.fitted(tool) is tool
    assert not held.checks


def test_what_the_vendor_enforces_in_part_is_strict_in_that_part_and_checked_against_the_whole() -> None:
    held = StrictTools(Capabilities({}, strict_tools="anthropic"))
    told: JsonObject = {"type": "integer", "description": "(minimum: 1)"}
    assert held.fitted(strict("f", AT_LEAST)) == strict("f", {**SCHEMA, "properties": {"a": told}})
    assert compile_check(held.checks["f"])('{"a": 0}') is not None


def test_an_engine_that_may_ignore_it_is_checked() -> None:
    assert set(checks_of(strict("f", SCHEMA), table=Capabilities({}, verifies=True, strict_tools="any"))) == {"f"}


def test_more_strict_tools_than_the_vendor_takes_are_checked_instead() -> None:
    held = StrictTools(Capabilities({}, strict_tools="anthropic"))
    sent = [held.fitted(strict(f"f{number}", SCHEMA)) for number in range(22)]
    assert sum(bool(cast(JsonObject, tool["function"]).get("strict")) for tool in sent) == 20
    assert set(held.checks) == {"f20", "f21"}


def test_parameters_that_are_left_out_are_an_empty_object() -> None:
    held = StrictTools(Capabilities({}, strict_tools="openai"))
    sent = cast(JsonObject, held.fitted({"type": "function", "function": {"name": "f", "strict": True}})["function"])
    assert held.checks.keys() == {"f"} or sent["parameters"] is not None


def test_a_schema_too_large_to_be_checked_is_refused() -> None:
    with pytest.raises(Refusal):
        checks_of(strict("f", {"description": "a" * MAX_CHECKED}))


@looped("rules", some(["any", "openai", "anthropic", NO_PROMISE], 2))
def test_ten_thousand_strict_tools_cost_a_bounded_time(rules: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_tool_calls, "MAX_CHECKED", MAX_CHECKED // 8)  # both numbers of tools stop here
    wide: JsonObject = {**SCHEMA, "properties": {f"p{number}": {"type": "integer"} for number in range(500)}}

    def refused(count: int) -> None:
        with pytest.raises(Refusal, match="together"):
            checks_of(
                *(strict(f"f{number}", wide) for number in range(count)), table=Capabilities({}, strict_tools=rules)
            )

    assert growth(partial(refused, 2500), partial(refused, 10_000)) == ""


def test_a_call_is_whole_when_its_choice_ends() -> None:
    checks = checks_of(strict("f", SCHEMA))
    calls = FinishedCalls(checks)
    assert not [*calls.add(Chunk(0, tool_calls=(ToolCallDelta(0, "1", "f", '{"a"'),)))]
    assert not [*calls.add(Chunk(0, tool_calls=(ToolCallDelta(1, "2", "g", "{}"), ToolCallDelta(0, arguments=": 1}"))))]
    assert [*calls.add(Chunk(0, finish_reason="tool_calls"))] == [(checks["f"], '{"a": 1}')]


def test_a_call_that_was_cut_is_not_checked() -> None:
    calls = FinishedCalls(checks_of(strict("f", SCHEMA)))
    assert not [*calls.add(Chunk(0, finish_reason="length", tool_calls=(ToolCallDelta(0, "1", "f", '{"a"'),)))]


def test_ten_thousand_calls_are_each_checked_once() -> None:
    calls = FinishedCalls(checks_of(strict("f", SCHEMA)))
    for number in range(10_000):
        assert not [*calls.add(Chunk(0, tool_calls=(ToolCallDelta(number, str(number), "f", "{}"),)))]
    assert len([*calls.add(Chunk(0, finish_reason="tool_calls"))]) == 10_000
