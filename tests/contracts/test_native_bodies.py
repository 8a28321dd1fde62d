"""Clients' own bodies still match the vendors' own types when they go to vendors of the same API."""

from dataclasses import dataclass

import pytest

from providers.json_types import JsonObject
from providers.unified_request import UnifiedRequest
from tests.contracts.sdk_judges import Judges
from tests.providers.dialects.anthropic import native_kit as messages
from tests.providers.dialects.kit import target_of
from tests.providers.dialects.responses import kit as responses
from tests.support.looped import looped

GOOGLE = "https://europe-west4-aiplatform.googleapis.com/v1/projects/p/locations/europe-west4"
THOUGHT: JsonObject = {"type": "thinking", "thinking": "Hm.", "signature": "EqQB"}
UNSIGNED: JsonObject = {"type": "thinking", "thinking": "Hm.", "signature": ""}
USE: JsonObject = {"type": "tool_use", "id": "functions.look:0", "name": "look", "input": {"at": "x"}}
RESULT: JsonObject = {
    "type": "tool_result",
    "tool_use_id": "functions.look:0",
    "content": [{"type": "text", "text": ""}],
}
CLAUDE_CODE: JsonObject = {
    "system": [{"type": "text", "text": "You edit files.", "cache_control": {"type": "ephemeral"}}],
    "tools": [{"name": "look", "description": "Looks.", "input_schema": {"type": "object", "properties": {}}}],
    "metadata": {"user_id": "u"},
    "thinking": {"type": "adaptive"},
    "output_config": {"effort": "high"},
    "temperature": 1,
}
TURNS: tuple[JsonObject, ...] = (
    {"role": "user", "content": [{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}]},
    {"role": "assistant", "content": [UNSIGNED, THOUGHT, {"type": "text", "text": ""}, USE]},
    {"role": "user", "content": [RESULT, {"type": "text", "text": "go on"}]},
)
CODEX: JsonObject = {
    "input": [
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "You edit files."}]},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"},
        {"type": "reasoning", "id": "rs_2", "summary": []},
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "done"},
        {"role": "user", "content": "hi"},
    ],
    "tools": [{"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": False}],
    "include": ["reasoning.encrypted_content"],
    "reasoning": {"effort": "medium", "summary": "auto"},
    "max_output_tokens": 500,
    "store": True,
}


@dataclass(frozen=True, slots=True)
class _NativeRow:
    """A profile, its deployment's fields, and the judge of its bodies with the operation that it knows."""

    profile: str
    model: str
    judge: str
    operation: str
    base_url: str


CLAUDES = (
    _NativeRow("anthropic", "claude-haiku-4-5", "anthropic.sdk_types", "chat", "https://api.anthropic.com"),
    _NativeRow("anthropic", "claude-opus-4-8", "anthropic.sdk_types", "chat", "https://api.anthropic.com"),
    _NativeRow("vertex_anthropic", "claude-haiku-4-5@20251001", "anthropic.vertex_sdk_types", "chat", GOOGLE),
    _NativeRow(
        *("bedrock_anthropic", "anthropic.claude-haiku-4-5-20251001-v1:0", "bedrock.anthropic_sdk_types", "chat"),
        "https://bedrock-runtime.eu-west-1.amazonaws.com",
    ),
)
OPENAIS = (
    _NativeRow("openai", "gpt-5.1", "responses.sdk_types", "responses", "https://api.openai.com/v1"),
    _NativeRow("openai", "gpt-4.1", "responses.sdk_types", "responses", "https://api.openai.com/v1"),
    _NativeRow("azure", "prod", "responses.sdk_types", "responses", "https://r.openai.azure.com"),
)


def check(judges: Judges, row: _NativeRow, request: UnifiedRequest) -> None:
    target = target_of(row.profile, row.model, base_url=row.base_url)
    sent, _ = messages.own_call(request, target)
    assert judges.fault(row.judge, "body", [sent.body], row.operation) is None


@pytest.mark.clients
@pytest.mark.timeout(300)
@looped("stream", [False, True])
@looped("row", CLAUDES, ids=lambda row: f"{row.profile}-{row.model}")
def test_a_body_of_the_messages_api_is_still_one(row: _NativeRow, stream: bool, judges: Judges) -> None:
    check(judges, row, messages.own_request(*TURNS, stream=stream, more={**CLAUDE_CODE, "max_tokens": 32_000}))


@pytest.mark.clients
@pytest.mark.timeout(300)
@looped("stream", [False, True])
@looped("row", OPENAIS, ids=lambda row: f"{row.profile}-{row.model}")
def test_a_body_of_the_responses_api_is_still_one(row: _NativeRow, stream: bool, judges: Judges) -> None:
    check(judges, row, responses.own_request(stream=stream, more=CODEX))
