"""The requests of coding agents: tools with schemas, a long system text, and turns of calls with their results.

Each API gets the same conversation. The counts are the counts of Claude Code and of Codex CLI in the middle of a task:
30 tools and 12 KB of instructions. All texts are generated from a seed, so that each run has the same bytes.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from random import Random
from typing import Literal

import orjson

from providers.json_types import JsonObject, JsonValue
from tests.bench.traffic import Ask

Surface = Literal["chat", "messages", "responses"]
SURFACES: Sequence[Surface] = ("chat", "messages", "responses")
PATHS: Mapping[Surface, str] = {
    "chat": "/v1/chat/completions",
    "messages": "/v1/messages",
    "responses": "/v1/responses",
}

SMALL, LARGE = 300_000, 3_000_000
"""Bytes of a body."""

TURNS: Mapping[int, int] = {SMALL: 60, LARGE: 600}
"""The number of turns in a body of each size."""

TOOLS, SYSTEM_BYTES = 30, 12_000

_WORDS = [
    "the",
    "function",
    "returns",
    "a",
    "value",
    "when",
    "parse",
    "error",
    "file",
    "line",
    "class",
    "import",
    "test",
    "config",
    "module",
    "request",
    "stream",
    "token",
    "vendor",
    "model",
    "cache",
    "route",
    "limit",
    "team",
    "state",
    "path",
    "index",
    "buffer",
]


def text(random: Random, size: int) -> str:
    """Return words like a program's output, with a line end or a quotation mark now and then."""
    words, length = [], 0
    while length < size:
        word = random.choice(_WORDS)
        draw = random.random()
        word += "\n    " if draw < 0.1 else ' "quoted"' if draw < 0.13 else ""
        words.append(word)
        length += len(word) + 1
    return " ".join(words)[:size]


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool."""

    name: str
    description: str
    schema: JsonObject


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn: the text of the assistant, its call, and the result of the call."""

    said: str
    call: str
    tool: str
    arguments: JsonObject
    result: str


@dataclass(frozen=True, slots=True)
class Conversation:
    """The conversation that an agent sends at one turn."""

    system: str
    task: str
    tools: Sequence[Tool]
    turns: Sequence[Turn]


def _schema(random: Random) -> JsonObject:
    edit: JsonObject = {"old": {"type": "string"}, "new": {"type": "string"}}
    edits: JsonObject = {"type": "object", "properties": edit, "required": ["old", "new"]}
    properties: JsonObject = {
        "path": {"type": "string", "description": text(random, 120)},
        "pattern": {"type": "string", "description": text(random, 100)},
        "limit": {"type": "integer", "description": text(random, 60), "minimum": 1},
        "mode": {"type": "string", "enum": ["a", "b", "c"], "description": text(random, 80)},
        "edits": {"type": "array", "items": edits},
        "flag": {"type": "boolean"},
    }
    return {"type": "object", "properties": properties, "required": ["path"], "additionalProperties": False}


def conversation(turns: int, result: int) -> Conversation:
    """Return a conversation of `turns` turns, each with a result of `result` characters."""
    random = Random(7)
    tools = [Tool(f"tool_{place}", text(random, 900), _schema(random)) for place in range(TOOLS)]
    system = f"{Ask().mark} {text(random, SYSTEM_BYTES)}"
    task = text(random, 500)
    said = []
    for place in range(turns):
        arguments: JsonObject = {
            "path": f"/src/file_{place}.py",
            "pattern": text(random, 80),
            "limit": place + 1,
            "mode": "a",
        }
        call = f"{place:024d}"
        said.append(Turn(text(random, 200), call, f"tool_{place % TOOLS}", arguments, text(random, result)))
    return Conversation(system, task, tools, said)


def chat(held: Conversation, model: str) -> JsonObject:
    """Return the body for OpenAI's chat completions."""
    messages: list[JsonValue] = [
        {"role": "system", "content": held.system},
        {"role": "user", "content": held.task},
    ]
    for turn in held.turns:
        function: JsonObject = {"name": turn.tool, "arguments": json.dumps(turn.arguments)}
        call: JsonObject = {"id": f"call_{turn.call}", "type": "function", "function": function}
        messages.append({"role": "assistant", "content": turn.said, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"call_{turn.call}", "content": turn.result})
    tools: list[JsonValue] = [
        {
            "type": "function",
            "function": {"name": each.name, "description": each.description, "parameters": each.schema},
        }
        for each in held.tools
    ]
    options: JsonObject = {"stream": False, "max_tokens": 4096, "temperature": 1.0}
    return {"model": model, "messages": messages, "tools": tools, **options}


def messages(held: Conversation, model: str) -> JsonObject:
    """Return the body for Anthropic's messages, with its cache marks."""
    marked: JsonObject = {"type": "ephemeral"}
    said: list[JsonValue] = [{"role": "user", "content": held.task}]
    for place, turn in enumerate(held.turns):
        call = f"toolu_{turn.call}"
        use: JsonObject = {"type": "tool_use", "id": call, "name": turn.tool, "input": turn.arguments}
        said.append({"role": "assistant", "content": [{"type": "text", "text": turn.said}, use]})
        last: JsonObject = {"cache_control": marked} if place == len(held.turns) - 1 else {}
        content: list[JsonValue] = [{"type": "text", "text": turn.result}]
        said.append(
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call, "content": content, **last}]}
        )
    tools: list[JsonValue] = [
        {"name": each.name, "description": each.description, "input_schema": each.schema} for each in held.tools
    ]
    system: list[JsonValue] = [{"type": "text", "text": held.system, "cache_control": marked}]
    return {
        "model": model,
        "max_tokens": 4096,
        "system": system,
        "messages": said,
        "tools": tools,
        "stream": False,
    }


def responses(held: Conversation, model: str) -> JsonObject:
    """Return the body for OpenAI's Responses API."""
    items: list[JsonValue] = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": held.task}]}
    ]
    for turn in held.turns:
        call = f"call_{turn.call}"
        content: list[JsonValue] = [{"type": "output_text", "text": turn.said}]
        items.append({"type": "message", "role": "assistant", "content": content})
        arguments = json.dumps(turn.arguments)
        items.append({"type": "function_call", "call_id": call, "name": turn.tool, "arguments": arguments})
        items.append({"type": "function_call_output", "call_id": call, "output": turn.result})
    tools: list[JsonValue] = [
        {
            "type": "function",
            "name": each.name,
            "description": each.description,
            "parameters": each.schema,
            "strict": False,
        }
        for each in held.tools
    ]
    options: JsonObject = {"store": False, "stream": False}
    return {"model": model, "instructions": held.system, "input": items, "tools": tools, **options}


WRITERS: Mapping[Surface, Callable[[Conversation, str], JsonObject]] = {
    "chat": chat,
    "messages": messages,
    "responses": responses,
}


@lru_cache(maxsize=8)
def _filled(surface: Surface, size: int) -> Conversation:
    """Return a conversation whose compact JSON has `size` bytes, within a hundredth."""
    turns = TURNS[size]
    probed = 1000
    around = len(orjson.dumps(WRITERS[surface](conversation(turns, probed), "m")))
    # A result grows by a little more than its characters: quotation marks and line ends are escaped.
    more = (size - around) / turns
    return conversation(turns, probed + int(more / _ESCAPED))


_ESCAPED = len(orjson.dumps(text(Random(1), 100_000))) / 100_000
"""Bytes of JSON for a character of `text`."""


def body(surface: Surface, size: int, model: str, *, spaced: bool) -> bytes:
    """Return the body of a request, as orjson writes it or with spaces like Python's `json.dumps`. Clients in Python
    send the latter, and clients in Node nearly the former."""
    written = WRITERS[surface](_filled(surface, size), model)
    return json.dumps(written).encode() if spaced else orjson.dumps(written)
