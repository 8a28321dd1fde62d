"""A fake vendor of OpenAI's Responses API, stateless and with one response to a call. Shapes: `openai` 3.54.0 types
`Response`, `ResponseStreamEvent`."""

from collections.abc import Iterator

from providers.json_types import JsonObject, JsonValue
from tests.conformance.engine import THOUGHT, EngineChoice, EngineRequest, constrained
from tests.conformance.fake_dialect import EngineAnswer, FakeEndpoint, pieces, text_of, tool_of, whole_number
from tests.support.http_scripts import data_frames


def _read_request(body: JsonObject) -> EngineRequest:
    items = body["input"]
    texts = (
        [text_of(item.get("content", "")) for item in items if isinstance(item, dict)]
        if isinstance(items, list)
        else []
    )
    # Other vendors have the constraint in the same field as in chats.
    form = body if "response_format" in body else body.get("text")
    limit = whole_number(body, "max_output_tokens")
    return EngineRequest(
        (" ".join(texts),),
        limit=limit - THOUGHT if limit is not None and limit > THOUGHT else limit,
        text=constrained(form) if isinstance(form, dict) else None,
        tool=tool_of(body),
    )


def _logprobs(written: EngineChoice) -> list[JsonValue]:
    entries: list[JsonValue] = []
    for token, logprob in written.tokens:
        own: JsonObject = {"token": token, "logprob": logprob or 0.0, "bytes": list(token.encode())}
        entries.append({**own, "top_logprobs": [own, {"token": "?", "logprob": -3.0, "bytes": [63]}]})
    return entries


def _item(body: JsonObject, written: EngineChoice) -> JsonObject:
    if written.tool is not None:
        call: JsonObject = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "status": "completed"}
        return {**call, "name": written.tool, "arguments": "{}"}
    part: JsonObject = {"type": "output_text", "text": written.text, "annotations": []}
    include = body.get("include")
    if isinstance(include, list) and "message.output_text.logprobs" in include:
        part["logprobs"] = _logprobs(written)
    return {"type": "message", "id": "msg_1", "status": "completed", "role": "assistant", "content": [part]}


def _whole(body: JsonObject, answered: EngineAnswer) -> JsonObject:
    (written,) = answered.choices
    cut = written.finish == "length"
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1_795_000_000,
        "status": "incomplete" if cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "model": body.get("model") or body["preset"],
        "output": [_item(body, written)],
        "usage": {
            "input_tokens": answered.prompt_tokens,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": answered.generated,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": answered.prompt_tokens + answered.generated,
        },
    }


def _events(body: JsonObject, answered: EngineAnswer) -> Iterator[JsonObject]:
    (written,) = answered.choices
    response = _whole(body, answered)
    item = _item(body, written)
    yield {"type": "response.created", "response": {**response, "status": "in_progress", "output": []}}
    if written.tool is not None:
        yield {"type": "response.output_item.added", "output_index": 0, "item": {**item, "arguments": ""}}
        yield {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": "{}"}
    else:
        yield {"type": "response.output_item.added", "output_index": 0, "item": {**item, "content": []}}
        logprobs = _logprobs(written) if "logprobs" in str(item) else []
        texts = [written.text] if logprobs else pieces(written)
        for text in texts:
            said: JsonObject = {"delta": text, "logprobs": logprobs}
            yield {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, **said}
    yield {"type": "response.output_item.done", "output_index": 0, "item": item}
    yield {"type": f"response.{response['status']}", "response": response}


def _frames(body: JsonObject, answered: EngineAnswer) -> list[bytes]:
    return [
        b"event: %b\n%b" % (str(event["type"]).encode(), data_frames(event)[0]) for event in _events(body, answered)
    ]


RESPONSES = FakeEndpoint(("/responses", "/v1/responses"), _read_request, _whole, _frames)
