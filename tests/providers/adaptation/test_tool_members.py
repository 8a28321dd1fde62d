"""Fields of function tools that have no equivalent in the vendor's form of a tool."""

import orjson

from providers.adaptation.tool_members import other_members
from providers.emulation.plan_calls import plan_calls
from providers.json_types import JsonObject, JsonValue
from tests.providers.dialects.kit import chat_request, target_of, tool, user
from tests.support.looped import looped

HINTS: JsonObject = {
    "cache_control": {"type": "ephemeral"},
    "prompt_cache_breakpoint": {"mode": "explicit"},
    "defer_loading": True,
    "eager_input_streaming": True,
    "input_examples": [{"at": "x"}],
    "allowed_callers": ["code_execution_20260521"],
    "examples": ["x"],
}


@looped(
    ("members", "named"),
    [
        (HINTS, [*HINTS]),
        ({"defer_loading": False, "cache_control": None, "allowed_callers": ["direct"], "input_examples": []}, []),
        ({"strict": True, "description": "d"}, []),
    ],
)
def test_members_are_named_unless_they_ask_for_nothing(members: JsonObject, named: list[str]) -> None:
    function = tool()["function"]
    assert isinstance(function, dict)
    for held in ({**tool(), **members}, {**tool(), "function": {**function, **members}}):
        assert other_members([held, held, {"type": "web_search"}]) == named
        assert other_members([held], [*HINTS]) == []


HOSTS: list[tuple[str, str]] = [
    *[("anthropic", "claude-opus-4-5"), ("vertex_anthropic", "claude-opus-4-5"), ("cohere", "command-a-03-2025")],
    *[("bedrock", "amazon.nova-pro-v1:0"), ("bedrock", "anthropic.claude-opus-4-5"), ("gemini", "gemini-2.5-flash")],
    *[("vertex", "gemini-2.5-flash"), ("ollama_native", "m"), ("openai", "gpt-4o"), ("openai", "gpt-5.6")],
    *[("openrouter", "m"), ("vllm", "m"), ("groq", "m"), ("watsonx", "m"), ("deepinfra", "m")],
]


FORM: JsonObject = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}}


@looped("params", [{}, {"n": 2}, {"response_format": FORM}])
@looped("kind", ["function", "custom"])
@looped(("profile", "model"), HOSTS)
@looped("name", HINTS)
def test_each_member_of_a_tool_is_sent_or_named(
    name: str, profile: str, model: str, kind: JsonValue, params: JsonObject
) -> None:
    held: JsonObject = {**tool(), name: HINTS[name]}
    if kind == "custom":
        if profile in ("watsonx", "openai"):
            return  # the vendor has no custom tools, or takes them unchanged
        held = {"type": "custom", "custom": {"name": "look"}, name: HINTS[name]}
    plan = plan_calls(
        chat_request(user("hi"), tools=[held], **params), target_of(profile, model, base_url="https://host")
    )
    for call in plan.calls:
        sent = orjson.dumps(orjson.loads(call.sent.body)["tools" if profile != "bedrock" else "toolConfig"])
        as_cache_point = name == "cache_control" and b"cachePoint" in sent
        assert (f'"{name}"'.encode() in sent or as_cache_point) != (name in plan.dropped)
