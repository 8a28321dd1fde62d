"""A fake of Anthropic's Messages API.

Shapes: `anthropic` 2.12.0 `Message`, `RawMessageStreamEvent`, `MessageTokensCount`.
"""

from collections.abc import Iterator

import orjson

from providers.json_types import JsonObject, JsonValue
from tests.conformance.engine import EngineChoice, EngineRequest, constrained, prompt_tokens
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
    return EngineRequest(
        (conversation(body),),
        stops=strings(body.get("stop_sequences")),
        limit=whole_number(body, "max_tokens"),
        text=constrained(body) or _write_object(body),
        tool=tool_of(body),
    )


def _write_object(body: JsonObject) -> str | None:
    """Return the text of a model that the prompt tells to write an object. The vendor has no JSON mode without a
    schema."""
    return "{}" if "one JSON object" in f"{body.get('system')} {conversation(body)}" else None


_REASONS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}


def _ending(answered: EngineAnswer) -> JsonObject:
    (written,) = answered.choices
    return {"stop_reason": "stop_sequence" if written.stop else _REASONS[written.finish], "stop_sequence": written.stop}


def _message(body: JsonObject, answered: EngineAnswer) -> JsonObject:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": answered.prompt_tokens, "output_tokens": answered.generated},
    }


def _block(written: EngineChoice) -> JsonObject:
    if written.tool is not None:
        return {"type": "tool_use", "id": "call_1", "name": written.tool, "input": {}}
    return {"type": "text", "text": written.text}


def _whole(body: JsonObject, answered: EngineAnswer) -> JsonObject:
    return {**_message(body, answered), "content": [_block(answered.choices[0])], **_ending(answered)}


def _frames(body: JsonObject, answered: EngineAnswer) -> list[bytes]:
    return [
        b"event: %b\ndata: %b\n\n" % (str(event["type"]).encode(), orjson.dumps(event))
        for event in _events(body, answered)
    ]


def _events(body: JsonObject, answered: EngineAnswer) -> Iterator[JsonObject]:
    (written,) = answered.choices
    yield {"type": "message_start", "message": _message(body, answered)}
    block = _block(written)
    yield {"type": "content_block_start", "index": 0, "content_block": {**block, "text": ""} if written.text else block}
    for piece in pieces(written):
        yield {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}}
    yield {"type": "content_block_stop", "index": 0}
    usage: JsonObject = {"output_tokens": answered.generated}
    yield {"type": "message_delta", "delta": _ending(answered), "usage": usage}
    yield {"type": "message_stop"}


def _too_large(request: EngineRequest) -> tuple[int, JsonObject]:
    """Return the error of a prompt that is too long. Only a prompt can be: the response ends at the window's end."""
    message = f"prompt is too long: {prompt_tokens(request)} tokens"
    return 400, {"type": "error", "error": {"type": "invalid_request_error", "message": message}}


def _counted(body: JsonObject) -> JsonValue:
    return {"input_tokens": len(conversation(body).split())}


ANTHROPIC = FakeDialect(
    calls=(FakeEndpoint(("/messages",), _read_request, _whole, _frames),),
    too_large=_too_large,
    questions={"/messages/count_tokens": _counted},
)

FAKE_DIALECTS = {"anthropic": ANTHROPIC}
