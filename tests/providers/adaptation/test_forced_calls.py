"""Forced calls as response formats: the requests that become one, its schema, its instruction and the ids of its
calls."""

from dataclasses import replace
from typing import Any, cast

import orjson

from providers.adaptation.forced_calls import ONE, SEVERAL, forces_by_format, hold_to_call
from providers.capabilities import BY_FORMAT, NATIVE, Capabilities, Cell
from providers.constraints.compiled_checks import schema_check
from providers.constraints.constraint_styles import BY_PROMPT
from providers.emulation.plan_calls import plan_calls
from providers.json_types import JsonObject, JsonValue
from providers.unified_request import ChatPrompt, Params, UnifiedRequest
from tests.providers.dialects.anthropic.native_kit import own_request
from tests.providers.dialects.kit import chat_request, target_of, text_request, user
from tests.providers.kit import refusal_of
from tests.support.looped import looped


def table_of(schemas: Cell = NATIVE, forced: Cell = BY_FORMAT) -> Capabilities:
    return Capabilities(
        {
            "response_format.json_schema": schemas,
            "tools": NATIVE,
            "tool_choice.none": NATIVE,
            "tool_choice.required": forced,
            "tool_choice.named": forced,
        }
    )


TABLE = table_of()


def function(name: str, parameters: JsonObject | None = None) -> JsonObject:
    held: JsonObject = {"name": name, "description": f"It {name}s.", "strict": True}
    return {"type": "function", "function": held if parameters is None else {**held, "parameters": parameters}}


def named(name: str) -> JsonObject:
    return {"type": "function", "function": {"name": name}}


CITY: JsonObject = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
NODE: JsonObject = {"type": "object", "properties": {"next": {"$ref": "#"}, "of": {"$ref": "#/$defs/Of"}}}
TREE: JsonObject = {**NODE, "$defs": {"Of": {"type": "integer"}}}
LOOK, GROW, REST = function("look", CITY), function("grow", TREE), function("rest")


def forcing(tools: list[JsonObject], choice: JsonValue = "required", **params: object) -> UnifiedRequest:
    return chat_request(user("hi"), tools=tools, tool_choice=choice, **params)


def schema_for(request: UnifiedRequest) -> JsonObject:
    held, _ = hold_to_call(request, TABLE)
    form = cast(JsonObject, held.params["response_format"]["json_schema"])
    return cast(JsonObject, form["schema"])


@looped(
    ("params", "table", "forces"),
    [
        ({"tools": [LOOK], "tool_choice": "required"}, TABLE, True),
        ({"tools": [LOOK], "tool_choice": named("look")}, TABLE, True),
        ({"tools": [LOOK], "tool_choice": "auto"}, TABLE, False),
        ({"tools": [LOOK], "tool_choice": "none"}, TABLE, False),
        ({"tools": [], "tool_choice": "required"}, TABLE, False),
        ({"tools": [LOOK], "tool_choice": "required"}, table_of(forced=NATIVE), False),
    ],
)
def test_a_call_is_forced_by_format_where_the_vendor_cannot_be_made_to_call(
    params: Params, table: Capabilities, forces: bool
) -> None:
    assert forces_by_format(params, table) is forces


@looped(
    ("tools", "choice", "good", "bad"),
    [
        ([LOOK], "required", [{"city": "Rome"}], [{}, {"name": "look", "arguments": {"city": "Rome"}}]),
        ([LOOK, REST], named("rest"), [{}], [[]]),
        (
            [LOOK, GROW, REST],
            "required",
            [
                {"name": "look", "arguments": {"city": "Rome"}},
                {"name": "grow", "arguments": {"next": {"next": {"of": 3}}}},
                {"name": "rest", "arguments": {}},
            ],
            [
                {"name": "look", "arguments": {}},
                {"name": "grow", "arguments": {"next": {"of": "three"}}},
                {"name": "grow", "arguments": {"next": {"next": 1}}},
                {"name": "jump", "arguments": {}},
                {"arguments": {}},
                {"city": "Rome"},
            ],
        ),
    ],
)
def test_the_schema_lets_calls_of_the_tools_pass_and_nothing_else(
    tools: list[JsonObject], choice: JsonValue, good: list[JsonValue], bad: list[JsonValue]
) -> None:
    keeps = schema_check(schema_for(forcing(tools, choice)))
    assert [keeps(each) for each in good] == [True] * len(good)
    assert [keeps(each) for each in bad] == [False] * len(bad)


@looped(
    ("schemas", "tools", "words"),
    [
        (NATIVE, [REST], ONE + '{"name":"rest","description":"It rests."}'),
        (NATIVE, [LOOK], ONE + orjson.dumps({"name": "look", "description": "It looks.", "parameters": CITY}).decode()),
        (
            BY_PROMPT,
            [LOOK, REST],
            f'{SEVERAL}{{"name":"look","description":"It looks."}}\n{{"name":"rest","description":"It rests."}}',
        ),
    ],
)
def test_the_prompt_tells_the_tools_and_the_request_offers_none(
    schemas: Cell, tools: list[JsonObject], words: str
) -> None:
    beside: dict[str, Any] = {"parallel_tool_calls": False, "response_format": {"type": "json_object"}, "seed": 1}
    held, forced = hold_to_call(forcing(tools, **beside), table_of(schemas))
    assert held.params.keys() == {"response_format", "seed"}
    assert held.prompt == ChatPrompt(({"role": "system", "content": words}, *user_messages()))
    assert len(forced.names) == len(tools)


def user_messages() -> tuple[JsonObject, ...]:
    prompt = forcing([REST]).prompt
    assert isinstance(prompt, ChatPrompt)
    return prompt.messages


def test_ids_differ_between_choices_and_turns_of_a_conversation() -> None:
    talks = (chat_request(*[user("hi")] * turns, tools=[REST], tool_choice="required") for turns in (1, 2, 3))
    ids = [hold_to_call(talk, TABLE)[1].call_id(choice) for talk in talks for choice in (0, 1)]
    assert len(set(ids)) == 6
    assert {each[:5] for each in ids} == {"call_"}


@looped(
    ("request_", "param", "code"),
    [
        (forcing([{"type": "web_search"}, LOOK]), "tool_choice", "unsupported_parameter"),
        (forcing([LOOK], named("jump")), "tool_choice", "invalid_value"),
        (forcing([LOOK], {"type": "web_search"}), "tool_choice", "unsupported_parameter"),
        (forcing([function("look", {"type": "array"})]), "tools", "invalid_value"),
    ],
)
def test_what_cannot_be_a_forced_call_is_refused_by_name(request_: UnifiedRequest, param: str, code: str) -> None:
    refusal = refusal_of(hold_to_call, request_, TABLE)
    assert (refusal.param, refusal.code) == (param, code)


ROWS = [
    *[
        (name, "m")
        for name in ("ollama_native", "ollama", "deepinfra", "cohere_compat", "lm_studio", "cloudflare", "ai21")
    ],
    *[("zai", "glm-5.3"), ("moonshot", "kimi-k3"), ("deepseek", "deepseek-reasoner"), ("perplexity", "sonar")],
    *[("anthropic", "claude-opus-5-5"), ("bedrock", "anthropic.claude-sonnet-5-5")],
    *[("bedrock", "meta.llama3-3-70b-instruct-v1:0"), ("bedrock", "mistral.mistral-7b-instruct-v0:2")],
]


@looped(("name", "model"), ROWS)
def test_every_vendor_without_forced_calls_is_held_to_one_by_format(name: str, model: str) -> None:
    for request in (
        forcing([LOOK, REST], named("look")),
        text_request(tools=[LOOK], tool_choice=named("look")),
    ):
        plan = plan_calls(request, target_of(name, model))
        assert plan.finishing is not None
        assert plan.finishing.forced is not None
        assert plan.finishing.forced.names == ("look",)
        assert [check.field for check in plan.checks] == ["tool_choice"]
        assert "tool_choice" in plan.emulated
        assert "response_format" not in plan.emulated
        assert plan.request == request


@looped(("model", "native"), [("claude-opus-5-5", False), ("claude-haiku-4-5", True)])
def test_a_client_of_the_vendor_s_own_api_forces_calls_alike(model: str, native: bool) -> None:
    asked = own_request(tools=[{"name": "look", "input_schema": CITY}], tool_choice={"type": "any"})
    read = {**asked.params, "tools": [LOOK], "tool_choice": "required"}
    plan = plan_calls(replace(asked, params=cast(Params, read)), target_of("anthropic", model))
    assert (plan.calls[0].sent.native, plan.finishing is None) == (native, native)


@looped("name", ["ollama", "zai", "cloudflare", "ai21", "cohere_compat", "ollama_native"])
def test_no_tool_is_offered_where_none_may_be_called_and_the_vendor_has_no_such_choice(name: str) -> None:
    plan = plan_calls(chat_request(user("hi"), tools=[LOOK], tool_choice="none"), target_of(name, "m"))
    body = orjson.loads(plan.calls[0].sent.body)
    assert ("tool_choice" in plan.emulated, body.keys() & {"tools", "tool_choice"}) == (True, set())


HINTED: JsonObject = {
    **function("look", CITY),
    "cache_control": {"type": "ephemeral"},
    "defer_loading": True,
    "eager_input_streaming": True,
    "input_examples": [{"city": "Rome"}],
    "allowed_callers": ["direct"],
}


@looped("choice", ["required", named("look")])
@looped(("name", "model"), ROWS)
def test_members_of_tools_that_an_emulated_call_has_no_place_for_are_named(
    name: str, model: str, choice: JsonValue
) -> None:
    if (name, choice) == ("lm_studio", "required"):
        return  # LM Studio supports this choice itself
    other: JsonObject = {**LOOK, "function": {**cast(JsonObject, LOOK["function"]), "x": 1, "examples": [1]}}
    for tool in (HINTED, other):
        plan = plan_calls(forcing([tool, REST], choice, parallel_tool_calls=False), target_of(name, model))
        expected = ("cache_control", "defer_loading", "eager_input_streaming", "input_examples")
        assert plan.dropped == (expected if tool is HINTED else ("x", "examples"))
        assert plan.finishing is not None
        assert plan.finishing.forced is not None
