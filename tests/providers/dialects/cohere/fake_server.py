"""A fake of Cohere's v2 chat API. Shapes: `cohere` 7.3.1 `V2ChatResponse`, `V2ChatStreamResponse`."""

from collections.abc import Iterator

import orjson

from providers.json_types import JsonObject, JsonValue
from tests.conformance.engine import WINDOW, EngineChoice, EngineRequest, constrained, prompt_tokens
from tests.conformance.fake_dialect import (
    EngineAnswer,
    FakeDialect,
    FakeEndpoint,
    conversation,
    pieces,
    strings,
    tool_of,
    whole_number,
)


def _read_request(body: JsonObject) -> EngineRequest:
    form = body.get("response_format")
    schema = form.get("json_schema") if isinstance(form, dict) else None
    return EngineRequest(
        (conversation(body),),
        stops=strings(body.get("stop_sequences")),
        limit=whole_number(body, "max_tokens"),
        text=constrained(body if schema is None else {"schema": schema}),
        tool=None if body.get("tool_choice") == "NONE" else tool_of(body),
    )


_REASONS = {"stop": "COMPLETE", "length": "MAX_TOKENS", "tool_calls": "TOOL_CALL"}


def _ending(answered: EngineAnswer) -> JsonObject:
    (written,) = answered.choices
    counts: JsonObject = {"input_tokens": float(answered.prompt_tokens), "output_tokens": float(answered.generated)}
    reason = "STOP_SEQUENCE" if written.stop else _REASONS[written.finish]
    return {"finish_reason": reason, "usage": {"billed_units": counts, "tokens": counts}}


def _call(written: EngineChoice) -> JsonObject:
    return {"id": "call_1", "type": "function", "function": {"name": written.tool, "arguments": "{}"}}


def _scored(body: JsonObject, written: EngineChoice) -> list[JsonObject]:
    if body.get("logprobs") is not True:
        return []
    return [{"text": token, "token_ids": [1], "logprobs": [logprob]} for token, logprob in written.tokens]


def _whole(body: JsonObject, answered: EngineAnswer) -> JsonObject:
    (written,) = answered.choices
    message: JsonObject = {"role": "assistant", "content": [{"type": "text", "text": written.text}]}
    if written.tool is not None:
        message = {"role": "assistant", "tool_calls": [_call(written)]}
    scored: list[JsonValue] = [*_scored(body, written)]
    return {"id": "answer-1", "message": message, **_ending(answered), **({"logprobs": scored} if scored else {})}


def _frames(body: JsonObject, answered: EngineAnswer) -> list[bytes]:
    return [
        b"event: %b\ndata: %b\n\n" % (str(event["type"]).encode(), orjson.dumps(event))
        for event in _events(body, answered)
    ]


def _events(body: JsonObject, answered: EngineAnswer) -> Iterator[JsonObject]:
    (written,) = answered.choices
    yield {"type": "message-start", "id": "answer-1", "delta": {"message": {"role": "assistant"}}}
    if written.tool is not None:
        yield {"type": "tool-call-start", "index": 0, "delta": {"message": {"tool_calls": _call(written)}}}
        yield {"type": "tool-call-end", "index": 0}
    else:
        start: JsonObject = {"message": {"content": {"type": "text", "text": ""}}}
        yield {"type": "content-start", "index": 0, "delta": start}
        scored = _scored(body, written)
        texts = [str(entry["text"]) for entry in scored] or pieces(written)
        for place, text in enumerate(texts):
            more: JsonObject = {"logprobs": scored[place]} if scored else {}
            yield {"type": "content-delta", "index": 0, "delta": {"message": {"content": {"text": text}}}, **more}
        yield {"type": "content-end", "index": 0}
    yield {"type": "message-end", "delta": _ending(answered)}


def _too_large(request: EngineRequest) -> tuple[int, JsonObject]:
    total = prompt_tokens(request) + (request.limit or 0)
    message = (
        f"too many tokens: total number of tokens (prompt and prediction) cannot exceed {WINDOW} - received {total}. "
        "Try using a shorter prompt, a smaller max_tokens value, or both."
    )
    return 400, {"message": message}


COHERE = FakeDialect(calls=(FakeEndpoint(("/v2/chat",), _read_request, _whole, _frames),), too_large=_too_large)

FAKE_DIALECTS = {"cohere": COHERE}
