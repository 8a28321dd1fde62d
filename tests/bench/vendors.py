"""The requests to a vendor of each measured dialect, and its responses: bodies, streams of many chunks, heads.

The shapes follow the fixtures under `tests/providers/dialects`: OpenAI's chat completions with `stream_options`
(OpenAPI 2.3.0, August 2026) and their `obfuscation`, Anthropic's messages (anthropic 2.12.0), and Amazon's
ConverseStream with its filler `p` (botocore 1.44.5).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import orjson

from providers.framing.parse_aws_eventstream import encode
from providers.json_types import JsonObject, JsonValue
from tests.bench.traffic import Ask, chat_request, filled, request_bytes, roles, tokens
from tests.support.http_scripts import chunk, head

FILLER = "abcdefghijklmnopqrstuvwxyz0123456789"
CLAUDE = "anthropic.claude-haiku-4-5-20251001-v1:0"


@dataclass(frozen=True, slots=True)
class Wire:
    """One dialect as bytes.

    `path` is in the request line of its calls. `event` occurs once in each chunk of a stream, `done` in the last bytes
    of a stream that ended well.
    """

    name: str
    path: bytes
    content_type: str
    event: bytes
    done: bytes
    request: Callable[[Ask], bytes]
    whole: Callable[[str], JsonObject]
    frames: Callable[[Sequence[str], Ask], list[bytes]]

    def answer(self, ask: Ask) -> bytes:
        """Return the HTTP response: a non-streaming one, or all of a stream."""
        if ask.chunks:
            return b"".join((self.stream_head(), *self.stream(ask)))
        around = len(orjson.dumps(self.whole("")))
        body = orjson.dumps(self.whole(_text(ask.answer - around)))
        return head(200, [("content-type", "application/json"), ("content-length", str(len(body)))]) + body

    def stream_head(self) -> bytes:
        return head(200, [("content-type", self.content_type), ("transfer-encoding", "chunked")])

    def stream(self, ask: Ask) -> list[bytes]:
        """Return the parts of a stream's body, framed: one for everything before the text together with the first text
        chunk, one for each other text chunk, and one for the end."""
        framed = [chunk(frame) for frame in self.frames(tokens(ask.flavour, ask.chunks), ask)]
        before = _BEFORE[self.name]
        first = b"".join(framed[: before + 1])
        last = b"".join((*framed[before + ask.chunks :], b"0\r\n\r\n"))
        return [first, *framed[before + 1 : before + ask.chunks], last]


def _text(size: int) -> str:
    """Return words of so many bytes that need no escapes in JSON."""
    return ("the river runs south to the sea " * (size // 32 + 1))[: max(size, 1)]


def _data(payload: JsonObject) -> bytes:
    return b"data: " + orjson.dumps(payload) + b"\n\n"


_OPENAI: JsonObject = {
    "id": "chatcmpl-CfQ1mN0pXbWz4VkJ7yTtR2sLhGdEa",
    "object": "chat.completion.chunk",
    "created": 1_795_000_000,
    "model": "gpt-4o-mini-2024-07-18",
    "service_tier": "default",
    "system_fingerprint": "fp_560af6e559",
}
_OPENAI_USAGE: JsonObject = {"prompt_tokens": 412, "completion_tokens": 65, "total_tokens": 477}


def _openai_whole(text: str) -> JsonObject:
    message: JsonObject = {"role": "assistant", "content": text, "refusal": None, "annotations": []}
    choice: JsonObject = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
    return {**_OPENAI, "object": "chat.completion", "choices": [choice], "usage": _OPENAI_USAGE}


def _openai_frames(texts: Sequence[str], ask: Ask) -> list[bytes]:
    said: list[JsonObject] = [{"content": text} for text in texts]
    deltas: list[JsonObject] = [{"role": "assistant", "content": "", "refusal": None}, *said]
    frames = []
    for place, delta in enumerate([*deltas, {}]):
        finish = "stop" if place == len(deltas) else None
        choice: JsonObject = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        filler: JsonObject = {"obfuscation": FILLER[: place * 7 % 31]} if ask.flavour == "obfuscated" else {}
        frames.append(_data({**_OPENAI, "choices": [choice], "usage": None, **filler}))
    return [*frames, _data({**_OPENAI, "choices": [], "usage": _OPENAI_USAGE}), b"data: [DONE]\n\n"]


_CLAUDE_USAGE: JsonObject = {"input_tokens": 412, "output_tokens": 65}
_CLAUDE_START: JsonObject = {
    "id": "msg_01QC4g3HwBThD4BaNtBckFDJ",
    "type": "message",
    "role": "assistant",
    "model": "claude-haiku-4-5-20251001",
}


def _claude_whole(text: str) -> JsonObject:
    ending: JsonObject = {"stop_reason": "end_turn", "stop_sequence": None, "usage": _CLAUDE_USAGE}
    return {**_CLAUDE_START, "content": [{"type": "text", "text": text}], **ending}


def _claude_event(kind: str, rest: JsonObject) -> bytes:
    return b"event: " + kind.encode() + b"\n" + _data({"type": kind, **rest})


def _claude_delta(flavour: str, text: str) -> JsonObject:
    if flavour == "thinking":
        return {"type": "thinking_delta", "thinking": text}
    if flavour == "arguments":
        return {"type": "input_json_delta", "partial_json": text}
    return {"type": "text_delta", "text": text}


_CLAUDE_CALL: JsonObject = {"type": "tool_use", "id": "toolu_01A09q90qw90lq917835lq9", "name": "tool_1", "input": {}}
_CLAUDE_BLOCKS: Mapping[str, JsonObject] = {
    "thinking": {"type": "thinking", "thinking": "", "signature": ""},
    "arguments": _CLAUDE_CALL,
}
_CLAUDE_TEXT: JsonObject = {"type": "text", "text": ""}


def _claude_after_thinking() -> list[bytes]:
    """Return the signature of a thinking block, and the start of the text block that follows it."""
    signature: JsonObject = {"type": "signature_delta", "signature": "EqQBCgIYAhIM1gbcDa9GJwZA2b3h" * 8}
    return [
        _claude_event("content_block_delta", {"index": 0, "delta": signature}),
        _claude_event("content_block_stop", {"index": 0}),
        _claude_event("content_block_start", {"index": 1, "content_block": _CLAUDE_TEXT}),
        _claude_event("content_block_delta", {"index": 1, "delta": _claude_delta("english", "Done.")}),
        _claude_event("content_block_stop", {"index": 1}),
    ]


def _claude_frames(texts: Sequence[str], ask: Ask) -> list[bytes]:
    start: JsonObject = {**_CLAUDE_START, "content": [], "stop_reason": None, "stop_sequence": None}
    block = _CLAUDE_BLOCKS.get(ask.flavour, _CLAUDE_TEXT)
    deltas = [
        _claude_event("content_block_delta", {"index": 0, "delta": _claude_delta(ask.flavour, text)}) for text in texts
    ]
    stopped = [_claude_event("content_block_stop", {"index": 0})]
    reason = "tool_use" if ask.flavour == "arguments" else "end_turn"
    return [
        _claude_event("message_start", {"message": {**start, "usage": _CLAUDE_USAGE}}),
        _claude_event("content_block_start", {"index": 0, "content_block": block}),
        _claude_event("ping", {}),
        *deltas,
        *(_claude_after_thinking() if ask.flavour == "thinking" else stopped),
        _claude_event(
            "message_delta", {"delta": {"stop_reason": reason, "stop_sequence": None}, "usage": _CLAUDE_USAGE}
        ),
        _claude_event("message_stop", {}),
    ]


_AMAZON_USAGE: JsonObject = {"inputTokens": 412, "outputTokens": 65, "totalTokens": 477}


def _amazon_whole(text: str) -> JsonObject:
    message: JsonObject = {"role": "assistant", "content": [{"text": text}]}
    ending: JsonObject = {"stopReason": "end_turn", "usage": _AMAZON_USAGE, "metrics": {"latencyMs": 913}}
    return {"output": {"message": message}, **ending}


def _amazon_event(kind: str, payload: JsonObject) -> bytes:
    headers = {":event-type": kind, ":content-type": "application/json", ":message-type": "event"}
    return encode(headers, orjson.dumps(payload))


def _amazon_frames(texts: Sequence[str], ask: Ask) -> list[bytes]:
    deltas = [
        _amazon_event(
            "contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": text}, "p": FILLER[: place * 7 % 31]}
        )
        for place, text in enumerate(texts)
    ]
    return [
        _amazon_event("messageStart", {"role": "assistant", "p": "abcd"}),
        *deltas,
        _amazon_event("contentBlockStop", {"contentBlockIndex": 0, "p": "ab"}),
        _amazon_event("messageStop", {"stopReason": "end_turn", "p": "abcdefghijklm"}),
        _amazon_event("metadata", {"metrics": {"latencyMs": 913}, "p": "abc", "usage": _AMAZON_USAGE}),
    ]


_BEFORE: Mapping[str, int] = {"openai": 1, "anthropic": 3, "bedrock": 1}
"""The number of frames before the text in each dialect's stream."""


def messages_request(ask: Ask, model: str = "claude-haiku-4-5") -> bytes:
    """Return the HTTP request of Anthropic's messages."""

    def write(texts: list[str]) -> JsonObject:
        said: list[JsonValue] = [{"role": role, "content": text} for role, text in roles(texts)]
        return {"model": model, "messages": said, "max_tokens": 4096, "stream": bool(ask.chunks)}

    return request_bytes("/v1/messages", filled(ask, write))


def _amazon_request(ask: Ask) -> bytes:
    def write(texts: list[str]) -> JsonObject:
        said: list[JsonValue] = [{"role": role, "content": [{"text": text}]} for role, text in roles(texts)]
        return {"messages": said, "inferenceConfig": {"maxTokens": 4096, "temperature": 0.5}}

    verb = "converse-stream" if ask.chunks else "converse"
    return request_bytes(f"/model/{CLAUDE.replace(':', '%3A')}/{verb}", filled(ask, write))


_GEMINI_USAGE: JsonObject = {"promptTokenCount": 412, "candidatesTokenCount": 65, "totalTokenCount": 477}


def _gemini_whole(text: str) -> JsonObject:
    content: JsonObject = {"role": "model", "parts": [{"text": text}]}
    candidate: JsonObject = {"content": content, "finishReason": "STOP", "index": 0}
    about: JsonObject = {"modelVersion": "gemini-2.5-pro", "responseId": "mRsWaYjUMIuY1PIP5bKv4Ac"}
    return {"candidates": [candidate], "usageMetadata": _GEMINI_USAGE, **about}


_RESPONSES_USAGE: JsonObject = {
    "input_tokens": 412,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 65,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 477,
}


def _responses_whole(text: str) -> JsonObject:
    part: JsonObject = {"type": "output_text", "text": text, "annotations": []}
    about: JsonObject = {"type": "message", "id": "msg_68a1b2c3", "status": "completed", "role": "assistant"}
    first: JsonObject = {
        "id": "resp_68a1b2c3",
        "object": "response",
        "created_at": 1_795_000_000,
        "status": "completed",
    }
    return {**first, "model": "gpt-4o", "output": [{**about, "content": [part]}], "usage": _RESPONSES_USAGE}


def _no_request(ask: Ask) -> bytes:
    raise ValueError("a request that no case makes")


def _no_stream(texts: Sequence[str], ask: Ask) -> list[bytes]:
    raise ValueError("a stream that no case asks for")


OPENAI = Wire(
    "openai",
    b"/chat/completions ",
    "text/event-stream",
    b"data: {",
    b"data: [DONE]",
    chat_request,
    _openai_whole,
    _openai_frames,
)
ANTHROPIC = Wire(
    "anthropic",
    b"/v1/messages ",
    "text/event-stream",
    b"event: content_block_delta",
    b"event: message_stop",
    messages_request,
    _claude_whole,
    _claude_frames,
)
BEDROCK = Wire(
    "bedrock",
    b"/model/",
    "application/vnd.amazon.eventstream",
    b"contentBlockDelta",
    b'"latencyMs"',
    _amazon_request,
    _amazon_whole,
    _amazon_frames,
)
_JSON_TYPE = "application/json"
GEMINI = Wire("gemini", b":generateContent ", _JSON_TYPE, b"", b"", _no_request, _gemini_whole, _no_stream)
RESPONSES = Wire("responses", b"/responses ", _JSON_TYPE, b"", b"", _no_request, _responses_whole, _no_stream)
WIRES: Mapping[str, Wire] = {wire.name: wire for wire in (OPENAI, ANTHROPIC, BEDROCK)}


EVERY_WIRE: Mapping[str, Wire] = {**WIRES, **{wire.name: wire for wire in (GEMINI, RESPONSES)}}
"""The streamed dialects, and the APIs of which only non-streaming responses are measured."""


def wire_of(request: bytes) -> Wire:
    """Return the dialect of a call, by its request line. Raise ValueError for any other."""
    line = request[: request.find(b"\r\n")]
    for wire in EVERY_WIRE.values():
        if wire.path in line:
            return wire
    raise ValueError(f"no vendor's call: {line[:200]!r}")
