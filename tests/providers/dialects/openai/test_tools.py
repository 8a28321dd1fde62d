"""Tools and tool choices in each vendor's form: its own types beside functions, and others refused by name."""

from dataclasses import replace
from typing import cast

import orjson
import pytest

from providers.completion import ToolCall, ToolCallDelta
from providers.dialect import UpstreamRequest
from providers.dialects.openai.tools import with_fitting_names
from providers.failure import Refusal
from providers.json_types import JsonObject, JsonValue
from providers.profiles.load_profiles import load_profiles
from providers.unified_request import ChatPrompt, Operation, Params
from tests.providers.dialects.kit import chunks
from tests.providers.dialects.openai.kit import DIALECT, body_of, chat, decoded, frame, refusal_of, target, unbroken
from tests.support.looped import looped

FUNCTION: JsonObject = {"type": "function", "function": {"name": "f"}}
CUSTOM: JsonObject = {"type": "custom", "custom": {"name": "grep"}}
SEARCH: JsonObject = {"type": "openrouter:web_search"}
BROWSER: JsonObject = {"type": "browser_search"}
KIMIS: JsonObject = {"type": "builtin_function", "function": {"name": "$web_search"}}
TOOL_ROWS = [
    name
    for name, profile in load_profiles().items()
    if profile.dialect == "openai"
    and (wire := target(name).model_profile.wires.get(Operation.CHAT))
    and "tools" in wire.accepts
]
MARKED: JsonObject = {**FUNCTION, "cache_control": {"type": "ephemeral"}}


@looped(
    ("row", "tool"),
    [("openai", CUSTOM), ("azure", CUSTOM), ("openrouter", SEARCH), ("groq", BROWSER), ("moonshot", KIMIS)],
)
def test_a_vendor_s_own_tool_stands_beside_functions(row: str, tool: JsonObject) -> None:
    assert body_of(chat({"tools": [FUNCTION, tool]}), target(row))["tools"] == [FUNCTION, tool]


@pytest.mark.parametrize(("row", "tool"), [("openai", SEARCH), ("together", BROWSER)])
def test_another_vendor_s_tool_is_refused_by_its_type(row: str, tool: JsonObject) -> None:
    refusal = refusal_of(chat({"tools": [FUNCTION, tool]}), target(row))
    assert refusal.param == "tools"
    assert f"no tools of type '{tool['type']}'" in refusal.message


def test_a_choice_of_a_type_that_the_vendor_has_not_is_refused() -> None:
    choice: JsonObject = {"type": "custom", "custom": {"name": "grep"}}
    params: Params = {"tools": [CUSTOM], "tool_choice": choice}
    assert body_of(chat(params), target("openai"))["tool_choice"] == choice
    params = {"tools": [FUNCTION], "tool_choice": choice}
    assert "no choice of type 'custom'" in refusal_of(chat(params), target("groq")).message


def test_a_choice_among_some_of_the_tools_goes_to_the_vendor_that_has_it() -> None:
    other: JsonObject = {"type": "function", "function": {"name": "g"}}
    choice: JsonObject = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [other]}}
    body = body_of(chat({"tools": [FUNCTION, other], "tool_choice": choice}), target("openai"))
    assert (body["tools"], body["tool_choice"]) == ([FUNCTION, other], choice)


def test_a_cache_marker_on_a_tool_goes_to_vendors_that_read_it_and_is_named_elsewhere() -> None:
    params: Params = {"tools": [MARKED, FUNCTION]}
    assert body_of(chat(params), target("openrouter"))["tools"] == [MARKED, FUNCTION]
    assert body_of(chat(params), target("fireworks"))["tools"] == [FUNCTION, FUNCTION]
    assert DIALECT.encode(chat(params), target("fireworks")).dropped == ("cache_control",)


BARE: JsonObject = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
FILLED: JsonObject = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}


@looped("row", ["openai", "azure", "azure_v1"])
def test_a_bare_object_of_parameters_has_properties_where_the_vendor_refuses_it_without(row: str) -> None:
    assert body_of(chat({"tools": [BARE, CUSTOM]}), target(row))["tools"] == [FILLED, CUSTOM]


@looped("row", ["groq", "openrouter", "vllm", "openai_compatible"])
def test_a_bare_object_of_parameters_stays_for_other_vendors(row: str) -> None:
    assert body_of(chat({"tools": [BARE]}), target(row))["tools"] == [BARE]


@looped("row", ["openai", "fireworks", "ollama", "vllm"])
def test_one_call_at_a_time_asks_for_nothing_without_tools(row: str) -> None:
    assert "parallel_tool_calls" not in body_of(chat({"parallel_tool_calls": False}), target(row))


def test_one_call_at_a_time_is_kept_or_refused_beside_tools() -> None:
    params: Params = {"tools": [FUNCTION], "parallel_tool_calls": False}
    assert body_of(chat(params), target("openai"))["parallel_tool_calls"] is False
    for row in ("fireworks", "together", "tgi", "lm_studio", "ollama"):
        assert refusal_of(chat(params), target(row)).param == "parallel_tool_calls"


AS_FUNCTION: JsonObject = {"type": "function", "function": {"name": "grep"}}


@looped("row", ["mistral", "groq", "xai", "openrouter", "deepseek", "fireworks", "together", "cerebras", "moonshot"])
def test_a_custom_tool_is_a_function_with_one_text_where_the_vendor_has_functions_only(row: str) -> None:
    tools: list[JsonObject] = [FUNCTION, {**CUSTOM, "custom": {"name": "grep", "description": "d"}}]
    call = DIALECT.encode(chat({"tools": tools}), target(row))
    (kept, made) = orjson.loads(call.body)["tools"]
    function = made["function"]
    assert (kept, made["type"], function["name"], function["description"]) == (FUNCTION, "function", "grep", "d")
    assert function["parameters"]["required"] == ["input"]
    assert (call.emulated, call.custom_tools) == (("tools",), frozenset({"grep"}))


def test_a_choice_of_a_custom_tool_is_one_of_its_function_there() -> None:
    choice: JsonObject = {"type": "custom", "custom": {"name": "grep"}}
    body = body_of(chat({"tools": [CUSTOM], "tool_choice": choice}), target("groq"))
    assert body["tool_choice"] == AS_FUNCTION


def test_a_custom_tool_with_a_grammar_is_refused_where_the_vendor_has_functions_only() -> None:
    form: JsonObject = {"type": "grammar", "grammar": {"syntax": "regex", "definition": "a"}}
    tool: JsonObject = {"type": "custom", "custom": {"name": "grep", "format": form}}
    with pytest.raises(Refusal) as caught:
        DIALECT.encode(chat({"tools": [tool]}), target("groq"))
    assert caught.value.param == "tools"
    assert body_of(chat({"tools": [tool]}), target("openai"))["tools"] == [tool]


def custom_call_sent(row: str) -> UpstreamRequest:
    return DIALECT.encode(chat({"tools": [FUNCTION, CUSTOM]}), target(row))


def test_a_call_of_a_custom_tool_comes_back_as_one() -> None:
    calls: list[JsonValue] = [
        {"id": "c1", "type": "function", "function": {"name": "grep", "arguments": '{"input":"-r x"}'}},
        {"id": "c2", "type": "function", "function": {"name": "f", "arguments": '{"input":"y"}'}},
    ]
    message: JsonObject = {"role": "assistant", "content": None, "tool_calls": calls}
    body: JsonObject = {"choices": [{"index": 0, "finish_reason": "tool_calls", "message": message}]}
    (choice,) = decoded(custom_call_sent("groq"), body).choices
    assert choice.tool_calls == (ToolCall("c1", "grep", "-r x", "custom"), ToolCall("c2", "f", '{"input":"y"}'))


@pytest.mark.parametrize("ended_apart", [True, False])
def test_a_streamed_call_of_a_custom_tool_comes_back_as_one(ended_apart: bool) -> None:
    def delta(*calls: JsonObject, end: str | None = None) -> bytes:
        held: JsonObject = {"index": 0, "delta": {"tool_calls": [*calls]}, "finish_reason": end}
        return frame({"id": "a", "choices": [held]})

    first: JsonObject = {"index": 0, "id": "c1", "function": {"name": "grep", "arguments": '{"inp'}}
    rest: JsonObject = {"index": 0, "function": {"arguments": 'ut":"-r x"}'}}
    other: JsonObject = {"index": 1, "id": "c2", "function": {"name": "f", "arguments": "{}"}}
    ended = (delta(other), delta(end="tool_calls")) if ended_apart else (delta(other, end="tool_calls"),)
    events = unbroken(custom_call_sent("groq"), delta(first), delta(rest), *ended, b"data: [DONE]\n\n")
    pieces = [piece for chunk in chunks(events) for piece in chunk.tool_calls]
    assert pieces == [
        ToolCallDelta(0, "c1", "grep", "", "custom"),
        ToolCallDelta(0, arguments="-r x", kind="custom"),
        ToolCallDelta(1, "c2", "f", "{}"),
    ]


def test_the_choice_that_is_the_default_is_left_out_where_there_is_no_field() -> None:
    body = body_of(chat({"tools": [FUNCTION], "tool_choice": "auto"}), target("cohere_compat"))
    assert body["tools"] == [FUNCTION]
    assert "tool_choice" not in body
    demanded = chat({"tools": [FUNCTION], "tool_choice": "required"})
    assert refusal_of(demanded, target("cohere_compat")).param == "tool_choice"


def test_for_the_choice_of_none_no_tool_is_offered_where_there_is_no_field() -> None:
    call = DIALECT.encode(chat({"tools": [FUNCTION], "tool_choice": "none"}), target("cohere_compat"))
    assert (call.emulated, b"tool" in call.body) == (("tool_choice",), False)


@looped("row", sorted(TOOL_ROWS))
def test_the_default_choice_is_never_an_error(row: str) -> None:
    for params in ({"tools": [FUNCTION], "tool_choice": "auto"}, {"tool_choice": "none"}):
        body_of(chat(cast(Params, params)), target(row))


LONG = "mcp__a_server_of_long_names__" + "x" * 60


def named(name: str, kind: str = "function") -> JsonObject:
    return {"type": kind, kind: {"name": name}}


@looped("row", ["openai", "groq", "deepseek"])
def test_a_name_that_openai_s_pattern_does_not_allow_is_changed_and_changed_back(row: str) -> None:
    called: JsonObject = {"id": "c", "type": "function", "function": {"name": LONG, "arguments": "{}"}}
    request = replace(
        chat({"tools": [named(LONG), named("a.b/c d"), named("f")], "tool_choice": named(LONG)}),
        prompt=ChatPrompt(
            (
                {"role": "user", "content": "q"},
                {"role": "assistant", "content": None, "tool_calls": [called]},
                {"role": "tool", "tool_call_id": "c", "content": "x"},
            )
        ),
    )
    sent = DIALECT.encode(request, target(row, "gpt-4o" if row == "openai" else "m"))
    body = orjson.loads(sent.body)
    short = LONG[:64]
    assert [tool["function"]["name"] for tool in body["tools"]] == [short, "a_b_c_d", "f"]
    assert body["tool_choice"] == named(short)
    assert body["messages"][1]["tool_calls"][0]["function"]["name"] == short
    assert sent.tool_names == {short: LONG, "a_b_c_d": "a.b/c d"}
    answer: JsonObject = {"id": "c", "type": "function", "function": {"name": short, "arguments": "{}"}}
    message: JsonObject = {"role": "assistant", "tool_calls": [answer]}
    whole = DIALECT.decode(
        sent, orjson.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]})
    )
    assert whole.choices[0].tool_calls[0].name == LONG
    stream = DIALECT.stream(sent)
    events = stream.feed(frame({"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, **answer}]}}]}))
    assert [call.name for chunk in chunks([*events]) for call in chunk.tool_calls] == [LONG]


def test_the_vendor_s_own_name_stays_beside_one_that_changes() -> None:
    called: JsonObject = {"id": "c", **KIMIS, "function": {"name": "$web_search", "arguments": "{}"}}
    turns: list[JsonObject] = [
        {"role": "assistant", "content": "", "tool_calls": [called]},
        {"role": "tool", "tool_call_id": "c", "name": "$web_search", "content": "{}"},
    ]
    request = replace(
        chat({"tools": [KIMIS, {"type": "function", "function": {"name": "a.b"}}]}), prompt=ChatPrompt(tuple(turns))
    )
    made, changed = with_fitting_names(request, target("moonshot").profile)
    assert made.prompt == request.prompt
    assert made.params["tools"] == [KIMIS, {"type": "function", "function": {"name": "a_b"}}]
    assert changed == {"a_b": "a.b"}


def test_two_long_names_that_begin_alike_stay_apart() -> None:
    tools = [named(LONG + "1"), named(LONG + "2"), named("f")]
    sent = DIALECT.encode(chat({"tools": tools}), target("openai"))
    first, second, third = [tool["function"]["name"] for tool in orjson.loads(sent.body)["tools"]]
    assert len({first, second, third}) == 3
    assert (sent.tool_names[first], sent.tool_names[second], third) == (LONG + "1", LONG + "2", "f")
    assert max(len(first), len(second)) == 64


def test_a_list_of_allowed_tools_names_them_as_they_are_offered() -> None:
    choice: JsonObject = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [named(LONG)]}}
    body = body_of(chat({"tools": [named(LONG), named("f")], "tool_choice": choice}), target("openai"))
    assert LONG not in orjson.dumps(body).decode()
    assert LONG[:64] in orjson.dumps(body["tool_choice"]).decode()


def test_a_custom_tool_of_a_long_name_is_one_again_in_the_answer() -> None:
    sent = DIALECT.encode(chat({"tools": [named(LONG, "custom")]}), target("groq"))
    call: JsonObject = {"index": 0, "id": "c", "function": {"name": LONG[:64], "arguments": '{"input":"x"}'}}
    stream = DIALECT.stream(sent)
    delta: JsonObject = {"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}
    pieces = [piece for chunk in chunks([*stream.feed(frame(delta))]) for piece in chunk.tool_calls]
    assert (pieces[0].name, pieces[0].kind, "".join(piece.arguments for piece in pieces)) == (LONG, "custom", "x")


def test_names_that_fit_and_names_for_an_engine_are_left_alone() -> None:
    plain = chat({"tools": [named("f")]})
    assert with_fitting_names(plain, target("openai").profile) == (plain, {})
    assert with_fitting_names(plain, target("openai").profile)[0] is plain
    assert body_of(chat({"tools": [named(LONG)]}), target("vllm"))["tools"] == [named(LONG)]
