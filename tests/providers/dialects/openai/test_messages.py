"""Conversations as each profile wants them: members renamed, left out or refused."""

import pytest

from providers.dialects.openai.messages import vendor_messages
from providers.failure import Refusal
from providers.json_types import JsonObject, JsonValue
from providers.profiles.load_profiles import load_profiles
from providers.unified_request import ChatPrompt
from tests.providers.dialects.openai.kit import target

SIGNED: JsonObject = {"role": "assistant", "content": "a", "extra_content": {"google": {"thought_signature": "c2ln"}}}
UNSIGNED: JsonObject = {"role": "assistant", "content": "a"}
PARTS: JsonValue = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]


def messages(row: str, *given: JsonObject) -> list[JsonValue]:
    return vendor_messages(target(row), load_profiles()[row], ChatPrompt(given))


@pytest.mark.parametrize(
    ("row", "given", "wanted"),
    [
        ("openai", {"role": "user", "content": "a", "name": None}, {"role": "user", "content": "a"}),
        ("openai", {"role": "developer", "content": "a"}, {"role": "developer", "content": "a"}),
        ("groq", {"role": "developer", "content": "a"}, {"role": "system", "content": "a"}),
        ("moonshot", {**UNSIGNED, "reasoning": "r"}, {**UNSIGNED, "reasoning_content": "r"}),
        ("openai", {**UNSIGNED, "reasoning_content": "r"}, UNSIGNED),
        ("openai", SIGNED, UNSIGNED),
        ("gemini_compat", SIGNED, SIGNED),
        ("vllm", SIGNED, SIGNED),
    ],
)
def test_a_message_is_written_as_the_profile_wants_it(row: str, given: JsonObject, wanted: JsonObject) -> None:
    assert messages(row, given) == [wanted]


def test_parts_become_one_text_where_content_must_be_a_string() -> None:
    row = next(name for name, profile in load_profiles().items() if not profile.content_parts)
    assert messages(row, {"role": "user", "content": PARTS}) == [{"role": "user", "content": "ab"}]
    with pytest.raises(Refusal, match="only text"):
        messages(row, {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]})
