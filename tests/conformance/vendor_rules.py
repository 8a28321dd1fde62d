"""Fake vendors that reason, call tools in parallel, and refuse a conversation in which their reasoning did not come
back.

Rules and error texts: Anthropic's "Extended thinking" and opencode#3077; Gemini's "Thought signatures" and
langgenius/dify-official-plugins#2088; DeepSeek's "Thinking mode" and pi#3636; OpenRouter's "Reasoning tokens", read in
November 2026.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import cast

import orjson

from providers.json_types import JsonObject, JsonValue
from tests.support.http_scripts import data_frames, json_answer, sse_answer
from tests.support.vendor_script import Received, Script

TURNS = 5
"""The responses of one loop; the last one calls no tool."""

FINAL = "It is done."


def signed(text: str) -> str:
    """Return the signature of a text, in base64's alphabet."""
    return hashlib.sha256(f"secret {text}".encode()).hexdigest() + "+/=="


def thought(turn: int) -> str:
    return f"Thinking of step {turn}, with ünïcode."


def listed(value: JsonValue) -> list[JsonObject]:
    """Return the objects of a list."""
    assert isinstance(value, list)
    assert all(isinstance(each, dict) for each in value)
    return cast("list[JsonObject]", value)


def calls_of(turn: int) -> list[tuple[str, str, JsonObject]]:
    """Return the two calls of a turn: ids in the vendor's form, names and arguments."""
    return [(f"{turn}x8Fq2ZkT9w{number}", f"step_{number}", {"turn": turn, "n": number}) for number in (1, 2)]


@dataclass(slots=True)
class ThinkingVendor(ABC):
    """One vendor; `refused` holds the problems it found, `loops` the turns that were requested."""

    profile: str
    model: str
    fields: JsonObject = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    turns: list[int] = field(default_factory=list)

    def __call__(self, request: Received) -> Script:
        """Check a request as the vendor does and respond to it."""
        body = cast("JsonObject", orjson.loads(request.body))
        problem = self.problem(body)
        if problem is not None:
            self.refused.append(problem)
            return json_answer(400, self.error(problem))
        turn = self.turn(body)
        self.turns.append(turn)
        streamed = body.get("stream") is True or "stream" in request.target
        return sse_answer(list(self.stream(turn))) if streamed else json_answer(200, self.whole(turn))

    def error(self, message: str) -> JsonValue:
        return {"error": {"message": message, "type": "invalid_request_error", "code": 400}}

    @abstractmethod
    def problem(self, body: JsonObject) -> str | None:
        """Return the reason why the vendor would refuse the request."""

    @abstractmethod
    def turn(self, body: JsonObject) -> int:
        """Return the number of the next response, from 1."""

    @abstractmethod
    def whole(self, turn: int) -> JsonObject:
        """Return the non-streaming response of a turn."""

    @abstractmethod
    def stream(self, turn: int) -> Iterator[bytes]:
        """Return the response of a turn as a stream."""


# Claude --------------------------------------------------------------------------------------------------------------

_MISSING = (
    "messages.{}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{}`. When `thinking` is "
    "enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` "
    "and `tool_result` blocks)."
)
_CHANGED = (
    "messages.{}.content.{}: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be "
    "modified."
)


class Claude(ThinkingVendor):
    """Claude with `thinking: enabled`; every turn has a `thinking` block, a redacted one, a text and two calls."""

    def blocks(self, turn: int) -> list[JsonObject]:
        """Return the content blocks of a turn."""
        thinking: list[JsonObject] = [
            {"type": "thinking", "thinking": thought(turn), "signature": signed(thought(turn))},
            {"type": "redacted_thinking", "data": signed(f"redacted {turn}")},
        ]
        if turn == TURNS:
            return [*thinking, {"type": "text", "text": FINAL}]
        calls: list[JsonObject] = [
            {"type": "tool_use", "id": f"toolu_{own}", "name": name, "input": given}
            for own, name, given in calls_of(turn)
        ]
        return [*thinking, {"type": "text", "text": f"Step {turn}."}, *calls]

    def problem(self, body: JsonObject) -> str | None:
        thinking = body.get("thinking")
        if not isinstance(thinking, dict) or thinking.get("type") == "disabled":
            return "the request lost its `thinking`"
        messages = listed(body["messages"])
        for place, message in enumerate(messages):
            if message["role"] != "assistant":
                continue
            content = listed(message["content"])
            if content[0]["type"] not in ("thinking", "redacted_thinking"):
                return _MISSING.format(place, content[0]["type"])
            turn = sum(each["role"] == "assistant" for each in messages[: place + 1])
            expected = self.blocks(turn)
            for number, block in enumerate(content):
                bare = {name: value for name, value in block.items() if name != "cache_control"}
                if bare != expected[number]:
                    return _CHANGED.format(place, number)
            if len(content) != len(expected):
                return _CHANGED.format(place, len(content))
        return None

    def turn(self, body: JsonObject) -> int:
        return 1 + sum(message["role"] == "assistant" for message in listed(body["messages"]))

    def whole(self, turn: int) -> JsonObject:
        reason = "end_turn" if turn == TURNS else "tool_use"
        return {**self._head(), "content": [*self.blocks(turn)], "stop_reason": reason}

    def stream(self, turn: int) -> Iterator[bytes]:
        yield self._event("message_start", message={**self._head(), "content": [], "stop_reason": None})
        for index, block in enumerate(self.blocks(turn)):
            begun, deltas = self._pieces(block)
            yield self._event("content_block_start", index=index, content_block=begun)
            for delta in deltas:
                yield self._event("content_block_delta", index=index, delta=delta)
            yield self._event("content_block_stop", index=index)
        reason = "end_turn" if turn == TURNS else "tool_use"
        ended: JsonObject = {"stop_reason": reason, "stop_sequence": None}
        yield self._event("message_delta", delta=ended, usage={"output_tokens": 9})
        yield self._event("message_stop")

    @staticmethod
    def _pieces(block: JsonObject) -> tuple[JsonObject, list[JsonObject]]:
        match block["type"]:
            case "thinking":
                text = str(block["thinking"])
                return {"type": "thinking", "thinking": "", "signature": ""}, [
                    {"type": "thinking_delta", "thinking": text[:7]},
                    {"type": "thinking_delta", "thinking": text[7:]},
                    {"type": "signature_delta", "signature": block["signature"]},
                ]
            case "text":
                return {"type": "text", "text": ""}, [{"type": "text_delta", "text": block["text"]}]
            case "tool_use":
                data = orjson.dumps(block["input"]).decode()
                return {**block, "input": {}}, [
                    {"type": "input_json_delta", "partial_json": data[:5]},
                    {"type": "input_json_delta", "partial_json": data[5:]},
                ]
            case _:
                return block, []

    def _head(self) -> JsonObject:
        usage: JsonObject = {"input_tokens": 9, "output_tokens": 9}
        return {"id": "msg_1", "type": "message", "role": "assistant", "model": self.model, "usage": usage}

    @staticmethod
    def _event(kind: str, **members: JsonValue) -> bytes:
        return b"event: %b\n%b" % (kind.encode(), data_frames({"type": kind, **members})[0])


# Gemini --------------------------------------------------------------------------------------------------------------


class Gemini(ThinkingVendor):
    """Gemini 3: the first call of each model turn has a signature, which must come back."""

    def problem(self, body: JsonObject) -> str | None:
        turn = 0
        for place, content in enumerate(listed(body["contents"])):
            calls = [part for part in listed(content["parts"]) if "functionCall" in part]
            if content["role"] != "model" or not calls:
                continue
            turn += 1
            name = cast("JsonObject", calls[0]["functionCall"])["name"]
            given = calls[0].get("thoughtSignature")
            if given is None:
                return f"Function call is missing a thought_signature in functionCall parts: `{name}` in {place}."
            if given != self._signature(turn):
                return "Corrupted thought signature."
        return None

    def turn(self, body: JsonObject) -> int:
        return 1 + sum(content["role"] == "model" for content in listed(body["contents"]))

    def whole(self, turn: int) -> JsonObject:
        parts: list[JsonObject] = [{"text": thought(turn), "thought": True}, *self._parts(turn)]
        return self._answer(parts, "STOP")

    def stream(self, turn: int) -> Iterator[bytes]:
        pieces: list[JsonObject] = [{"text": thought(turn), "thought": True}, *self._parts(turn)]
        for number, part in enumerate(pieces):
            last = number == len(pieces) - 1
            yield data_frames(self._answer([part], "STOP" if last else None))[0]

    def _parts(self, turn: int) -> list[JsonObject]:
        if turn == TURNS:
            return [{"text": FINAL, "thoughtSignature": self._signature(turn)}]
        parts: list[JsonObject] = [
            {"functionCall": {"id": own, "name": name, "args": given}} for own, name, given in calls_of(turn)
        ]
        parts[0]["thoughtSignature"] = self._signature(turn)
        return parts

    @staticmethod
    def _signature(turn: int) -> str:
        return hashlib.sha256(b"%d" % turn).hexdigest()

    def _answer(self, parts: list[JsonObject], reason: str | None) -> JsonObject:
        candidate: JsonObject = {"index": 0, "content": {"role": "model", "parts": [*parts]}}
        if reason is not None:
            candidate["finishReason"] = reason
        usage: JsonObject = {"promptTokenCount": 9, "candidatesTokenCount": 9, "totalTokenCount": 18}
        return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": self.model, "responseId": "r1"}


# OpenAI's shape ------------------------------------------------------------------------------------------------------


class OpenAIShaped(ThinkingVendor):
    """The base of vendors with OpenAI's wire format; `thinking` returns the fields of a message with reasoning."""

    prefix = "call_"

    @abstractmethod
    def thinking(self, turn: int) -> JsonObject:
        """Return the reasoning fields of a turn."""

    def deltas(self, turn: int) -> list[JsonObject]:
        """Return the reasoning fields of a turn as deltas."""
        return [self.thinking(turn)]

    def turn(self, body: JsonObject) -> int:
        return 1 + sum(message["role"] == "assistant" for message in listed(body["messages"]))

    def whole(self, turn: int) -> JsonObject:
        message: JsonObject = {"role": "assistant", "content": FINAL if turn == TURNS else "", **self.thinking(turn)}
        if turn < TURNS:
            message["tool_calls"] = [*self._calls(turn)]
        choice: JsonObject = {"index": 0, "message": message, "finish_reason": self._reason(turn)}
        return {**self._head("chat.completion"), "choices": [choice], "usage": self._usage()}

    def stream(self, turn: int) -> Iterator[bytes]:
        said: list[JsonObject] = [{"role": "assistant", "content": ""}, *self.deltas(turn)]
        if turn == TURNS:
            said.append({"content": FINAL})
        for number, call in enumerate(self._calls(turn) if turn < TURNS else ()):
            function = cast("JsonObject", call["function"])
            opened: JsonObject = {**call, "index": number, "function": {**function, "arguments": ""}}
            said += [
                {"tool_calls": [opened]},
                {"tool_calls": [{"index": number, "function": {"arguments": function["arguments"]}}]},
            ]
        for delta in said:
            yield self._frame(delta, None)
        yield self._frame({}, self._reason(turn))
        yield data_frames({**self._head("chat.completion.chunk"), "choices": [], "usage": self._usage()})[0]
        yield b"data: [DONE]\n\n"

    def _calls(self, turn: int) -> list[JsonObject]:
        return [
            {
                "id": self.prefix + own,
                "type": "function",
                "function": {"name": name, "arguments": orjson.dumps(given).decode()},
            }
            for own, name, given in calls_of(turn)
        ]

    def _frame(self, delta: JsonObject, reason: str | None) -> bytes:
        choice: JsonObject = {"index": 0, "delta": delta, "finish_reason": reason}
        return data_frames({**self._head("chat.completion.chunk"), "choices": [choice]})[0]

    def _head(self, kind: str) -> JsonObject:
        return {"id": "a1", "object": kind, "created": 1, "model": self.model}

    @staticmethod
    def _reason(turn: int) -> str:
        return "stop" if turn == TURNS else "tool_calls"

    @staticmethod
    def _usage() -> JsonObject:
        return {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18}


class DeepSeek(OpenAIShaped):
    """DeepSeek V4 with reasoning enabled: the reasoning text of each turn that called tools must come back."""

    def thinking(self, turn: int) -> JsonObject:
        return {"reasoning_content": thought(turn)}

    def deltas(self, turn: int) -> list[JsonObject]:
        return [{"reasoning_content": thought(turn)[:9]}, {"reasoning_content": thought(turn)[9:]}]

    def problem(self, body: JsonObject) -> str | None:
        turn = 0
        for message in listed(body["messages"]):
            if message["role"] == "assistant":
                turn += 1
                if message.get("tool_calls") and message.get("reasoning_content") != thought(turn):
                    return "The `reasoning_content` in the thinking mode must be passed back to the API."
        return None


class OpenRouter(OpenAIShaped):
    """OpenRouter in front of Claude: `reasoning_details` must come back unchanged."""

    def thinking(self, turn: int) -> JsonObject:
        return {"reasoning": thought(turn), "reasoning_details": [*self._details(turn)]}

    def deltas(self, turn: int) -> list[JsonObject]:
        text, encrypted = self._details(turn)
        piece = {name: value for name, value in text.items() if name != "signature"}
        first: JsonObject = {**piece, "text": thought(turn)[:9]}
        second: JsonObject = {**piece, "text": thought(turn)[9:]}
        ending = {name: value for name, value in text.items() if name != "text"}
        return [
            {"reasoning": thought(turn)[:9], "reasoning_details": [first]},
            {"reasoning": thought(turn)[9:], "reasoning_details": [second]},
            {"reasoning_details": [ending]},
            {"reasoning_details": [encrypted]},
        ]

    def problem(self, body: JsonObject) -> str | None:
        turn = 0
        for place, message in enumerate(listed(body["messages"])):
            if message["role"] != "assistant":
                continue
            turn += 1
            if message.get("tool_calls") and message.get("reasoning_details") != self._details(turn):
                return _MISSING.format(place, "tool_use")
        return None

    @staticmethod
    def _details(turn: int) -> list[JsonObject]:
        common: JsonObject = {"format": "anthropic-claude-v1"}
        return [
            {
                "type": "reasoning.text",
                "text": thought(turn),
                "signature": signed(thought(turn)),
                **common,
                "index": 0,
            },
            {"type": "reasoning.encrypted", "data": signed(f"redacted {turn}"), **common, "index": 1},
        ]


def vendors() -> list[ThinkingVendor]:
    """A fresh fake of each vendor."""
    thinking: JsonObject = {"thinking": {"type": "enabled", "budget_tokens": 2048}, "max_tokens": 8192}
    return [
        Claude("anthropic", "claude-haiku-4-5", thinking),
        Gemini("gemini", "gemini-3-flash-preview", {"reasoning_effort": "low"}),
        DeepSeek("deepseek", "deepseek-v4"),
        OpenRouter("openrouter", "anthropic/claude-sonnet-4.5"),
    ]
