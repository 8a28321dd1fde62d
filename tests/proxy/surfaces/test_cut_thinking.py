"""A response that reached its limit during reasoning reports this on every surface, non-streaming and streamed.

Its bytes have reasoning and no text, in each vendor's form. Coding agents request more tokens by this finish reason;
with any other they take the empty text for the response.
"""

from collections.abc import Iterable
from typing import Final, cast

import orjson

from providers.completion import Chunk, Completion, Usage
from providers.json_types import JsonObject, JsonValue
from proxy.surfaces.openai import OPENAI
from tests.providers.dialects.bedrock.fake_server import frame
from tests.providers.dialects.kit import chat_request, decoded, only, sent_for, streamed, target_of, tool
from tests.proxy.surfaces import kit
from tests.proxy.surfaces.anthropic import kit as messages
from tests.proxy.surfaces.responses import kit as responses
from tests.support.looped import looped

THOUGHT: Final = "Hm."


def _sse(*events: JsonObject, named: str | None = None) -> bytes:
    names = [b"" if named is None else b"event: %b\n" % str(event[named]).encode() for event in events]
    return b"".join([name + b"data: %b\n\n" % orjson.dumps(event) for name, event in zip(names, events, strict=True)])


def _claude() -> tuple[JsonObject, bytes]:
    block: JsonObject = {"type": "thinking", "thinking": THOUGHT, "signature": "c2ln"}
    end: JsonObject = {"stop_reason": "max_tokens", "stop_sequence": None}
    head: JsonObject = {"id": "m", "type": "message", "role": "assistant", "model": "c"}
    counts: JsonObject = {"input_tokens": 10, "output_tokens": 16}
    stream = _sse(
        {"type": "message_start", "message": {**head, "content": [], "stop_reason": None, "usage": counts}},
        {"type": "content_block_start", "index": 0, "content_block": {**block, "thinking": "", "signature": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": THOUGHT}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": end, "usage": counts},
        {"type": "message_stop"},
        named="type",
    )
    return {**head, "content": [block], **end, "usage": counts}, stream


def _gemini(*parts: JsonObject) -> tuple[JsonObject, bytes]:
    counts: JsonObject = {"promptTokenCount": 10, "thoughtsTokenCount": 16, "totalTokenCount": 26}

    def said(parts: Iterable[JsonValue], **end: JsonValue) -> JsonObject:
        content: JsonObject = {"role": "model", **({"parts": [*parts]} if parts else {})}
        return {"candidates": [{"content": content, "index": 0, **end}], "usageMetadata": counts}

    stream = [*([said(parts)] if parts else []), said((), finishReason="MAX_TOKENS")]
    return said(parts, finishReason="MAX_TOKENS"), _sse(*stream)


def _chat(name: str) -> tuple[JsonObject, bytes]:
    thought: JsonObject = {name: THOUGHT} if name else {}
    choice: JsonObject = {"index": 0, "finish_reason": "length"}
    message: JsonObject = {"role": "assistant", "content": "", **thought}
    stream = _sse(
        {"choices": [{"index": 0, "delta": {"role": "assistant", "content": None, **thought}, "finish_reason": None}]},
        {"choices": [{**choice, "delta": {"content": ""}}]},
    )
    return {"choices": [{**choice, "message": message}]}, stream + b"data: [DONE]\n\n"


def _responses() -> tuple[JsonObject, bytes]:
    item: JsonObject = {"id": "rs_1", "type": "reasoning", "summary": [{"type": "summary_text", "text": THOUGHT}]}
    place: JsonObject = {"output_index": 0, "item_id": "rs_1", "summary_index": 0}
    whole: JsonObject = {
        **{"id": "resp_1", "object": "response", "created_at": 1, "model": "gpt-5.6", "output": [item], "error": None},
        **{"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
    }
    stream = _sse(
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "summary": []}},
        {"type": "response.reasoning_summary_text.delta", **place, "delta": THOUGHT},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.incomplete", "response": whole},
        named="type",
    )
    return whole, stream


def _bedrock() -> tuple[JsonObject, bytes]:
    block: JsonObject = {"reasoningContent": {"reasoningText": {"text": THOUGHT, "signature": "c2ln"}}}
    counts: JsonObject = {"usage": {"inputTokens": 10, "outputTokens": 16, "totalTokens": 26}}
    told = (
        ("messageStart", {"role": "assistant"}),
        ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"reasoningContent": {"text": THOUGHT}}}),
        ("contentBlockStop", {"contentBlockIndex": 0}),
        ("messageStop", {"stopReason": "max_tokens"}),
        ("metadata", counts),
    )
    whole: JsonObject = {"output": {"message": {"role": "assistant", "content": [block]}}, "stopReason": "max_tokens"}
    return {**whole, **counts}, b"".join([frame(kind, cast(JsonObject, held)) for kind, held in told])


def _ollama() -> tuple[JsonObject, bytes]:
    message: JsonObject = {"role": "assistant", "content": "", "thinking": THOUGHT}
    end: JsonObject = {"done": True, "done_reason": "length", "prompt_eval_count": 10, "eval_count": 16}
    lines: list[JsonObject] = [
        {"model": "a", "message": message, "done": False},
        {"model": "a", "message": {"role": "assistant", "content": ""}, **end},
    ]
    return {"model": "a", "message": message, **end}, b"".join([orjson.dumps(line) + b"\n" for line in lines])


def _cohere() -> tuple[JsonObject, bytes]:
    stream = _sse(
        {"type": "message-start", "id": "m", "delta": {"message": {"role": "assistant", "content": []}}},
        {"type": "content-start", "index": 0, "delta": {"message": {"content": {"type": "thinking", "thinking": ""}}}},
        {"type": "content-delta", "index": 0, "delta": {"message": {"content": {"thinking": THOUGHT}}}},
        {"type": "content-end", "index": 0},
        {"type": "message-end", "delta": {"finish_reason": "MAX_TOKENS"}},
        named="type",
    )
    content: JsonValue = [{"type": "thinking", "thinking": THOUGHT}]
    return {"id": "m", "finish_reason": "MAX_TOKENS", "message": {"role": "assistant", "content": content}}, stream


CUT: Final[tuple[tuple[str, str, tuple[JsonObject, bytes], str], ...]] = (
    ("anthropic", "claude-sonnet-4-5", _claude(), THOUGHT),
    ("gemini", "gemini-3-pro", _gemini({"text": THOUGHT, "thought": True}), THOUGHT),
    ("gemini", "gemini-2.5-pro", _gemini(), ""),
    ("openai", "gpt-5.6", _responses(), THOUGHT),
    ("openai", "gpt-4o", _chat(""), ""),
    ("deepseek", "deepseek-reasoner", _chat("reasoning_content"), THOUGHT),
    ("vllm", "m", _chat("reasoning"), THOUGHT),
    ("bedrock", "anthropic.claude-sonnet-4-5-20250929-v1:0", _bedrock(), THOUGHT),
    ("ollama_native", "m", _ollama(), THOUGHT),
    ("cohere", "command-a-reasoning-08-2025", _cohere(), THOUGHT),
)
"""The vendor, its model, its response (non-streaming and streamed), and the reasoning in it; a vendor may show no
reasoning."""


@looped(("vendor", "model", "said", "thought"), CUT, ids=[f"{vendor}-{model}" for vendor, model, _, _ in CUT])
def test_a_limit_reached_while_thinking_is_told(
    vendor: str, model: str, said: tuple[JsonObject, bytes], thought: str
) -> None:
    sent = sent_for(chat_request(tools=[tool()]), target_of(vendor, model))
    whole = decoded(sent, orjson.dumps(said[0]))
    events = [event for event in streamed(sent, said[1]) if isinstance(event, (Chunk, Usage))]
    assert (only(whole).text, only(whole).reasoning or "") == ("", thought)
    _check_chat(whole, events)
    _check_messages(whole, events)
    _check_responses(whole, events)


def _check_chat(whole: Completion, events: list[Chunk | Usage]) -> None:
    plain, stream = kit.converse(), kit.converse(stream=True)
    body: JsonObject = orjson.loads(OPENAI.renderer(plain, kit.FACTS).completion(whole))
    assert [choice["finish_reason"] for choice in kit.choices(body)] == ["length"]
    frames = kit.objects(kit.play(OPENAI.renderer(stream, kit.FACTS), *events))
    assert [each["finish_reason"] for each in kit.choices(*frames) if each.get("finish_reason")] == ["length"]


def _check_messages(whole: Completion, events: list[Chunk | Usage]) -> None:
    body: JsonObject = orjson.loads(messages.renderer().completion(whole))
    message = messages.accumulate(messages.play(*events))
    assert (body["stop_reason"], message.stop_reason) == ("max_tokens", "max_tokens")
    assert "text" not in [block.type for block in message.content]


def _check_responses(whole: Completion, events: list[Chunk | Usage]) -> None:
    found = responses.streamed(*[event for event in events if isinstance(event, Chunk)])
    assert found[-1]["type"] == "response.incomplete"
    for body in (responses.whole(whole), responses.final(found)):
        assert (body["status"], body["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})
        assert [item["status"] for item in responses.output(body)] == ["incomplete"] * len(responses.output(body))
