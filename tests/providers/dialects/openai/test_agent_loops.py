"""Conversations of five turns with reasoning, tools, images and cache markers, checked as each vendor would.

The checks are the causes of the vendors' 400 and 422 responses, as users report them.
"""

from collections.abc import Callable, Mapping

import orjson

from providers.json_types import JsonObject, JsonValue
from providers.unified_request import ChatPrompt, Params
from tests.providers.dialects.openai.kit import DIALECT, chat, target
from tests.support.looped import looped

MARKER: JsonObject = {"type": "ephemeral"}
IMAGE: JsonObject = {"type": "image_url", "image_url": {"url": "data:image/jpg;base64,AA"}}
TOOL: JsonObject = {"type": "function", "function": {"name": "look"}, "cache_control": MARKER}
KNOWN = {"role", "content", "tool_calls", "tool_call_id"}


def turn(number: int) -> list[JsonObject]:
    """Return the messages of one turn from a client that sends every field back."""
    call: JsonObject = {"id": f"call_{number}", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    return [
        {"role": "user", "name": "ann", "content": [{"type": "text", "text": "look", "cache_control": MARKER}, IMAGE]},
        {
            "role": "assistant",
            "content": None,
            "refusal": None,
            "annotations": [],
            "reasoning": "I look",
            "reasoning_content": "I look",
            "reasoning_details": [
                {"type": "reasoning.text", "text": "I look", "signature": f"s{number}", "format": "anthropic-claude-v1"}
            ],
            "thinking_blocks": [{"type": "thinking", "thinking": "I look", "signature": f"s{number}"}],
            "provider_specific_fields": {"thinking_blocks": []},
            "tool_calls": [call],
        },
        {"role": "tool", "tool_call_id": f"call_{number}", "content": "a cat"},
        {"role": "assistant", "content": "A cat.", "id": f"m{number}", "cache_control": MARKER},
    ]


TALK: list[JsonObject] = [
    *(message for number in range(5) for message in turn(number)),
    {"role": "user", "content": "?"},
]


def sent_to(row: str, model: str) -> tuple[list[JsonObject], JsonObject, tuple[str, ...]]:
    params: Params = {"tools": [TOOL]}
    call = DIALECT.encode(chat(params, ChatPrompt(tuple(TALK))), target(row, model))
    body: JsonObject = orjson.loads(call.body)
    messages: list[JsonObject] = body["messages"]  # type: ignore[assignment]
    return messages, body, call.dropped


def members(messages: list[JsonObject]) -> set[str]:
    return {name for message in messages for name in message}


def strict(*own: str) -> Callable[[list[JsonObject]], None]:
    """Return the check of a vendor that refuses all fields except OpenAI's and its own."""

    def check(messages: list[JsonObject]) -> None:
        assert members(messages) <= {*KNOWN, *own}
        assert b"cache_control" not in orjson.dumps(messages)

    return check


def all_reasoned(messages: list[JsonObject]) -> None:
    assert all(message.get("reasoning_content") for message in messages if message["role"] == "assistant")


def calls_reasoned(messages: list[JsonObject]) -> None:
    assert all(message.get("reasoning_content") for message in messages if message.get("tool_calls"))


def details_as_received(messages: list[JsonObject]) -> None:
    given = [message["reasoning_details"] for message in TALK if "reasoning_details" in message]
    assert [message["reasoning_details"] for message in messages if "reasoning_details" in message] == given
    assert b"cache_control" in orjson.dumps(messages)


def thought_in_chunks(messages: list[JsonObject]) -> None:
    strict("name", "prefix")(messages)
    assert not [message for message in messages if "name" in message and message["role"] != "tool"]
    first: JsonValue = messages[1]["content"]
    assert isinstance(first, list)
    assert [part["type"] for part in first if isinstance(part, dict)] == ["thinking"]


CHECKS: Mapping[tuple[str, str], Callable[[list[JsonObject]], None]] = {
    ("openai", "gpt-4o"): strict("name"),
    ("azure", "gpt-4o"): strict("name"),
    ("groq", "openai/gpt-oss-120b"): strict("name", "reasoning"),
    ("cerebras", "gpt-oss-120b"): strict("name", "reasoning"),
    ("fireworks", "m"): strict("reasoning_content"),
    ("xai", "grok-4"): strict("name"),
    ("mistral", "magistral-medium"): thought_in_chunks,
    ("moonshot", "kimi-k3"): calls_reasoned,
    ("openrouter", "anthropic/claude-opus-5"): details_as_received,
}


@looped(("row", "model"), CHECKS)
def test_five_turns_pass_the_vendor_s_check(row: str, model: str) -> None:
    messages, body, dropped = sent_to(row, model)
    CHECKS[row, model](messages)
    assert b"image/jpg" not in orjson.dumps(body)
    assert (b"cache_control" in orjson.dumps(body["tools"])) is (row == "openrouter")
    assert ("cache_control" in dropped) is (row != "openrouter")


def test_five_turns_of_deepseek_carry_reasoning_in_each() -> None:
    talk = [message for message in TALK if not isinstance(message.get("content"), list)]
    for model in ("deepseek-reasoner", "deepseek-v4"):
        call = DIALECT.encode(chat({}, ChatPrompt(tuple(talk))), target("deepseek", model))
        messages: list[JsonObject] = orjson.loads(call.body)["messages"]
        all_reasoned(messages)
        strict("name", "reasoning_content")(messages)
