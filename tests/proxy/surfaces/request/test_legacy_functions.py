"""Functions in the form that clients had before tools."""

import orjson
import pytest

from providers.completion import Choice, Chunk, Completion, ToolCall, ToolCallDelta
from providers.json_types import JsonObject, JsonValue
from providers.unified_request import ChatPrompt, Operation, UnifiedRequest
from proxy.errors import GatewayError
from proxy.surfaces.registry import SURFACES
from tests.proxy.surfaces.kit import FACTS
from tests.support.looped import looped

OPENAI = next(each for each in SURFACES if each.name == "openai")
WEATHER: JsonObject = {"name": "weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}


def parsed(messages: JsonValue = None, **fields: JsonValue) -> UnifiedRequest:
    asked = messages or [{"role": "user", "content": "x"}]
    body = {"model": "a/b", "messages": asked, **fields}
    return OPENAI.parse(Operation.CHAT, orjson.dumps(body), None)


def test_functions_become_tools_and_their_choice_the_tools_choice() -> None:
    request = parsed(functions=[WEATHER], function_call={"name": "weather"})
    assert request.params["tools"] == [{"type": "function", "function": WEATHER}]
    assert request.params["tool_choice"] == {"type": "function", "function": {"name": "weather"}}
    assert request.legacy_calls
    assert request.unknown is None
    assert parsed(functions=[WEATHER], function_call="auto").params["tool_choice"] == "auto"


@looped(
    ("fields", "problem"),
    [
        ({"functions": [WEATHER], "tools": []}, "'functions' cannot go with 'tools'"),
        ({"functions": {}}, "'functions' must be a list"),
        ({"functions": [{}]}, "'functions.0.name' must"),
        ({"functions": [WEATHER], "function_call": "required"}, "'function_call' must be"),
        ({"functions": [WEATHER], "function_call": {}}, "'function_call.name' must"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(fields: JsonObject, problem: str) -> None:
    with pytest.raises(GatewayError) as refused:
        parsed(**fields)
    assert problem in refused.value.facts.message


def test_each_result_answers_the_latest_call_of_its_function() -> None:
    call: JsonObject = {"name": "weather", "arguments": "{}"}
    prompt = parsed(
        [
            {"role": "user", "content": "x"},
            {"role": "assistant", "content": None, "function_call": call},
            {"role": "function", "name": "weather", "content": "5"},
            {"role": "assistant", "content": None, "function_call": call},
            {"role": "function", "name": "weather", "content": "6"},
        ]
    ).prompt
    assert isinstance(prompt, ChatPrompt)
    assert [message["role"] for message in prompt.messages] == ["user", "assistant", "tool", "assistant", "tool"]
    made = [each["id"] for message in prompt.messages for each in calls_of(message)]
    answered = [message["tool_call_id"] for message in prompt.messages if message["role"] == "tool"]
    assert made == answered
    assert len(set(made)) == 2
    assert "function_call" not in prompt.messages[1]


def calls_of(message: JsonObject) -> list[JsonObject]:
    calls = message.get("tool_calls")
    return [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []


def test_the_client_reads_the_call_in_its_own_form() -> None:
    renderer = OPENAI.renderer(parsed(functions=[WEATHER]), FACTS)
    call = ToolCall("c", "weather", "{}")
    body = orjson.loads(renderer.completion(Completion((Choice(0, "", "tool_calls", tool_calls=(call,)),), None)))
    assert body["choices"][0]["message"]["function_call"] == {"name": "weather", "arguments": "{}"}
    assert body["choices"][0]["finish_reason"] == "function_call"


def test_a_stream_has_the_pieces_of_the_call_in_that_form() -> None:
    renderer = OPENAI.renderer(parsed(functions=[WEATHER], stream=True), FACTS)
    chunks = [
        Chunk(tool_calls=(ToolCallDelta(0, "c", "weather"),)),
        Chunk(tool_calls=(ToolCallDelta(0, arguments="{}"),)),
        Chunk(finish_reason="tool_calls"),
    ]
    events = b"".join([renderer.chunk(chunk) for chunk in chunks]).split(b"\n\n")[:-1]
    choices = [orjson.loads(event.removeprefix(b"data: "))["choices"][0] for event in events]
    pieces = [choice["delta"]["function_call"] for choice in choices if "function_call" in choice["delta"]]
    assert pieces == [{"name": "weather", "arguments": ""}, {"arguments": "{}"}]
    assert choices[-1]["finish_reason"] == "function_call"
