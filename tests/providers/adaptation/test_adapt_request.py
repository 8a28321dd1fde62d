"""Requests are adapted for the target before they are planned, and each change is named in the plan."""

from collections.abc import Iterator

import orjson
import pytest

from providers.adaptation.adapt_request import adapt_request
from providers.emulation.plan_calls import CallPlan, plan_calls
from providers.json_types import JsonObject
from providers.target import Target
from providers.unified_request import ChatPrompt, UnifiedRequest
from tests.providers.dialects.anthropic import kit as anthropic
from tests.providers.dialects.bedrock.kit import HAIKU
from tests.providers.dialects.gemini import kit as gemini
from tests.providers.dialects.kit import chat_request, target_of, tool, user
from tests.providers.dialects.openai.kit import target
from tests.support.looped import looped

CALLED: JsonObject = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {"id": name, "type": "function", "function": {"name": "look", "arguments": "{}"}} for name in ("c1", "c2")
    ],
}
FIRST: JsonObject = {"role": "tool", "tool_call_id": "c1", "content": "one"}
SECOND: JsonObject = {"role": "tool", "tool_call_id": "c2", "content": "two"}
HURRY = user("hurry")
SPREAD = (user("go"), CALLED, FIRST, HURRY, SECOND)
ORDERED = (user("go"), CALLED, FIRST, SECOND, HURRY)

CHOICE: JsonObject = {
    "type": "allowed_tools",
    "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "look"}}]},
}
NATIVE = ("openai", "azure")
COHERE = target_of("cohere", "command-a-03-2025")
CONVERSE = target_of("bedrock", HAIKU, base_url="https://host")


def planned(request: UnifiedRequest, to: Target) -> tuple[CallPlan, JsonObject]:
    plan = plan_calls(request, to)
    (call,) = plan.calls
    body = orjson.loads(call.sent.body)
    assert isinstance(body, dict)
    return plan, body


def strings(value: object) -> Iterator[str]:
    """All strings in a body, in order."""
    match value:
        case str():
            yield value
        case dict():
            for member in value.values():
                yield from strings(member)
        case list():
            for member in value:
                yield from strings(member)
        case _:
            pass


@looped(
    "to",
    [target("openai"), target("vllm"), target("groq"), anthropic.TARGET, gemini.TARGET, CONVERSE, COHERE],
    ids=lambda to: to.profile.name,
)
def test_what_stood_between_a_call_and_its_result_reaches_every_vendor_behind_the_results(to: Target) -> None:
    plan, body = planned(chat_request(*SPREAD, tools=[tool("look")]), to)
    said = [text for text in strings(body) if text in ("one", "two", "hurry")]
    assert said == ["one", "two", "hurry"]
    assert "messages" in plan.emulated
    assert body == planned(chat_request(*ORDERED, tools=[tool("look")]), to)[1]


def test_anthropic_gets_all_results_first_in_the_turn_behind_the_calls() -> None:
    _, body = planned(chat_request(*SPREAD, tools=[tool("look")]), anthropic.TARGET)
    messages = body["messages"]
    assert isinstance(messages, list)
    turn = messages[-1]
    assert isinstance(turn, dict)
    content = turn["content"]
    assert isinstance(content, list)
    kinds = [block["type"] for block in content if isinstance(block, dict)]
    assert (len(messages), kinds) == (3, ["tool_result", "tool_result", "text"])


def test_a_conversation_in_order_and_a_request_without_tools_are_unchanged() -> None:
    for request in (
        chat_request(*ORDERED, tools=[tool("look")], tool_choice="auto"),
        chat_request(user("go")),
        UnifiedRequest(chat_request().operation, "m", ChatPrompt((user("go"),), True), {}),
    ):
        assert adapt_request(request, anthropic.TARGET) is None


@looped(
    "to",
    [
        *(target(name) for name in ("groq", "mistral", "deepseek", "xai", "openrouter", "vllm", "sglang")),
        *(target("openai_compatible"), target("ollama"), anthropic.TARGET, gemini.TARGET, CONVERSE, COHERE),
        target_of("watsonx", base_url="https://host/projects/p"),
    ],
    ids=lambda to: to.profile.name,
)
def test_a_choice_of_some_tools_offers_only_those_where_the_vendor_has_no_such_choice(to: Target) -> None:
    tools = [tool("look"), tool("jump")]
    plan, body = planned(chat_request(user("go"), tools=tools, tool_choice=CHOICE), to)
    assert "look" in [*strings(body)]
    assert "jump" not in [*strings(body)]
    assert "allowed_tools" not in [*strings(body)]
    assert "tool_choice" in plan.emulated


@pytest.mark.parametrize("row", NATIVE)
def test_a_choice_of_some_tools_stays_where_the_vendor_has_it(row: str) -> None:
    tools = [tool("look"), tool("jump")]
    plan, body = planned(chat_request(user("go"), tools=tools, tool_choice=CHOICE), target(row))
    assert (body["tools"], body["tool_choice"], plan.emulated) == (tools, CHOICE, ())


def test_a_choice_that_demands_one_of_some_tools_demands_one_of_those() -> None:
    choice: JsonObject = {
        "type": "allowed_tools",
        "allowed_tools": {"mode": "required", "tools": [{"type": "function", "function": {"name": "look"}}]},
    }
    request = chat_request(user("go"), tools=[tool("look"), tool("jump")], tool_choice=choice)
    plan, body = planned(request, target("ollama"))
    assert plan.finishing is not None
    assert plan.finishing.forced is not None
    assert (plan.finishing.forced.names, "jump" in [*strings(body)]) == (("look",), False)
    _, body = planned(request, anthropic.TARGET)
    assert body["tool_choice"] == {"type": "any"}
