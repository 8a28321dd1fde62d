"""Tools on Converse: definitions, the tool choice, and replacements for a choice that a model does not know."""

from providers.json_types import JsonObject, JsonValue
from providers.target import Target
from tests.providers.dialects.bedrock.kit import target
from tests.providers.dialects.kit import body_for, chat_request, refusal_for, sent_for
from tests.support.looped import looped

CLOSED: JsonObject = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
CLAUDE, LLAMA = target(), target("meta.llama3-3-70b-instruct-v1:0")
QWEN, R1 = target("qwen.qwen3-32b-v1:0"), target("deepseek.r1-v1:0")
FORCED = target("anthropic.claude-sonnet-5-5")


def tool(name: str = "look", **more: JsonValue) -> JsonObject:
    return {"type": "function", "function": {"name": name, **more}}


def named(name: str = "look") -> JsonObject:
    return {"type": "function", "function": {"name": name}}


def config(to: Target = CLAUDE, **params: object) -> JsonValue:
    params.setdefault("tools", [tool(), tool("now")])
    return body_for(chat_request(**params), to).get("toolConfig")


def spec(name: str, **more: JsonValue) -> JsonObject:
    schema: JsonObject = {"json": {"type": "object", "properties": {}}}
    return {"toolSpec": {"name": name, "inputSchema": schema, **more}}


def test_a_definition_says_all_that_the_client_said() -> None:
    given = tool("get weather", description="Looks.", parameters=CLOSED, strict=True)
    assert config(tools=[given, tool("now", description="", strict=False)]) == {
        "tools": [
            {
                "toolSpec": {
                    "name": "get_weather",
                    "description": "Looks.",
                    "inputSchema": {"json": CLOSED},
                    "strict": True,
                }
            },
            spec("now"),
        ]
    }


def test_names_are_fitted_and_led_back() -> None:
    sent = sent_for(chat_request(tools=[tool("get weather"), tool("x" * 70)]), CLAUDE)
    assert sent.tool_names == {"get_weather": "get weather", "x" * 64: "x" * 70}


@looped(("choice", "expected"), [("auto", None), ("required", {"any": {}}), (named(), {"tool": {"name": "look"}})])
def test_a_choice_is_said_in_the_service_s_words(choice: object, expected: JsonValue) -> None:
    found = config(tool_choice=choice)
    assert isinstance(found, dict)
    assert found.get("toolChoice") == expected
    assert found["tools"] == [spec("look"), spec("now")]


def test_where_no_tool_may_be_called_none_is_offered() -> None:
    sent = sent_for(chat_request(tools=[tool()], tool_choice="none"), CLAUDE)
    assert b"toolConfig" not in sent.body
    assert sent.emulated == ("tool_choice",)


def test_a_model_that_knows_no_named_choice_is_offered_that_tool_alone() -> None:
    sent = sent_for(chat_request(tools=[tool(), tool("now")], tool_choice=named("now")), QWEN)
    assert config(QWEN, tool_choice=named("now")) == {"tools": [spec("now")], "toolChoice": {"any": {}}}
    assert sent.emulated == ("tool_choice",)


@looped(
    ("choice", "own"),
    [
        ("auto", {"type": "auto", "disable_parallel_tool_use": True}),
        ("required", {"disable_parallel_tool_use": True}),
        (named(), {"disable_parallel_tool_use": True}),
    ],
)
def test_one_call_at_a_time_is_the_model_s_own_switch(choice: object, own: JsonValue) -> None:
    body = body_for(chat_request(tools=[tool()], tool_choice=choice, parallel_tool_calls=False), CLAUDE)
    assert body["additionalModelRequestFields"] == {"tool_choice": own}
    assert "additionalModelRequestFields" not in body_for(chat_request(parallel_tool_calls=False), CLAUDE)


@looped(
    ("to", "params", "param"),
    [
        (R1, {"tools": [tool()]}, "tools"),
        (R1, {"tools": [tool()], "tool_choice": "none"}, "tool_choice"),
        (LLAMA, {"tools": [tool()], "tool_choice": "required"}, "tool_choice"),
        (LLAMA, {"tools": [tool()], "tool_choice": named()}, "tool_choice"),
        (FORCED, {"tools": [tool()], "tool_choice": "required"}, "tool_choice"),
        (FORCED, {"tools": [tool()], "tool_choice": named()}, "tool_choice"),
        (QWEN, {"tools": [tool()], "parallel_tool_calls": False}, "parallel_tool_calls"),
        (CLAUDE, {"tools": [{"type": "web_search"}]}, "tools"),
    ],
)
def test_what_a_model_lacks_is_refused_by_name(to: Target, params: dict[str, object], param: str) -> None:
    refusal = refusal_for(chat_request(**params), to)
    assert (refusal.param, refusal.code) == (param, "unsupported_parameter")


@looped(
    ("params", "param"),
    [
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tools": [tool()], "tool_choice": named("other")}, "tool_choice"),
        ({"tools": [tool(), tool()]}, "tools"),
        ({"tools": [tool(parameters={"type": "array"})]}, "tools"),
    ],
)
def test_what_makes_no_sense_is_refused(params: dict[str, object], param: str) -> None:
    refusal = refusal_for(chat_request(**params), CLAUDE)
    assert (refusal.param, refusal.code) == (param, "invalid_value")


def test_a_choice_of_another_kind_is_refused() -> None:
    choice = {"type": "allowed_tools", "allowed_tools": {}}
    assert refusal_for(chat_request(tools=[tool()], tool_choice=choice), CLAUDE).code == "unsupported_parameter"


def test_no_tools_and_the_choice_of_none_say_nothing() -> None:
    assert config(tools=[]) is None
    assert sent_for(chat_request(tool_choice="none"), CLAUDE).emulated == ()


def test_a_tool_of_the_service_s_own_stands_beside_functions() -> None:
    nova = target("amazon.nova-pro-v1:0")
    for own in ({"type": "system_tool", "name": "nova_grounding"}, {"systemTool": {"name": "nova_grounding"}}):
        found = config(nova, tools=[tool(), own])
        assert found == {"tools": [spec("look"), {"systemTool": {"name": "nova_grounding"}}]}
    assert config(nova, tools=[{"systemTool": {"name": "nova_grounding"}}]) == {
        "tools": [{"systemTool": {"name": "nova_grounding"}}]
    }


def test_tools_that_other_vendors_run_are_refused_by_their_type() -> None:
    refusal = refusal_for(chat_request(tools=[tool(), {"type": "web_search"}]), CLAUDE)
    assert "no tools of the type 'web_search'" in refusal.message


def test_a_custom_tool_is_a_function_of_one_text() -> None:
    custom: JsonObject = {"type": "custom", "custom": {"name": "sql", "description": "Runs SQL."}}
    choice = {"type": "custom", "custom": {"name": "sql"}}
    sent = sent_for(chat_request(tools=[custom, tool()], tool_choice=choice), CLAUDE)
    assert sent.custom_tools == {"sql"}
    found = config(tools=[custom, tool()], tool_choice=choice)
    assert isinstance(found, dict)
    assert found["toolChoice"] == {"tool": {"name": "sql"}}
    assert "The whole input of the tool" in str(found["tools"])
    grammar: JsonObject = {"type": "custom", "custom": {"name": "sql", "format": {"type": "grammar"}}}
    assert "grammar" in refusal_for(chat_request(tools=[grammar]), CLAUDE).message


def test_a_marked_tool_has_a_cache_point_behind_it_on_claude_alone() -> None:
    marked = {**tool(), "cache_control": {"type": "ephemeral"}}
    point = {"cachePoint": {"type": "default"}}
    assert config(tools=[marked, tool("now")]) == {"tools": [spec("look"), point, spec("now")]}
    sent = sent_for(chat_request(tools=[marked]), target("amazon.nova-pro-v1:0"))
    assert sent.dropped == ("cache_control",)
