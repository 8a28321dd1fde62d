"""Responses of vendors with a mark in every string, non-streaming and streamed."""

from collections.abc import Iterator
from dataclasses import dataclass

import orjson

from providers.json_types import JsonObject, JsonValue
from tests.providers.dialects.responses.kit import events_of, sse
from tests.security.marked_requests import Marks
from tests.support.http_scripts import json_answer, sse_answer
from tests.support.vendor_script import Script


@dataclass(frozen=True, slots=True)
class MarkedAnswer:
    """A response, and a client's request for it."""

    path: str
    model: str
    script: Script
    body: JsonObject

    @property
    def request(self) -> JsonObject:
        return {"model": self.model, **self.body}


def answers(marks: Marks) -> Iterator[MarkedAnswer]:
    """Yield a response of each API that is returned in its vendor's format, and of OpenAI's API, non-streaming and
    streamed."""
    chat: JsonObject = {"messages": [{"role": "user", "content": "hi"}]}
    bodies: dict[str, JsonObject] = {
        "/v1/chat/completions": chat,
        "/v1/messages": {**chat, "max_tokens": 50},
        "/v1/responses": {"input": "hi", "store": False},
    }
    for path, body in bodies.items():
        for model in ("engine/m", "gpt/m"):
            if path != "/v1/responses" or model == "engine/m":
                yield MarkedAnswer(path, model, json_answer(200, _chat(marks)), body)
            yield MarkedAnswer(path, "engine/m", sse_answer(_streamed(marks)), {**body, "stream": True})
    yield MarkedAnswer("/v1/messages", "claude/m", json_answer(200, _message(marks)), {**chat, "max_tokens": 50})
    yield MarkedAnswer("/v1/chat/completions", "claude/m", json_answer(200, _message(marks)), chat)
    for path, body in bodies.items():
        model = "gpt/m" if path == "/v1/responses" else "gpt/gpt-5.1-codex"  # which is called by that API alone
        yield MarkedAnswer(path, model, json_answer(200, _response(marks)), body)
        events = [sse(event) for event in events_of(_response(marks))]
        yield MarkedAnswer(path, model, sse_answer(events), {**body, "stream": True})


def _call(marks: Marks) -> JsonObject:
    function: JsonObject = {"name": marks.mark(), "arguments": orjson.dumps({"a": marks.mark()}).decode()}
    return {"index": 0, "id": marks.mark(), "type": "function", "function": function, "more": marks.object()}


def _said(marks: Marks) -> JsonObject:
    detail: JsonObject = {"type": "reasoning.text", "index": 0, "text": marks.mark(), "signature": marks.mark()}
    return {
        **marks.object(),
        "role": "assistant",
        "content": marks.mark(),
        "reasoning_content": marks.mark(),
        "reasoning_details": [detail, marks.object()],
        "annotations": [marks.object()],
        "tool_calls": [_call(marks)],
    }


def _beside(marks: Marks) -> JsonObject:
    return {"system_fingerprint": marks.mark(), "service_tier": marks.mark(), "more": marks.object()}


def _usage(marks: Marks, *counts: str) -> JsonObject:
    return {**dict.fromkeys(counts, 1), "more": marks.object()}


def _chat(marks: Marks) -> JsonObject:
    choice: JsonObject = {"index": 0, "finish_reason": marks.mark(), "message": _said(marks), "more": marks.object()}
    usage = _usage(marks, "prompt_tokens", "completion_tokens", "total_tokens")
    return {"id": "c", "object": "chat.completion", "created": 1, "choices": [choice], "usage": usage, **_beside(marks)}


def _streamed(marks: Marks) -> list[bytes]:
    """Cut each string that clients join, with other content between the parts."""
    head: JsonObject = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    whole = _said(marks)
    call = whole.pop("tool_calls")
    mark, thought = str(whole.pop("content")), str(whole.pop("reasoning_content"))
    deltas: list[JsonObject] = [{"role": "assistant", "content": ""}, whole, {"tool_calls": call}]
    for at in range(0, len(mark), 4):
        deltas += [{"content": mark[at : at + 4]}, {"reasoning_content": thought[at : at + 4]}]
    frames: list[JsonObject] = [
        {**head, **_beside(marks), "choices": [{"index": 0, "delta": each, "more": marks.object()}]} for each in deltas
    ]
    end: JsonObject = {"index": 0, "delta": {}, "finish_reason": marks.mark()}
    frames.append({**head, **_beside(marks), "choices": [end]})
    frames.append({**head, "choices": [], "usage": _usage(marks, "prompt_tokens", "completion_tokens")})
    return [b"data: %b\n\n" % orjson.dumps(each) for each in frames] + [b"data: [DONE]\n\n"]


def _message(marks: Marks) -> JsonObject:
    blocks: list[JsonValue] = [
        {"type": "thinking", "thinking": marks.mark(), "signature": marks.mark()},
        {"type": "text", "text": marks.mark(), "citations": [marks.object()]},
        {"type": "tool_use", "id": "toolu_1", "name": marks.mark(), "input": marks.object()},
    ]
    end: JsonObject = {"stop_reason": "stop_sequence", "stop_sequence": marks.mark()}
    usage = {**_usage(marks, "input_tokens", "output_tokens"), "service_tier": marks.mark()}
    more: JsonObject = {"usage": usage, "more": marks.object(), "container": {"id": marks.mark()}}
    return {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": blocks, **end, **more}


def _response(marks: Marks) -> JsonObject:
    part: JsonObject = {"type": "output_text", "text": marks.mark(), "annotations": [marks.object()]}
    arguments = orjson.dumps({"a": marks.mark()}).decode()
    items: list[JsonValue] = [
        {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": marks.mark()}]},
        {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [part]},
        {"type": "function_call", "id": "f", "call_id": "c", "name": marks.mark(), "arguments": arguments},
        {"type": "new_item", "more": marks.object()},
    ]
    usage = _usage(marks, "input_tokens", "output_tokens", "total_tokens")
    own: JsonObject = {"metadata": marks.object(), "service_tier": marks.mark(), "usage": usage}
    head: JsonObject = {"id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": "m"}
    return {**head, "output": items, **own, "more": marks.object()}
