"""Reasoning as `thinking` blocks."""

from providers.json_types import JsonObject
from proxy.surfaces.anthropic.thinking_blocks import is_claude_detail, redacted_block, signature_for, whole_blocks
from proxy.surfaces.thinking_envelope import open_sealed

SIGNED: JsonObject = {
    "type": "reasoning.text",
    "text": "hm",
    "signature": "sig",
    "format": "anthropic-claude-v1",
    "index": 0,
}
REDACTED: JsonObject = {"type": "reasoning.encrypted", "data": "red", "format": "anthropic-claude-v1", "index": 1}
PLAIN: JsonObject = {"type": "reasoning.text", "text": "plain", "format": "unknown", "index": 2}
SUMMARY: JsonObject = {"type": "reasoning.summary", "summary": "s", "format": "openai-responses-v1", "index": 0}
SECRET: JsonObject = {"type": "reasoning.encrypted", "data": "x", "format": "openai-responses-v1", "index": 0}


def test_claude_s_thinking_has_its_own_blocks() -> None:
    assert whole_blocks("hm", [SIGNED, REDACTED]) == [
        {"type": "thinking", "thinking": "hm", "signature": "sig"},
        {"type": "redacted_thinking", "data": "red"},
    ]
    assert redacted_block({}) == {"type": "redacted_thinking", "data": ""}
    assert [is_claude_detail(each) for each in (SIGNED, REDACTED, PLAIN, SECRET)] == [True, True, False, False]


def test_plain_thinking_is_a_block_of_its_own_with_an_empty_signature() -> None:
    assert whole_blocks("hmplain", [SIGNED, PLAIN])[1] == {"type": "thinking", "thinking": "plain", "signature": ""}
    assert whole_blocks("plain", [PLAIN]) == [{"type": "thinking", "thinking": "plain", "signature": ""}]
    assert whole_blocks("plain", []) == [{"type": "thinking", "thinking": "plain", "signature": ""}]
    assert whole_blocks(None, []) == []
    assert signature_for([{"type": "reasoning.text", "text": "a"}]) == ""


def test_what_another_vendor_needs_back_is_sealed_whole_with_a_text_or_without() -> None:
    (block,) = whole_blocks("s", [SUMMARY, SECRET])
    assert block["thinking"] == "s"
    assert open_sealed(str(block["signature"])) == [SUMMARY, SECRET]
    (block,) = whole_blocks(None, [SECRET])
    assert block["thinking"] == ""
    assert open_sealed(str(block["signature"])) == [SECRET]
