"""A fake of Ollama's own API for prompts and chats. Shapes: Ollama `api/types.go`, August 2026."""

from functools import partial

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

MEDIA = "application/x-ndjson"
CREATED = "2026-11-20T10:00:00.1Z"


def _read_request(body: JsonObject) -> EngineRequest:
    options = body.get("options")
    options = options if isinstance(options, dict) else {}
    form = body.get("format")
    return EngineRequest(
        (str(body["prompt"]) if "prompt" in body else conversation(body),),
        stops=strings(options.get("stop")),
        limit=whole_number(options, "num_predict"),
        text="{}" if form == "json" else constrained({"format": form} if form else {}),
        tool=tool_of(body),
    )


def _line(body: JsonObject, said: JsonObject, *, chat: bool) -> JsonObject:
    """Return a line with these fields; a chat has them in a message."""
    head: JsonObject = {"model": body["model"], "created_at": CREATED, "done": False}
    if not chat:
        return {**head, "response": said.pop("content", ""), **said}
    logprobs = said.pop("logprobs", None)
    message: JsonObject = {"role": "assistant", "content": "", **said}
    return {**head, "message": message, **({"logprobs": logprobs} if logprobs else {})}


def _ended(answered: EngineAnswer) -> JsonObject:
    (written,) = answered.choices
    reason = "length" if written.finish == "length" else "stop"
    counts: JsonObject = {"prompt_eval_count": answered.prompt_tokens, "eval_count": answered.generated}
    return {"done": True, "done_reason": reason, **counts}


def _scored(body: JsonObject, written: EngineChoice) -> list[JsonValue]:
    if body.get("logprobs") is not True:
        return []
    entries: list[JsonValue] = []
    for token, logprob in written.tokens:
        own: JsonObject = {"token": token, "logprob": logprob, "bytes": list(token.encode())}
        entries.append({**own, "top_logprobs": [own]})
    return entries


def _called(written: EngineChoice) -> JsonObject:
    return {"tool_calls": [{"function": {"index": 0, "name": written.tool, "arguments": {}}}]}


def _whole(body: JsonObject, answered: EngineAnswer, *, chat: bool) -> JsonObject:
    (written,) = answered.choices
    said: JsonObject = _called(written) if written.tool is not None else {"content": written.text}
    if scored := _scored(body, written):
        said["logprobs"] = scored
    return {**_line(body, said, chat=chat), **_ended(answered)}


def _frames(body: JsonObject, answered: EngineAnswer, *, chat: bool) -> list[bytes]:
    (written,) = answered.choices
    said: list[JsonObject] = [{"content": piece} for piece in pieces(written)]
    if written.tool is not None:
        said = [_called(written)]
    elif scored := _scored(body, written):
        said = [{"content": token, "logprobs": [scored[place]]} for place, (token, _) in enumerate(written.tokens)]
    lines = [_line(body, each, chat=chat) for each in said]
    lines.append({**_line(body, {"content": ""}, chat=chat), **_ended(answered)})
    return [orjson.dumps(line) + b"\n" for line in lines]


def _too_large(request: EngineRequest) -> tuple[int, JsonObject]:
    """Return the error of a prompt that is too long. Only a prompt can be: the response ends at the window's end."""
    return 400, {"error": f"request ({prompt_tokens(request)} tokens) exceeds the available context size"}


OLLAMA = FakeDialect(
    calls=(
        FakeEndpoint(
            ("/api/generate",), _read_request, partial(_whole, chat=False), partial(_frames, chat=False), media=MEDIA
        ),
        FakeEndpoint(
            ("/api/chat",), _read_request, partial(_whole, chat=True), partial(_frames, chat=True), media=MEDIA
        ),
    ),
    too_large=_too_large,
)

FAKE_DIALECTS = {"ollama": OLLAMA}
