"""Bodies of the Messages API for other vendors: no field that only Anthropic knows reaches them, and no content is
lost."""

from pathlib import Path

import orjson

from providers.emulation.plan_calls import CallPlan
from providers.json_types import JsonObject
from proxy.dispatch.next_deployment import prepared_for
from proxy.routing.snapshot import ANYONE
from proxy.surfaces.anthropic.parse_body import parse_messages
from proxy.surfaces.thinking_envelope import seal
from tests.proxy.kit.tables import snapshot
from tests.support.looped import looped

CLAUDE_CODE: JsonObject = orjson.loads(Path("tests/fixtures/anthropic/claude_code_request.json").read_bytes())
TABLE = """
vendors:
  openai: {api_key: k}
  groq: {api_key: k}
  mistral: {api_key: k}
  deepseek: {api_key: k}
  fireworks: {api_key: k}
  openrouter: {api_key: k}
  gemini: {api_key: k}
  cohere: {api_key: k}
  xai: {api_key: k}
  cerebras: {api_key: k}
  together: {api_key: k}
  moonshot: {api_key: k}
  bedrock: {api_key: k, url_params: {region: us-east-1}}
  vllm: {base_url: "http://127.0.0.1:1/v1", allow_private: true}
  ollama: {base_url: "http://127.0.0.1:1", allow_private: true}
  llamacpp: {base_url: "http://127.0.0.1:1/v1", allow_private: true}
  sglang: {base_url: "http://127.0.0.1:1/v1", allow_private: true}
models:
  openai/gpt-4o: {}
  openai/gpt-5.1: {}
  groq/llama-3.3-70b-versatile: {}
  mistral/mistral-large-latest: {}
  deepseek/deepseek-chat: {}
  fireworks/m: {}
  openrouter/x/m: {}
  gemini/gemini-2.5-pro: {}
  gemini/gemini-3-pro: {}
  cohere/command-a-03-2025: {}
  xai/grok-4: {}
  cerebras/m: {}
  together/m: {}
  moonshot/kimi-k2-thinking: {}
  "bedrock/amazon.nova-pro-v1:0": {}
  "bedrock/anthropic.claude-sonnet-4-5-20250929-v1:0": {}
  bedrock/anthropic.claude-sonnet-4-6: {}
  bedrock/anthropic.claude-opus-4-7: {}
  bedrock/us.anthropic.claude-opus-4-8: {}
  bedrock/global.anthropic.claude-sonnet-5-5: {}
  bedrock/anthropic.claude-fable-5: {}
  openrouter/anthropic/claude-opus-4.8: {}
  vllm/m: {}
  ollama/m: {}
  llamacpp/m: {}
  sglang/m: {}
"""
MODELS = {name: model.targets[0] for name, model in snapshot(TABLE).models.items()}
SEEING = [name for name in MODELS if name.startswith(("openai/", "gemini/", "bedrock/", "vllm/", "openrouter/"))]

ANTHROPICS = (
    *("tool_use_id", "input_schema", "tool_result", "context_management", "output_config", "signature_delta"),
    *("device_id", "x-anthropic-billing-header", "clear_thinking", "is_error", "media_type", "stop_sequences"),
)
"""The fields that no other vendor may receive."""

PNG: JsonObject = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
PDF: JsonObject = {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0xLjQ="}
NOTED: list[JsonObject] = [{"type": "reasoning.encrypted", "data": "c2VjcmV0", "format": "x-v1", "index": 0}]
EVERY_BLOCK: JsonObject = {
    "model": "m",
    "max_tokens": 4096,
    "system": "Instructions.",
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "A question."},
                {"type": "image", "source": PNG},
                {"type": "document", "source": PDF, "title": "paper"},
                {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "A note."}},
                {
                    "type": "search_result",
                    "source": "https://x.example",
                    "title": "Found",
                    "content": [{"type": "text", "text": "A result."}],
                },
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "A thought.", "signature": seal(NOTED)},
                {"type": "redacted_thinking", "data": "cmVk"},
                {"type": "text", "text": "An answer."},
                {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"place": "here"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_1",
                    "is_error": True,
                    "content": [{"type": "text", "text": "Nothing there."}, {"type": "image", "source": PNG}],
                },
                {"type": "text", "text": "Go on."},
            ],
        },
    ],
    "tools": [{"name": "look", "input_schema": {"type": "object", "properties": {"place": {"type": "string"}}}}],
    "tool_choice": {"type": "auto", "disable_parallel_tool_use": False},
    "stop_sequences": ["END"],
}


def planned(name: str, body: JsonObject) -> CallPlan:
    return prepared_for(parse_messages(orjson.dumps(body), None, {}), MODELS[name], ANYONE)


@looped("name", MODELS)
def test_claude_code_s_body_goes_to_every_vendor(name: str) -> None:
    plan = planned(name, CLAUDE_CODE)
    wire = plan.calls[0].sent.body.decode()
    for word in ANTHROPICS:
        assert word not in wire
    for word in ("You are a Claude agent.", "Fix the typo", "Platform: linux", "teh notes", "Glob", "Keep going."):
        assert word in wire
    assert {"x-anthropic-billing-header", "context_management"} <= set(plan.dropped)


@looped("name", SEEING)
def test_every_block_goes_to_vendors_that_take_its_kind(name: str) -> None:
    plan = planned(name, EVERY_BLOCK)
    wire = plan.calls[0].sent.body.decode()
    for word in ANTHROPICS:
        assert word not in wire
    for word in (
        "Instructions.",
        "A question.",
        "A note.",
        "Found",
        "A result.",
        "An answer.",
        "Nothing there.",
        "look",
    ):
        assert word in wire
    assert wire.count("iVBORw0KGgo=") == 2
    assert "JVBERi0xLjQ=" in wire
    assert "END" in wire or "stop" in plan.emulated


def test_thinking_in_an_envelope_reaches_the_vendor_that_sent_it() -> None:
    wire = orjson.loads(planned("openrouter/x/m", EVERY_BLOCK).calls[0].sent.body)
    details = wire["messages"][2]["reasoning_details"]
    assert details[1:2] == NOTED
    assert details[0]["text"] == "A thought."


ADAPTIVE: JsonObject = {"type": "adaptive"}
SHOWN: JsonObject = {**ADAPTIVE, "display": "summarized"}
OFF: JsonObject = {"type": "disabled"}
BUDGET: JsonObject = {"type": "enabled", "budget_tokens": 1024}
OLD, SONNET = "bedrock/anthropic.claude-sonnet-4-5-20250929-v1:0", "bedrock/anthropic.claude-sonnet-4-6"
OPUS_7, OPUS_8 = "bedrock/anthropic.claude-opus-4-7", "bedrock/us.anthropic.claude-opus-4-8"
SONNET_5_5, FABLE = "bedrock/global.anthropic.claude-sonnet-5-5", "bedrock/anthropic.claude-fable-5"
ROUTER = "openrouter/anthropic/claude-opus-4.8"
FORCED: JsonObject = {"tools": EVERY_BLOCK["tools"], "tool_choice": {"type": "tool", "name": "look"}}


@looped(
    ("name", "fields", "thinking", "effort", "emulated", "dropped"),
    [
        (OPUS_7, {"thinking": BUDGET}, SHOWN, None, ("thinking",), ()),
        (OPUS_8, {"thinking": BUDGET}, SHOWN, None, ("thinking",), ()),
        (SONNET_5_5, {"thinking": BUDGET}, SHOWN, None, ("thinking",), ()),
        (FABLE, {"thinking": BUDGET}, SHOWN, None, ("thinking",), ()),
        (SONNET, {"thinking": BUDGET}, BUDGET, None, (), ()),
        (OLD, {"thinking": BUDGET}, BUDGET, None, (), ()),
        (OPUS_7, {"thinking": OFF}, OFF, None, (), ()),
        (SONNET_5_5, {"thinking": OFF}, {"type": "between_tools"}, None, (), ()),
        (FABLE, {"thinking": OFF}, None, "low", ("thinking",), ()),
        (FABLE, {"thinking": OFF, "output_config": {"effort": "high"}}, None, "low", ("thinking",), ()),
        (OPUS_8, {"thinking": ADAPTIVE}, SHOWN, "high", (), ()),
        (SONNET, {"thinking": ADAPTIVE}, ADAPTIVE, "high", (), ()),
        (OPUS_8, {"thinking": SHOWN, "output_config": {"effort": "low"}}, SHOWN, "low", (), ()),
        (OPUS_8, {"thinking": {**ADAPTIVE, "display": "omitted"}}, {**ADAPTIVE, "display": "omitted"}, "high", (), ()),
        (SONNET, {"thinking": {**BUDGET, "display": "omitted"}}, BUDGET, None, (), ("thinking.display",)),
        (OPUS_7, {"thinking": SHOWN, **FORCED}, None, None, (), ("reasoning_effort", "thinking.display")),
        (OPUS_8, {"thinking": SHOWN, **FORCED}, SHOWN, "high", (), ()),
    ],
)
def test_thinking_goes_to_claude_on_converse_as_the_model_takes_it(
    name: str,
    fields: JsonObject,
    thinking: JsonObject | None,
    effort: str | None,
    emulated: tuple[str, ...],
    dropped: tuple[str, ...],
) -> None:
    body: JsonObject = {"model": "m", "max_tokens": 3000, "messages": [{"role": "user", "content": "hi"}], **fields}
    for streamed in (False, True):
        plan = planned(name, {**body, "stream": streamed})
        wire = orjson.loads(plan.calls[0].sent.body)
        assert wire.get("additionalModelRequestFields", {}).get("thinking") == thinking
        assert wire.get("outputConfig", {}).get("effort") == effort
        assert (plan.emulated, plan.dropped) == (emulated, dropped)


@looped(
    ("name", "member"),
    [
        (ROUTER, {"reasoning": {"effort": "high"}}),
        ("openrouter/x/m", {"reasoning": {"effort": "medium"}}),
        ("openai/gpt-5.1", {"reasoning_effort": "medium"}),
    ],
)
def test_an_effort_that_the_client_left_to_claude_is_claudes_own(name: str, member: JsonObject) -> None:
    body: JsonObject = {"model": "m", "max_tokens": 3000, "messages": [{"role": "user", "content": "hi"}]}
    wire = orjson.loads(planned(name, {**body, "thinking": ADAPTIVE}).calls[0].sent.body)
    assert member.items() <= wire.items()
    low: JsonObject = {"output_config": {"effort": "low"}, "thinking": SHOWN}
    plan = planned(name, {**body, **low})
    assert b'"low"' in plan.calls[0].sent.body
    assert "thinking.display" in plan.dropped
