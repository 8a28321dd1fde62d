"""Bedrock's Converse, and the parts that all APIs of the service share. Shapes: botocore 1.44.5 service model
`bedrock-runtime`."""

import orjson

from providers.framing.parse_aws_eventstream import encode
from providers.json_types import JsonObject, JsonValue
from tests.conformance.engine import WINDOW, EngineChoice, EngineRequest, constrained, prompt_tokens
from tests.conformance.fake_dialect import (
    EngineAnswer,
    FakeDialect,
    FakeEndpoint,
    conversation,
    pieces,
    strings,
    whole_number,
)

MEDIA = "application/vnd.amazon.eventstream"


def streams(path: str, body: JsonObject) -> bool:
    """Return whether a path requests a stream."""
    return path.endswith("stream")


def frame(kind: str, payload: JsonObject) -> bytes:
    """One event of a stream."""
    headers = {":event-type": kind, ":content-type": "application/json", ":message-type": "event"}
    return encode(headers, orjson.dumps({**payload, "p": "abcdefgh"}))


def too_large(request: EngineRequest) -> tuple[int, JsonObject]:
    """Return the error of a call that exceeds the model's window."""
    prompt, limit = prompt_tokens(request), request.limit or 0
    told = f"input length and `max_tokens` exceed context limit: {prompt} + {limit} > {WINDOW}, decrease input length"
    return 400, {"message": f"The model returned the following errors: {told} or `max_tokens` and try again"}


# Converse -----------------------------------------------------------------------------------------------------------


def _object(holder: JsonValue, *path: str) -> JsonObject:
    for step in path:
        holder = holder.get(step) if isinstance(holder, dict) else None
    return holder if isinstance(holder, dict) else {}


def _tool(body: JsonObject) -> str | None:
    tools = _object(body, "toolConfig").get("tools")
    called = _object(tools[0], "toolSpec").get("name") if isinstance(tools, list) else None
    return None if called is None else str(called)


def _converse_ask(body: JsonObject) -> EngineRequest:
    settings = _object(body, "inferenceConfig")
    return EngineRequest(
        (conversation(body),),
        stops=strings(settings.get("stopSequences")),
        limit=whole_number(settings, "maxTokens"),
        text=constrained(_object(body, "outputConfig", "textFormat", "structure", "jsonSchema"))
        or constrained({"told": [body.get("system"), body.get("messages")]}),
        tool=_tool(body),
    )


_REASONS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}


def _ending(body: JsonObject, written: EngineChoice) -> JsonObject:
    if not written.stop:
        return {"stopReason": _REASONS[written.finish]}
    told = "/stop_sequence" in strings(body.get("additionalModelResponseFieldPaths"))
    extra: JsonObject = {"additionalModelResponseFields": {"stop_sequence": written.stop}}
    return {"stopReason": "stop_sequence", **(extra if told else {})}


def _counts(answered: EngineAnswer) -> JsonObject:
    prompt, generated = answered.prompt_tokens, answered.generated
    usage: JsonObject = {"inputTokens": prompt, "outputTokens": generated, "totalTokens": prompt + generated}
    return {"usage": usage, "metrics": {"latencyMs": 7}}


def _converse_whole(body: JsonObject, answered: EngineAnswer) -> JsonObject:
    (written,) = answered.choices
    block: JsonObject = {"text": written.text}
    if written.tool is not None:
        block = {"toolUse": {"toolUseId": "call_1", "name": written.tool, "input": {}}}
    message: JsonObject = {"role": "assistant", "content": [block]}
    return {"output": {"message": message}, **_ending(body, written), **_counts(answered)}


def _converse_frames(body: JsonObject, answered: EngineAnswer) -> list[bytes]:
    (written,) = answered.choices
    frames = [frame("messageStart", {"role": "assistant"})]
    if written.tool is not None:
        start: JsonObject = {"toolUse": {"toolUseId": "call_1", "name": written.tool}}
        frames.append(frame("contentBlockStart", {"contentBlockIndex": 0, "start": start}))
    for piece in pieces(written):
        frames.append(frame("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": piece}}))
    frames.append(frame("contentBlockStop", {"contentBlockIndex": 0}))
    return [*frames, frame("messageStop", _ending(body, written)), frame("metadata", _counts(answered))]


def _counted(body: JsonObject) -> JsonValue:
    return {"inputTokens": len(conversation(_object(body, "input", "converse")).split())}


BEDROCK = FakeDialect(
    calls=(
        FakeEndpoint(
            ("/converse", "/converse-stream"), _converse_ask, _converse_whole, _converse_frames, streams, MEDIA
        ),
    ),
    too_large=too_large,
    questions={"/count-tokens": _counted},
)

FAKE_DIALECTS = {"bedrock": BEDROCK}
