"""A server of OpenAI's chat completions that reasons in `reasoning_content`, and checks an agent's conversation.

Sources: OpenAI's API reference and function-calling guide (names of functions, results after calls), November 2026.
"""

import re
from collections.abc import Iterator

import orjson
from typing_extensions import override

from providers.json_types import JsonObject, JsonValue
from tests.e2e.agents.agent_plan import Broken, Move, StrictOpenAI, object_of, objects
from tests.support.http_scripts import json_answer, sse_answer
from tests.support.vendor_script import Received, Script

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_ROLES = frozenset({"system", "developer", "user", "assistant", "tool"})


class OpenAI(StrictOpenAI):
    """`POST /v1/chat/completions`."""

    @override
    def _answer(self, received: Received, body: JsonObject) -> Script:
        _check_tools(body)
        move = self._plan.after(_check_messages(objects(body.get("messages"))))
        self.wire.thinking.append(body.get("reasoning_effort") is not None)
        return sse_answer(_frames(move)) if body.get("stream") else json_answer(200, _whole(move))


def _check_tools(body: JsonObject) -> None:
    if body.get("tools") == []:
        raise Broken("Invalid 'tools': empty array. Expected an array with minimum length 1")
    for tool in objects(body.get("tools")):
        function = object_of(tool.get("function"))
        if tool.get("type") != "function" or not _NAME.fullmatch(str(function.get("name"))):
            raise Broken(f"Invalid 'tools[0].function.name': {function.get('name')}")
        if object_of(function.get("parameters")).get("type") != "object":
            raise Broken(f"Invalid schema for function '{function['name']}'")


def _check_messages(messages: list[JsonObject]) -> int:
    """Return the number of results. Raise Broken if the API would return 400."""
    pending: list[JsonValue] = []
    results = 0
    for message in messages:
        role, content = message.get("role"), message.get("content")
        if role not in _ROLES:
            raise Broken(f"Invalid value: '{role}'")
        if role == "tool":
            if message.get("tool_call_id") not in pending:
                raise Broken("messages with role 'tool' must be a response to a preceeding message with 'tool_calls'")
            pending.remove(message["tool_call_id"])
            results += 1
        elif pending:
            raise Broken("An assistant message with 'tool_calls' must be followed by tool messages")
        calls = objects(message.get("tool_calls"))
        pending += [call.get("id") for call in calls]
        if not content and not calls and role == "assistant":
            raise Broken("Invalid value for 'content': expected a string, got null")
    if pending:
        raise Broken("An assistant message with 'tool_calls' must be followed by tool messages")
    return results


def _calls(move: Move) -> list[JsonValue]:
    return [
        {
            "index": number,
            "id": f"call_{move.number}_{number}",
            "type": "function",
            "function": {"name": name, "arguments": orjson.dumps(given).decode()},
        }
        for number, (name, given) in enumerate(move.calls)
    ]


def _head(move: Move, kind: str) -> JsonObject:
    return {"id": f"chatcmpl-{move.number}", "object": kind, "created": 1, "model": "coder"}


_USAGE: JsonObject = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


def _whole(move: Move) -> JsonObject:
    message: JsonObject = {"role": "assistant", "content": move.text or None, "reasoning_content": move.thought}
    if move.calls:
        message["tool_calls"] = _calls(move)
    choice: JsonObject = {"index": 0, "message": message, "finish_reason": "tool_calls" if move.calls else "stop"}
    return {**_head(move, "chat.completion"), "choices": [choice], "usage": _USAGE}


def _frames(move: Move) -> Iterator[bytes]:
    deltas: list[JsonObject] = [{"role": "assistant"}, {"reasoning_content": move.thought}]
    deltas += [{"content": move.text}] if move.text else []
    deltas += [{"tool_calls": [call]} for call in _calls(move)]
    for delta in deltas:
        yield _frame(move, {"index": 0, "delta": delta, "finish_reason": None})
    yield _frame(move, {"index": 0, "delta": {}, "finish_reason": "tool_calls" if move.calls else "stop"})
    yield b"data: " + orjson.dumps({**_head(move, "chat.completion.chunk"), "choices": [], "usage": _USAGE}) + b"\n\n"
    yield b"data: [DONE]\n\n"


def _frame(move: Move, choice: JsonObject) -> bytes:
    return b"data: " + orjson.dumps({**_head(move, "chat.completion.chunk"), "choices": [choice]}) + b"\n\n"
