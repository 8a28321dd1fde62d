"""A fake of Gemini's API.

Shapes: `google-genai` 3.4.0 `GenerateContentResponse`; errors as the API's reference shows them.
"""

from collections.abc import Iterator

import orjson

from providers.json_types import JsonObject, JsonValue
from tests.conformance.engine import WINDOW, EngineChoice, EngineRequest, constrained, prompt_tokens
from tests.conformance.fake_dialect import (
    EngineAnswer,
    FakeDialect,
    FakeEndpoint,
    pieces,
    strings,
    text_of,
    whole_number,
)


def _member(holder: JsonValue, *path: str | int) -> JsonValue:
    for step in path:
        if isinstance(holder, dict) and isinstance(step, str):
            holder = holder.get(step)
        elif isinstance(holder, list) and isinstance(step, int) and step < len(holder):
            holder = holder[step]
        else:
            return None
    return holder


def _read_request(body: JsonObject) -> EngineRequest:
    config = body.get("generationConfig")
    config = config if isinstance(config, dict) else {}
    contents = body["contents"]
    turns = [_member(turn, "parts") for turn in contents] if isinstance(contents, list) else []
    return EngineRequest(
        (" ".join(map(text_of, turns)),),
        stops=strings(config.get("stopSequences")),
        limit=whole_number(config, "maxOutputTokens"),
        text=_kept(config),
        tool=_tool(body),
    )


def _kept(config: JsonObject) -> str | None:
    """Return a text in the requested form."""
    if config.get("responseMimeType") == "text/x.enum":
        return constrained({"choice": _member(config, "responseSchema", "enum")})
    if "responseJsonSchema" in config:
        return constrained({"schema": config["responseJsonSchema"]})
    return "{}" if config.get("responseMimeType") == "application/json" else None


def _tool(body: JsonObject) -> str | None:
    name = _member(body, "tools", 0, "functionDeclarations", 0, "name")
    mode = _member(body, "toolConfig", "functionCallingConfig", "mode")
    return name if isinstance(name, str) and mode != "NONE" else None


def _finish(written: EngineChoice) -> str:
    return "MAX_TOKENS" if written.finish == "length" else "STOP"


def _candidate(body: JsonObject, written: EngineChoice) -> JsonObject:
    part: JsonObject = {"text": written.text}
    if written.tool is not None:
        part = {"functionCall": {"id": "call-1", "name": written.tool, "args": {}}, "thoughtSignature": "c2ln"}
    candidate: JsonObject = {"content": {"role": "model", "parts": [part]}, "finishReason": _finish(written)}
    if _member(body, "generationConfig", "responseLogprobs") is True:
        candidate["logprobsResult"] = _scores(written)
    return candidate


def _scores(written: EngineChoice) -> JsonObject:
    chosen: list[JsonValue] = [{"token": token, "logProbability": value} for token, value in written.tokens]
    other: JsonObject = {"token": "?", "logProbability": -3.0}
    return {"chosenCandidates": chosen, "topCandidates": [{"candidates": [one, other]} for one in chosen]}


def _counts(answered: EngineAnswer) -> JsonObject:
    prompt, generated = answered.prompt_tokens, answered.generated
    return {"promptTokenCount": prompt, "candidatesTokenCount": generated, "totalTokenCount": prompt + generated}


def _whole(body: JsonObject, answered: EngineAnswer) -> JsonObject:
    (written,) = answered.choices
    return {
        "candidates": [_candidate(body, written)],
        "usageMetadata": _counts(answered),
        "modelVersion": "gemini",
        "responseId": "answer-1",
    }


def _frames(body: JsonObject, answered: EngineAnswer) -> list[bytes]:
    return [b"data: %b\r\n\r\n" % orjson.dumps(chunk) for chunk in _chunks(body, answered)]


def _chunks(body: JsonObject, answered: EngineAnswer) -> Iterator[JsonObject]:
    (written,) = answered.choices
    whole = _whole(body, answered)
    if written.tool is not None or _member(body, "generationConfig", "responseLogprobs") is True:
        yield whole
        return
    for piece in pieces(written):
        yield {"candidates": [{"content": {"role": "model", "parts": [{"text": piece}]}}], "responseId": "answer-1"}
    yield {**whole, "candidates": [{"finishReason": _finish(written)}]}


def _too_large(request: EngineRequest) -> tuple[int, JsonObject]:
    """Return the error of a limit that is too high. The real service has a limit for the response; this one allows the
    rest of the window after the prompt."""
    most = WINDOW - prompt_tokens(request)
    message = (
        f"Unable to submit request because it has a maxOutputTokens value of {request.limit} but the supported range "
        f"is from 1 (inclusive) to {most + 1} (exclusive). Update the value and try again."
    )
    return 400, {"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}


def _streams(path: str, body: JsonObject) -> bool:
    return path.endswith(":streamGenerateContent")


GEMINI = FakeDialect(
    calls=(FakeEndpoint((":generateContent", ":streamGenerateContent"), _read_request, _whole, _frames, _streams),),
    too_large=_too_large,
)

FAKE_DIALECTS = {"gemini": GEMINI}
