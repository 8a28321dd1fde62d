"""Requests with a mark in every string of every surface. The marks show which strings a guard saw, and which of them a
vendor received.

A mark is prose with a space, and half of them begin with `data:`. A token is a mark without a space, like an id.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from providers.json_types import JsonObject, JsonValue
from providers.unified_request import Operation
from proxy.plugins.api import ALLOW, RequestTexts, Verdict
from proxy.surfaces.anthropic.parse_body import RULES as MESSAGES_RULES
from proxy.surfaces.request.field_rules import FIELDS
from proxy.surfaces.responses.own_fields import READERS, UNIFIED
from tests.proxy.gateway.test_pass_on_task import form

MARK: Final = re.compile(r"(?:mark|token)-\d+-")

KEYS: Final = (
    *("data", "name", "format", "detail", "status", "voice", "required", "$ref", "ttl", "role", "type", "id"),
    *("signature", "media_type", "file_id", "url", "image_url", "file_data", "call_id", "encrypted_content", "text"),
)
"""Keys whose values guards once did not inspect, at any depth, and keys of media."""


@dataclass(slots=True)
class Marks:
    """A source of marks. `places` describes the position of each token."""

    count: int = 0
    places: dict[str, str] = field(default_factory=dict)

    def mark(self) -> str:
        self.count += 1
        return f"{'data: ' if self.count % 2 else ''}mark-{self.count}- 123-45-6789"

    def encoded(self) -> str:
        """Return a mark that can be read as base64."""
        self.count += 1
        text = f"mark-{self.count}-"
        return text + "x" * (-len(text) % 4)

    def token(self, place: str) -> str:
        self.count += 1
        self.places[f"token-{self.count}-"] = place
        return f"token-{self.count}-x"

    def object(self) -> JsonObject:
        """Return an object with marks under every key of KEYS, nested, in lists, and as a key."""
        found: JsonObject = {key: self.mark() for key in KEYS}
        listed: JsonValue = [self.mark(), {key: [self.mark()] for key in KEYS}]
        return {**found, "other": self.mark(), self.mark(): 1, "deep": {"list": listed}}


SEEN: list[str] = []
"""The strings that the recorder saw."""


class Recorder:
    """A guard that records everything that it sees."""

    api_version = 1

    def __init__(self, options: object) -> None:
        """Take the options."""

    def check_request(self, request: RequestTexts) -> Verdict:
        SEEN.extend([each.text for each in request.texts])
        return ALLOW


RECORDER: Final = f'{{use: "{__name__}:Recorder"}}'


@dataclass(frozen=True, slots=True)
class Marked:
    """A request, and its marks."""

    path: str
    body: JsonObject | bytes
    what: str


TASK_BODIES: Final[dict[str, JsonObject]] = {
    "/v1/embeddings": {"input": ["a"]},
    "/v1/rerank": {"query": "q", "documents": ["a"]},
    "/v1/moderations": {"input": "a"},
    "/v1/audio/speech": {"input": "a", "voice": "alloy"},
    "/v1/images/generations": {"prompt": "a"},
}

_TASK_FIELDS: Final = (
    *("input", "query", "documents", "prompt", "voice", "instructions", "input_type", "encoding_format", "user"),
    *("response_format", "size", "quality", "style", "background", "moderation", "output_format", "stream_format"),
    *("truncate", "unknown_field", "inference_extra_params", "inference_extra_headers"),
)


def _fields() -> Iterator[tuple[str, JsonObject, Sequence[str]]]:
    """Yield each path of a surface with a body that it accepts, and its fields."""
    chat: JsonObject = {"messages": [{"role": "user", "content": "hi"}]}
    for path, operation, body in (
        ("/v1/completions", Operation.COMPLETIONS, {"prompt": "hi"}),
        ("/v1/fim/completions", Operation.COMPLETIONS, {"prompt": "hi", "suffix": "x"}),
        ("/v1/chat/completions", Operation.CHAT, chat),
        ("/inference/v1/chat/completions", Operation.CHAT, chat),
    ):
        yield path, {**body}, [*FIELDS[operation], "unknown_field"]
    messages = [*MESSAGES_RULES.fields[Operation.CHAT], "system", "output_config", "container", "mcp_servers"]
    messages += ["context_management", "cache_control", "compaction", "diagnostics", "unknown_field", "inference_geo"]
    for path in ("/v1/messages", "/v1/messages/count_tokens"):
        yield path, {**chat, "max_tokens": 5}, messages
    yield "/v1/responses", {"input": "hi", "store": False}, [*UNIFIED, *READERS, "unknown_field"]
    for path, body in TASK_BODIES.items():
        yield path, body, _TASK_FIELDS


def each_field(marks: Marks) -> Iterator[Marked]:
    """Yield a request for each field of each surface, and for each of four forms of its value."""
    for path, body, names in _fields():
        for name in names:
            if name == "model":
                continue
            values: list[JsonValue] = [
                marks.mark(),
                [marks.mark(), marks.mark()],
                marks.object(),
                {"text": marks.mark()},
            ]
            for value in values:
                yield Marked(path, {**body, name: value}, name)
        yield Marked(path, {**body, marks.mark(): "x"}, "the name of a field")


def _schema(marks: Marks) -> JsonObject:
    return {
        "type": "object",
        "title": marks.mark(),
        "properties": {
            marks.mark(): {"type": "string", "enum": [marks.mark()], "description": marks.mark()},
            "c": {"const": marks.mark()},
            "d": {"default": {"data": marks.mark(), "name": marks.mark()}, "examples": [marks.mark()]},
            "e": {"type": "string", "format": marks.mark()},
        },
        "required": [marks.mark()],
        "$defs": {marks.mark(): {"type": "string"}},
    }


def _tool(marks: Marks) -> JsonObject:
    function: JsonObject = {
        "name": marks.mark(),
        "description": marks.mark(),
        "parameters": _schema(marks),
        "x": marks.mark(),
    }
    return {"type": "function", "function": function, "more": marks.object()}


def _part(marks: Marks, kind: str) -> JsonObject:
    return {"type": kind, "text": marks.mark(), "cache_control": {"type": "ephemeral", "ttl": marks.mark()}}


def _chat_messages(marks: Marks) -> Iterator[JsonObject]:
    for role in ("system", "developer", "user", "assistant"):
        yield {"role": role, "content": marks.mark(), "name": marks.mark(), "extra": marks.object()}
        yield {"role": role, "content": [_part(marks, "text"), {"type": "refusal", "refusal": marks.mark()}]}
    yield {"role": "user", "content": [{"type": "image_url", "image_url": f"data:text/plain,{marks.mark()}"}]}
    yield {"role": "user", "content": [{"type": "image_url", "image_url": {"url": f"data:{marks.mark()};base64,AAAA"}}]}
    yield {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,a", "detail": marks.mark()}}]}
    file = {"file_data": f"data:text/plain,{marks.mark()}", "filename": marks.mark(), "file_id": marks.token("file_id")}
    yield {"role": "user", "content": [{"type": "file", "file": {**file}}]}
    yield {"role": "user", "content": [{"type": "file", "file": {"file_data": marks.encoded(), "filename": "f"}}]}
    sound: JsonObject = {"data": marks.encoded(), "format": "wav"}
    yield {"role": "user", "content": [{"type": "input_audio", "input_audio": sound}]}
    yield {
        "role": "user",
        "content": [{"type": "input_audio", "input_audio": {"data": "AAAA", "format": marks.mark()}}],
    }
    yield {"role": "user", "content": [{"type": marks.mark(), "more": marks.object()}]}
    call: JsonObject = {"name": marks.mark(), "arguments": f'{{"a": "{marks.mark()}"}}'}
    told: JsonObject = {"id": marks.token("id"), "type": "function", "function": call, "extra_content": marks.object()}
    thoughts: JsonObject = {"reasoning_content": marks.mark(), "reasoning_details": [marks.object()]}
    yield {"role": "assistant", "content": None, "tool_calls": [told], **thoughts}
    yield {"role": "tool", "tool_call_id": marks.token("tool_call_id"), "content": marks.mark(), "name": marks.mark()}
    yield {"role": "function", "name": marks.mark(), "content": marks.mark()}


def _blocks(marks: Marks) -> Iterator[JsonObject]:
    yield _part(marks, "text")
    text: JsonObject = {"type": "text", "media_type": "text/plain", "data": marks.mark()}
    yield {"type": "document", "source": text, "title": marks.mark(), "context": marks.mark()}
    yield {"type": "document", "source": {"type": "base64", "media_type": "text/plain", "data": marks.encoded()}}
    yield {"type": "document", "source": {"type": "content", "content": [_part(marks, "text")]}}
    yield {"type": "document", "source": {"type": marks.mark(), "data": marks.mark(), "url": marks.mark()}}
    yield {"type": "search_result", "source": marks.mark(), "title": marks.mark(), "content": [_part(marks, "text")]}
    yield {"type": marks.mark(), "more": marks.object(), "signature": marks.mark(), "data": marks.mark()}
    yield {"type": "tool_result", "tool_use_id": marks.token("tool_use_id"), "content": [_part(marks, "text")]}


def _items(marks: Marks) -> Iterator[JsonObject]:
    for role in ("user", "system"):
        yield {"type": "message", "role": role, "content": [_part(marks, "input_text")], "status": marks.mark()}
    called: JsonObject = {"call_id": marks.token("call_id"), "id": marks.token("id"), "name": marks.mark()}
    yield {"type": "function_call", **called, "arguments": f'{{"a": "{marks.mark()}"}}', "namespace": marks.mark()}
    yield {"type": "function_call_output", "call_id": marks.token("call_id"), "output": marks.mark()}
    yield {"type": "custom_tool_call", **called, "input": marks.mark()}
    yield {"type": "custom_tool_call_output", "call_id": marks.token("call_id"), "output": [_part(marks, "input_text")]}
    yield {"type": "reasoning", "summary": [_part(marks, "summary_text")], "encrypted_content": marks.mark()}
    for data in (f"data:,{marks.mark()}", marks.encoded()):
        yield {"type": "message", "role": "user", "content": [{"type": "input_file", "file_data": data}]}
    yield {"type": marks.mark(), "more": marks.object()}


def each_place(marks: Marks) -> Iterator[Marked]:
    """Yield requests with marks in the contents of fields: messages, blocks, items, tools, schemas, forms and
    headers."""
    hi: JsonObject = {"role": "user", "content": "hi"}
    for message in _chat_messages(marks):
        yield Marked("/v1/chat/completions", {"messages": [hi, message]}, "messages")
    for block in _blocks(marks):
        turn: JsonObject = {"role": "user", "content": [block]}
        for path in ("/v1/messages", "/v1/messages/count_tokens"):
            yield Marked(path, {"max_tokens": 5, "messages": [hi, turn]}, f"block {block['type']}")
    thinks: JsonObject = {
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "output_config": {"effort": marks.mark()},
    }
    yield Marked("/v1/messages", {"max_tokens": 5000, "messages": [hi], **thinks}, "effort")
    used: JsonObject = {"type": "tool_use", "id": marks.token("id"), "name": marks.mark(), "input": marks.object()}
    thought: JsonObject = {"type": "thinking", "thinking": marks.mark(), "signature": marks.mark()}
    answered: JsonObject = {"role": "assistant", "content": [thought, used]}
    yield Marked(
        "/v1/messages", {"max_tokens": 5, "messages": [hi, answered], "system": [_part(marks, "text")]}, "turn"
    )
    tool: JsonObject = {"name": marks.mark(), "description": marks.mark(), "input_schema": _schema(marks)}
    yield Marked("/v1/messages", {"max_tokens": 5, "messages": [hi], "tools": [tool]}, "tools")
    for item in _items(marks):
        yield Marked("/v1/responses", {"store": False, "input": [hi, item]}, f"item {item['type']}")
    flat: JsonObject = {"type": "function", "name": marks.mark(), "parameters": _schema(marks)}
    yield Marked("/v1/responses", {"store": False, "input": "hi", "tools": [flat]}, "tools")
    form_of: JsonObject = {"type": "json_schema", "name": marks.mark(), "schema": _schema(marks)}
    yield Marked("/v1/responses", {"store": False, "input": "hi", "text": {"format": form_of}}, "format")
    chat: JsonObject = {"messages": [hi]}
    yield Marked("/v1/chat/completions", {**chat, "tools": [_tool(marks)]}, "tools")
    named: JsonObject = {"name": marks.mark(), "description": marks.mark(), "schema": _schema(marks)}
    shaped: JsonObject = {"response_format": {"type": "json_schema", "json_schema": named}}
    yield Marked("/v1/chat/completions", {**chat, **shaped}, "response_format")
    constraints: list[tuple[str, JsonValue]] = [
        ("guided_json", _schema(marks)),
        ("guided_choice", [marks.mark(), marks.mark()]),
        ("guided_regex", f"{marks.mark()}[a-z]+"),
        ("guided_grammar", f'root ::= "{marks.mark()}"'),
        ("logit_bias", {"1": 1}),
        ("tool_choice", {"type": "function", "function": {"name": marks.mark()}}),
    ]
    for name, value in constraints:
        yield Marked("/v1/chat/completions", {**chat, name: value}, name)
    pictures: JsonObject = {"images": [f"data:image/png;base64,AAAA {marks.mark()}"]}
    yield Marked("/v1/completions", {"prompt": "<image>", **pictures}, "images")
    headers: JsonObject = {"x-title": marks.mark(), "x-session-id": marks.token("inference_extra_headers")}
    yield Marked("/v1/chat/completions", {**chat, "inference_extra_headers": headers}, "headers")
    yield Marked("/v1/embeddings", {"input": ["a"], "inference_extra_headers": headers}, "headers")
    yield Marked("/v1/moderations", {"input": [{"type": "text", "text": marks.mark()}, marks.object()]}, "input")
    for name in ("prompt", "language", "response_format", "unknown", "timestamp_granularities[]", marks.mark()):
        parts = [("model", b"MODEL"), (name, marks.mark().encode()), ("file", marks.token("file").encode())]
        yield Marked("/v1/audio/transcriptions", form(*parts), f"form {name}")
