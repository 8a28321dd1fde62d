"""Facts of single vendors that their rows carry: what a request becomes there, and what is refused and why."""

import pytest

from providers.unified import ChatPrompt, JsonObject, JsonValue
from tests.providers.dialects.openai_kit import body_of, chat, refusal_of, target

CALL: JsonObject = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
ANSWERED: JsonObject = {
    "role": "assistant",
    "content": "4",
    "refusal": None,
    "reasoning_content": "2+2",
    "reasoning": "2+2",
}


def messages(row: str, *given: JsonObject, model: str = "m") -> JsonValue:
    """What messages become."""
    return body_of(chat(prompt=ChatPrompt(given)), target(row, model))["messages"]


def test_members_that_are_null_are_not_sent() -> None:
    called: JsonObject = {"role": "assistant", "content": None, "audio": None, "tool_calls": [CALL]}
    assert messages("groq", called) == [{"role": "assistant", "tool_calls": [CALL]}]
    assert called["content"] is None


@pytest.mark.parametrize(
    ("row", "role"), [("openai", "developer"), ("azure", "developer"), ("vllm", "system"), ("mistral", "system")]
)
def test_the_developer_s_role_is_the_system_s_where_nobody_knows_it(row: str, role: str) -> None:
    assert messages(row, {"role": "developer", "content": "be brief"}) == [{"role": role, "content": "be brief"}]


@pytest.mark.parametrize(
    ("row", "model", "member"),
    [
        ("deepseek", "deepseek-chat", "reasoning_content"),
        ("deepseek", "deepseek-reasoner", None),
        ("vllm", "m", "reasoning_content"),
        ("openrouter", "m", "reasoning"),
        ("groq", "m", None),
        ("openai", "gpt-4o", None),
    ],
)
def test_reasoning_of_earlier_turns_goes_under_the_vendor_s_name_for_it(
    row: str, model: str, member: str | None
) -> None:
    expected: JsonObject = {"role": "assistant", "content": "4"}
    if member is not None:
        expected[member] = "2+2"
    assert messages(row, ANSWERED, model=model) == [expected]


def test_content_in_parts_is_joined_where_only_text_is_taken() -> None:
    parts: list[JsonValue] = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    talk: JsonObject = {"role": "user", "content": parts}
    assert messages("deepseek", talk) == [{"role": "user", "content": "ab"}]
    assert messages("openai", talk) == [talk]


def test_an_image_is_refused_where_only_text_is_taken() -> None:
    image: JsonValue = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}
    refusal = refusal_of(chat(prompt=ChatPrompt(({"role": "user", "content": [image]},))), target("deepseek"))
    assert (refusal.param, refusal.code) == ("messages", "unsupported_parameter")
