"""Fakes of Anthropic, Gemini and Bedrock that check what the real ones check in an agent's conversation.

They play one agent: it thinks at each turn, calls tools in four turns, and answers in the fifth. What is sent back is
held against what was given: thinking must come back whole, first and signed; each result must follow its call.

Sources: error texts and rules of platform.claude.com `api/errors`, "Extended thinking", "Structured outputs" and
"Preserved thinking", ai.google.dev "Thought signatures", botocore 1.44.5 `bedrock-runtime`, November 2026.
"""

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import orjson

from providers.json_types import JsonObject, JsonValue
from tests.providers.dialects.bedrock.fake_server import MEDIA, frame
from tests.support.http_scripts import body_answer, json_answer, sse_answer
from tests.support.vendor_script import Received, Script

TRIP: JsonObject = {
    "title": "North",
    "legs": [{"city": "Oslo", "nights": 2, "by": "train", "note": None}],
    "stay": {"kind": "hotel", "stars": 4},
    "budget": 900.5,
}
"""An answer to the structured scenario of `driver.py`."""

CALLS = [
    ["weather", "Paris"],
    ["weather", "Rome"],
    ["weather", "Oslo"],
    ["compare", "Paris: 5 degrees", "Rome: 4 degrees"],
    ["compare", "Rome: 4 degrees", "Oslo: 4 degrees"],
]
"""The calls that the agent makes, in order."""

FINAL = "Paris is the warmest."

TURNS = 5

_TOOLS = frozenset({"weather", "compare"})


class Broken(Exception):
    """The conversation breaks a rule; the text is the vendor's."""


@dataclass(frozen=True, slots=True)
class Move:
    """What the agent does in a turn: its number, its thought, and its calls or its text."""

    number: int
    thought: str
    calls: tuple[tuple[str, JsonObject], ...] = ()
    text: str = ""

    @property
    def signature(self) -> str:
        """The signature of the thought, in base64."""
        return base64.b64encode(f"signed:{self.number}:{self.thought}".encode()).decode()


def _plan() -> tuple[Move, ...]:
    made = [{"city": rest[0]} if name == "weather" else {"first": rest[0], "second": rest[1]} for name, *rest in CALLS]
    calls = [(str(call[0]), dict[str, JsonValue](given)) for call, given in zip(CALLS, made, strict=True)]
    return (
        Move(0, "First two cities.", tuple(calls[:2])),
        Move(1, "One is missing.", tuple(calls[2:3])),
        Move(2, "Two of three.", tuple(calls[3:4])),
        Move(3, "The other two.", tuple(calls[4:5])),
        Move(4, "All is known.", text=FINAL),
    )


PLAN = _plan()


@dataclass(slots=True)
class Wire:
    """What one vendor was asked: the thinking that each turn asked for, and what it refused."""

    thinking: list[bool] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)


class StrictVendor(Protocol):
    """A fake vendor; `play` is its behaviour for `FakeVendor`."""

    wire: Wire

    def play(self, received: Received) -> Script:
        """Return the answer to one call."""


def _objects(value: JsonValue) -> list[JsonObject]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _object(value: JsonValue) -> JsonObject:
    return value if isinstance(value, dict) else {}


def move_after(results: int) -> Move:
    """Return the agent's move when it has seen that many results."""
    return PLAN[{0: 0, 2: 1, 3: 2, 4: 3, 5: 4}[results]]


def refused_keyword(schema: JsonValue, refused: frozenset[str]) -> str | None:
    """Return the first keyword of a schema that a vendor refuses, or a place where it must be closed and is not."""
    pending = [schema]
    while pending:
        node = pending.pop()
        if isinstance(node, list):
            pending += node
        if not isinstance(node, dict):
            continue
        if found := refused & node.keys():
            return min(found)
        if node.get("type") == "object" and node.get("additionalProperties") is not False:
            return "an open object"
        for name, value in node.items():
            # The names of properties and definitions are no keywords.
            pending += value.values() if name in ("properties", "$defs") and isinstance(value, dict) else [value]
    return None


_CLAUDE = frozenset(
    {
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
        *("minLength", "maxLength", "maxItems", "uniqueItems", "oneOf", "not", "prefixItems"),
    }
)


# Anthropic ------------------------------------------------------------------------------------------------------------


class Anthropic:
    """`POST /v1/messages` of claude-sonnet-4-5, whose thinking has a budget."""

    def __init__(self) -> None:
        self.wire = Wire()

    def play(self, received: Received) -> Script:
        """See StrictVendor."""
        body = _object(orjson.loads(received.body))
        try:
            message = self._message(body)
        except Broken as error:
            self.wire.refused.append(str(error))
            told: JsonObject = {"type": "error", "error": {"type": "invalid_request_error", "message": str(error)}}
            return json_answer(400, told)
        if body.get("stream"):
            return sse_answer(_claude_events(message), headers=[("content-type", "text/event-stream")])
        return json_answer(200, message)

    def _message(self, body: JsonObject) -> JsonObject:
        turns, thinking = _objects(body.get("messages")), _object(body.get("thinking")).get("type") == "enabled"
        limit = body.get("max_tokens")
        if not isinstance(limit, int):
            raise Broken("max_tokens: Field required")
        if thinking:
            budget = _object(body["thinking"]).get("budget_tokens")
            if not isinstance(budget, int) or not 1024 <= budget < limit:
                raise Broken("`max_tokens` must be greater than `thinking.budget_tokens`.")
            if body.get("temperature", 1) != 1 or _object(body.get("tool_choice")).get("type") in ("any", "tool"):
                raise Broken("Thinking may not be enabled when tool_choice forces tool use.")
        if "effort" in _object(body.get("output_config")):
            raise Broken("This model does not support the effort parameter.")
        results = _check_claude_turns(turns, thinking)
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

    def _blocks(self, body: JsonObject, results: int, thinking: bool) -> tuple[list[JsonValue], str]:
        tools = _objects(body.get("tools"))
        form = _object(_object(body.get("output_config")).get("format"))
        if form:
            if word := refused_keyword(form.get("schema"), _CLAUDE):
                raise Broken(f"output_config.format.schema: property '{word}' is not supported")
            return [{"type": "text", "text": orjson.dumps(TRIP).decode()}], "end_turn"
        own = [tool for tool in tools if tool.get("name") not in _TOOLS]
        for tool in tools:
            if tool.get("strict") and (word := refused_keyword(tool.get("input_schema"), _CLAUDE)):
                raise Broken(f"tools.0.custom.input_schema: property '{word}' is not supported")
        if own:
            return [{"type": "tool_use", "id": "toolu_trip", "name": own[0]["name"], "input": TRIP}], "tool_use"
        if not tools:
            return [{"type": "text", "text": orjson.dumps(TRIP).decode()}], "end_turn"
        self.wire.thinking.append(thinking)
        move = move_after(results)
        blocks: list[JsonValue] = []
        if thinking:
            blocks.append({"type": "thinking", "thinking": move.thought, "signature": move.signature})
        if move.text:
            blocks.append({"type": "text", "text": move.text})
        for number, (name, given) in enumerate(move.calls):
            blocks.append({"type": "tool_use", "id": f"toolu_{move.number}_{number}", "name": name, "input": given})
        return blocks, "tool_use" if move.calls else "end_turn"


def _check_claude_turns(turns: list[JsonObject], thinking: bool) -> int:
    """Return the number of results. Raises Broken where the API would answer 400."""
    pending: set[str] = set()
    results = 0
    for number, turn in enumerate(turns):
        if turn.get("role") != ("assistant" if number % 2 else "user"):
            raise Broken(f"messages.{number}: roles must alternate")
        blocks = _objects(turn.get("content"))
        answered = {str(block["tool_use_id"]) for block in blocks if block.get("type") == "tool_result"}
        if answered != pending:
            raise Broken(f"messages.{number}: `tool_use` ids were found without `tool_result` blocks immediately after")
        results += len(answered)
        if any(not str(block.get("text", "x")).strip() for block in blocks):
            raise Broken("messages: text content blocks must be non-empty")
        pending = {str(block["id"]) for block in blocks if block.get("type") == "tool_use"}
        if pending:
            _check_claude_thinking(number, blocks, thinking)
    if not turns or turns[-1]["role"] != "user" or pending:
        raise Broken("messages: the final turn must be the user's")
    return results


def _check_claude_thinking(number: int, blocks: list[JsonObject], thinking: bool) -> None:
    called = str(next(block["id"] for block in blocks if block.get("type") == "tool_use"))
    given = [block for block in blocks if block.get("type") == "thinking"]
    if thinking and (not given or blocks[0] is not given[0]):
        raise Broken(
            f"messages.{number}.content.0.type: Expected `thinking` or `redacted_thinking`, but found "
            f"`{blocks[0].get('type')}`. When `thinking` is enabled, a final `assistant` message must start with a "
            "thinking block"
        )
    for block in given:
        move = PLAN[int(called.split("_")[1])]
        if block.get("signature") != move.signature or block.get("thinking") != move.thought:
            raise Broken(f"messages.{number}.content.0: Invalid `signature` in `thinking` block")


def _claude_events(message: JsonObject) -> Iterator[bytes]:
    for event in _claude_parts(message):
        yield b"event: %b\ndata: %b\n\n" % (str(event["type"]).encode(), orjson.dumps(event))


def _claude_parts(message: JsonObject) -> Iterator[JsonObject]:
    yield {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}
    for index, block in enumerate(_objects(message["content"])):
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


# Gemini ---------------------------------------------------------------------------------------------------------------


class Gemini:
    """`generateContent` and `streamGenerateContent` of gemini-3-flash, whose calls must come back signed."""

    def __init__(self) -> None:
        self.wire = Wire()

    def play(self, received: Received) -> Script:
        """See StrictVendor."""
        body = _object(orjson.loads(received.body))
        try:
            answer = self._answer(body)
        except Broken as error:
            self.wire.refused.append(str(error))
            told: JsonObject = {"error": {"code": 400, "message": str(error), "status": "INVALID_ARGUMENT"}}
            return json_answer(400, told)
        if "streamGenerateContent" in received.target:
            return sse_answer(_gemini_frames(answer), headers=[("content-type", "text/event-stream")])
        return json_answer(200, answer)

    def _answer(self, body: JsonObject) -> JsonObject:
        config = _object(body.get("generationConfig"))
        results = _check_gemini_turns(_objects(body.get("contents")))
        declared = [
            declaration
            for tool in _objects(body.get("tools"))
            for declaration in _objects(tool.get("functionDeclarations"))
        ]
        own = [each for each in declared if each.get("name") not in _TOOLS]
        if own:
            call: JsonObject = {"functionCall": {"id": "trip", "name": own[0]["name"], "args": TRIP}}
            return _candidate([{**call, "thoughtSignature": base64.b64encode(b"trip").decode()}])
        if not declared:
            return _candidate([{"text": orjson.dumps(TRIP).decode()}])
        self.wire.thinking.append(bool(_object(config.get("thinkingConfig"))))
        move = move_after(results)
        parts: list[JsonValue] = []
        if _object(config.get("thinkingConfig")).get("includeThoughts"):
            parts.append({"text": move.thought, "thought": True})
        if move.text:
            parts.append({"text": move.text})
        for number, (name, given) in enumerate(move.calls):
            function: JsonObject = {"id": f"c_{move.number}_{number}", "name": name, "args": given}
            # Of parallel calls only the first is signed.
            signed: JsonObject = {} if number else {"thoughtSignature": move.signature}
            parts.append({"functionCall": function, **signed})
        return _candidate(parts)


def _candidate(parts: list[JsonValue]) -> JsonObject:
    return {
        "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15},
        "modelVersion": "gemini-3-flash-preview",
        "responseId": "r",
    }


def _check_gemini_turns(turns: list[JsonObject]) -> int:
    """Return the number of results. Raises Broken where the API would answer 400."""
    results = 0
    pending: list[str] = []
    for number, turn in enumerate(turns):
        parts = _objects(turn.get("parts"))
        calls = [_object(part["functionCall"]) for part in parts if "functionCall" in part]
        answers = [_object(part["functionResponse"]) for part in parts if "functionResponse" in part]
        if len(answers) != len(pending):
            raise Broken("Please ensure that the number of function response parts is equal to the number of calls")
        results += len(answers)
        pending = [str(call["name"]) for call in calls]
        if calls:
            first = next(part for part in parts if "functionCall" in part)
            made = str(calls[0].get("id")).split("_")
            if "thoughtSignature" not in first:
                raise Broken(f"Function call is missing a thought_signature in functionCall parts: {number}")
            if first["thoughtSignature"] != PLAN[int(made[1])].signature:
                raise Broken("Corrupted thought signature.")
    return results


def _gemini_frames(answer: JsonObject) -> Iterator[bytes]:
    candidate = _objects(answer["candidates"])[0]
    parts = _objects(_object(candidate["content"])["parts"])
    for part in parts:
        held: JsonObject = {"candidates": [{"content": {"role": "model", "parts": [part]}, "index": 0}]}
        yield b"data: " + orjson.dumps({**answer, **held}) + b"\r\n\r\n"
    ending: JsonObject = {"candidates": [{**candidate, "content": {"role": "model", "parts": [{"text": ""}]}}]}
    yield b"data: " + orjson.dumps({**answer, **ending}) + b"\r\n\r\n"


# Bedrock --------------------------------------------------------------------------------------------------------------


class Bedrock:
    """`converse` and `converse-stream` of a Claude with a thinking budget."""

    def __init__(self) -> None:
        self.wire = Wire()

    def play(self, received: Received) -> Script:
        """See StrictVendor."""
        body = _object(orjson.loads(received.body))
        try:
            blocks, reason = self._blocks(body)
        except Broken as error:
            self.wire.refused.append(str(error))
            return json_answer(400, {"message": str(error)}, [("x-amzn-errortype", "ValidationException")])
        if received.path.endswith("converse-stream"):
            return body_answer(200, b"".join(_converse_frames(blocks, reason)), [("content-type", MEDIA)])
        usage: JsonObject = {"inputTokens": 10, "outputTokens": 5, "totalTokens": 15}
        message: JsonObject = {"role": "assistant", "content": [*blocks]}
        answer: JsonObject = {"output": {"message": message}, "stopReason": reason, "usage": usage}
        return json_answer(200, {**answer, "metrics": {"latencyMs": 1}})

    def _blocks(self, body: JsonObject) -> tuple[list[JsonObject], str]:
        extra = _object(body.get("additionalModelRequestFields"))
        thinking = _object(extra.get("thinking")).get("type") == "enabled"
        results = _check_claude_turns([_as_claude(turn) for turn in _objects(body.get("messages"))], thinking)
        tools = [_object(tool.get("toolSpec")) for tool in _objects(_object(body.get("toolConfig")).get("tools"))]
        own = [tool for tool in tools if tool.get("name") not in _TOOLS]
        if own:
            return [{"toolUse": {"toolUseId": "tooluse_trip", "name": own[0]["name"], "input": TRIP}}], "tool_use"
        if not tools:
            return [{"text": orjson.dumps(TRIP).decode()}], "end_turn"
        self.wire.thinking.append(thinking)
        move = move_after(results)
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
    return {"role": turn.get("role"), "content": [_as_claude_block(block) for block in _objects(turn.get("content"))]}


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


VENDORS: Mapping[str, type[Anthropic] | type[Gemini] | type[Bedrock]] = {
    "anthropic/claude-sonnet-4-5": Anthropic,
    "gemini/gemini-3-flash-preview": Gemini,
    "bedrock/anthropic.claude-sonnet-4-5-20250929-v1:0": Bedrock,
}
"""The fakes, by the model that clients name."""
