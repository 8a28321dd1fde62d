"""Anthropic's Messages and Bedrock's Converse, with the real vendors' checks of an agent's conversation.

Sources: platform.claude.com `api/errors`, "Extended thinking" and "Structured outputs"; botocore 1.44.5
`bedrock-runtime`, November 2026.
"""

from collections.abc import Iterator

import orjson
from typing_extensions import override

from providers.json_types import JsonObject, JsonValue
from tests.e2e.agents.agent_plan import (
    CLAUDE_REFUSES,
    TRIP,
    AgentPlan,
    Broken,
    StrictVendor,
    object_of,
    objects,
    refused_keyword,
)
from tests.providers.dialects.bedrock.fake_server import MEDIA, frame
from tests.support.http_scripts import body_answer, json_answer, sse_answer
from tests.support.vendor_script import Received, Script

# Anthropic -----------------------------------------------------------------------------------------------------------


class Anthropic(StrictVendor):
    """`POST /v1/messages` of claude-sonnet-4-5, whose thinking has a budget."""

    _thinking_types = frozenset({"enabled"})

    @override
    def _refusal(self, message: str) -> Script:
        return json_answer(400, {"type": "error", "error": {"type": "invalid_request_error", "message": message}})

    @override
    def _answer(self, received: Received, body: JsonObject) -> Script:
        message = self._message(body)
        if body.get("stream"):
            return sse_answer(_claude_events(message), headers=[("content-type", "text/event-stream")])
        return json_answer(200, message)

    def _message(self, body: JsonObject) -> JsonObject:
        turns, asked = self._turns(body), object_of(body.get("thinking")).get("type")
        thinking = asked in self._thinking_types
        limit = body.get("max_tokens")
        if not isinstance(limit, int):
            raise Broken("max_tokens: Field required")
        if asked not in (None, "disabled") and not thinking:
            raise Broken(f"{asked} thinking is not supported on this model")
        if asked == "enabled":
            budget = object_of(body["thinking"]).get("budget_tokens")
            if not isinstance(budget, int) or not 1024 <= budget < limit:
                raise Broken("`max_tokens` must be greater than `thinking.budget_tokens`.")
            if body.get("temperature", 1) != 1 or object_of(body.get("tool_choice")).get("type") in ("any", "tool"):
                raise Broken("Thinking may not be enabled when tool_choice forces tool use.")
        if "effort" in object_of(body.get("output_config")) and "adaptive" not in self._thinking_types:
            raise Broken("This model does not support the effort parameter.")
        results = _check_claude_turns(turns, thinking, self._plan)
        blocks, reason = self._blocks(body, results, thinking)
        return {
            "id": f"msg_{results}",
            "type": "message",
            "role": "assistant",
            "model": "claude-sonnet-4-5",
            "content": blocks,
            "stop_reason": reason,
            "stop_sequence": None,
            "usage": {"input_tokens": 10, "output_tokens": 5},
        }

    def _turns(self, body: JsonObject) -> list[JsonObject]:
        return objects(body.get("messages"))

    def _blocks(self, body: JsonObject, results: int, thinking: bool) -> tuple[list[JsonValue], str]:
        tools = objects(body.get("tools"))
        form = object_of(object_of(body.get("output_config")).get("format"))
        if form:
            if word := refused_keyword(form.get("schema"), CLAUDE_REFUSES):
                raise Broken(f"output_config.format.schema: property '{word}' is not supported")
            return [{"type": "text", "text": orjson.dumps(TRIP).decode()}], "end_turn"
        own = [tool for tool in tools if self._plan.is_own(tool)]
        for tool in tools:
            if tool.get("strict") and (word := refused_keyword(tool.get("input_schema"), CLAUDE_REFUSES)):
                raise Broken(f"tools.0.custom.input_schema: property '{word}' is not supported")
        if own:
            return [{"type": "tool_use", "id": "toolu_trip", "name": own[0]["name"], "input": TRIP}], "tool_use"
        if not tools and self._plan.untooled is not None:
            return [{"type": "text", "text": self._plan.untooled}], "end_turn"
        self.wire.thinking.append(thinking)
        move = self._plan.after(results)
        blocks: list[JsonValue] = []
        if thinking:
            blocks.append({"type": "thinking", "thinking": move.thought, "signature": move.signature})
        if move.text:
            blocks.append({"type": "text", "text": move.text})
        for number, (name, given) in enumerate(move.calls):
            blocks.append({"type": "tool_use", "id": f"toolu_{move.number}_{number}", "name": name, "input": given})
        return blocks, "tool_use" if move.calls else "end_turn"


class AdaptiveAnthropic(Anthropic):
    """The same of a newer model: it chooses its amount of reasoning, and system messages may stand between turns."""

    _thinking_types = frozenset({"adaptive"})

    @override
    def _turns(self, body: JsonObject) -> list[JsonObject]:
        return [turn for turn in objects(body.get("messages")) if turn.get("role") != "system"]


def _check_claude_turns(turns: list[JsonObject], thinking: bool, plan: AgentPlan) -> int:
    """Return the number of results. Raise Broken if the API would return 400."""
    pending: set[str] = set()
    results = 0
    for number, turn in enumerate(turns):
        if turn.get("role") != ("assistant" if number % 2 else "user"):
            raise Broken(f"messages.{number}: roles must alternate")
        blocks = objects(turn.get("content"))
        answered = {str(block["tool_use_id"]) for block in blocks if block.get("type") == "tool_result"}
        if answered != pending:
            raise Broken(f"messages.{number}: `tool_use` ids were found without `tool_result` blocks immediately after")
        results += len(answered)
        if any(not str(block.get("text", "x")).strip() for block in blocks):
            raise Broken("messages: text content blocks must be non-empty")
        pending = {str(block["id"]) for block in blocks if block.get("type") == "tool_use"}
        if pending:
            _check_claude_thinking(number, blocks, thinking, plan)
    if not turns or turns[-1]["role"] != "user" or pending:
        raise Broken("messages: the final turn must be the user's")
    return results


def _check_claude_thinking(number: int, blocks: list[JsonObject], thinking: bool, plan: AgentPlan) -> None:
    called = str(next(block["id"] for block in blocks if block.get("type") == "tool_use"))
    given = [block for block in blocks if block.get("type") == "thinking"]
    if thinking and (not given or blocks[0] is not given[0]):
        raise Broken(
            f"messages.{number}.content.0.type: Expected `thinking` or `redacted_thinking`, but found "
            f"`{blocks[0].get('type')}`. When `thinking` is enabled, a final `assistant` message must start with a "
            "thinking block"
        )
    for block in given:
        move = plan.moves[int(called.split("_")[1])]
        if block.get("signature") != move.signature or block.get("thinking") != move.thought:
            raise Broken(f"messages.{number}.content.0: Invalid `signature` in `thinking` block")


def _claude_events(message: JsonObject) -> Iterator[bytes]:
    for event in _claude_parts(message):
        yield b"event: %b\ndata: %b\n\n" % (str(event["type"]).encode(), orjson.dumps(event))


def _claude_parts(message: JsonObject) -> Iterator[JsonObject]:
    yield {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}
    for index, block in enumerate(objects(message["content"])):
        kind = block["type"]
        empty: JsonObject = {"thinking": "", "signature": ""} if kind == "thinking" else {"text": ""}
        begun: JsonObject = {**block, "input": {}} if kind == "tool_use" else {"type": kind, **empty}
        yield {"type": "content_block_start", "index": index, "content_block": begun}
        deltas: list[JsonObject] = []
        if kind == "thinking":
            deltas.append({"type": "thinking_delta", "thinking": block["thinking"]})
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
        elif kind == "text":
            deltas.append({"type": "text_delta", "text": block["text"]})
        else:
            deltas.append({"type": "input_json_delta", "partial_json": orjson.dumps(block["input"]).decode()})
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    ending: JsonObject = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": ending, "usage": {"output_tokens": 5}}
    yield {"type": "message_stop"}


# Bedrock -------------------------------------------------------------------------------------------------------------


class Bedrock(StrictVendor):
    """`converse` and `converse-stream` of a Claude with a thinking budget."""

    @override
    def _refusal(self, message: str) -> Script:
        return json_answer(400, {"message": message}, [("x-amzn-errortype", "ValidationException")])

    @override
    def _answer(self, received: Received, body: JsonObject) -> Script:
        blocks, reason = self._blocks(body)
        if received.path.endswith("converse-stream"):
            return body_answer(200, b"".join(_converse_frames(blocks, reason)), [("content-type", MEDIA)])
        usage: JsonObject = {"inputTokens": 10, "outputTokens": 5, "totalTokens": 15}
        message: JsonObject = {"role": "assistant", "content": [*blocks]}
        answer: JsonObject = {"output": {"message": message}, "stopReason": reason, "usage": usage}
        return json_answer(200, {**answer, "metrics": {"latencyMs": 1}})

    def _blocks(self, body: JsonObject) -> tuple[list[JsonObject], str]:
        extra = object_of(body.get("additionalModelRequestFields"))
        thinking = object_of(extra.get("thinking")).get("type") == "enabled"
        results = _check_claude_turns(
            [_as_claude(turn) for turn in objects(body.get("messages"))], thinking, self._plan
        )
        tools = [object_of(tool.get("toolSpec")) for tool in objects(object_of(body.get("toolConfig")).get("tools"))]
        own = [tool for tool in tools if self._plan.is_own(tool)]
        if own:
            return [{"toolUse": {"toolUseId": "tooluse_trip", "name": own[0]["name"], "input": TRIP}}], "tool_use"
        if not tools and self._plan.untooled is not None:
            return [{"text": self._plan.untooled}], "end_turn"
        self.wire.thinking.append(thinking)
        move = self._plan.after(results)
        blocks: list[JsonObject] = []
        if thinking:
            reasoning: JsonObject = {"reasoningText": {"text": move.thought, "signature": move.signature}}
            blocks.append({"reasoningContent": reasoning})
        if move.text:
            blocks.append({"text": move.text})
        for number, (name, given) in enumerate(move.calls):
            use: JsonObject = {"toolUseId": f"tooluse_{move.number}_{number}", "name": name, "input": given}
            blocks.append({"toolUse": use})
        return blocks, "tool_use" if move.calls else "end_turn"


def _as_claude(turn: JsonObject) -> JsonObject:
    """Return a turn of Converse in the form of Anthropic's own API, whose rules are the same."""
    return {"role": turn.get("role"), "content": [_as_claude_block(block) for block in objects(turn.get("content"))]}


def _as_claude_block(block: JsonObject) -> JsonObject:
    match block:
        case {"toolUse": {"toolUseId": used}}:
            return {"type": "tool_use", "id": used}
        case {"toolResult": {"toolUseId": used}}:
            return {"type": "tool_result", "tool_use_id": used}
        case {"reasoningContent": {"reasoningText": {"text": text, "signature": signature}}}:
            return {"type": "thinking", "thinking": text, "signature": signature}
        case {"text": text}:
            return {"type": "text", "text": text}
        case _:
            return {"type": next(iter(block))}


def _converse_frames(blocks: list[JsonObject], reason: str) -> Iterator[bytes]:
    yield frame("messageStart", {"role": "assistant"})
    for index, block in enumerate(blocks):
        deltas: list[JsonObject] = []
        match block:
            case {"toolUse": {"toolUseId": used, "name": name, "input": given}}:
                start: JsonObject = {"toolUse": {"toolUseId": used, "name": name}}
                yield frame("contentBlockStart", {"contentBlockIndex": index, "start": start})
                deltas.append({"toolUse": {"input": orjson.dumps(given).decode()}})
            case {"reasoningContent": {"reasoningText": {"text": text, "signature": signature}}}:
                deltas += [{"reasoningContent": {"text": text}}, {"reasoningContent": {"signature": signature}}]
            case _:
                deltas.append(block)
        for delta in deltas:
            yield frame("contentBlockDelta", {"contentBlockIndex": index, "delta": delta})
        yield frame("contentBlockStop", {"contentBlockIndex": index})
    yield frame("messageStop", {"stopReason": reason})
    usage: JsonObject = {"inputTokens": 10, "outputTokens": 5, "totalTokens": 15}
    yield frame("metadata", {"usage": usage, "metrics": {"latencyMs": 1}})
