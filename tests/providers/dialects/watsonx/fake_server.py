"""watsonx.ai: raw prompts in its own shape, chats in OpenAI's.

Shapes: IBM Cloud API reference "watsonx.ai", `TextGenResponse`, `TextChatResponse`, `ApiErrors`.
"""

from dataclasses import replace

import orjson

from providers.json_types import JsonObject, JsonValue
from tests.conformance.engine import WINDOW, EngineChoice, EngineRequest, prompt_tokens
from tests.conformance.fake_dialect import EngineAnswer, FakeDialect, FakeEndpoint, pieces, strings, whole_number
from tests.providers.dialects.openai.fake_server import OPENAI


def _streams(path: str, body: JsonObject) -> bool:
    return path.endswith("_stream")


def _settings(body: JsonObject) -> JsonObject:
    settings = body.get("parameters")
    return settings if isinstance(settings, dict) else {}


def _read_request(body: JsonObject) -> EngineRequest:
    settings = _settings(body)
    return EngineRequest(
        strings(body["input"]),
        stops=strings(settings.get("stop_sequences")),
        keep_stop=settings.get("include_stop_sequence", True) is True,
        limit=whole_number(settings, "max_new_tokens"),
    )


def _tokens(body: JsonObject, written: EngineChoice) -> list[JsonValue]:
    if "return_options" not in _settings(body):
        return []
    return [{"text": token, "logprob": logprob} for token, logprob in written.tokens]


def _reason(written: EngineChoice) -> str:
    return "stop_sequence" if written.stop else "max_tokens" if written.finish == "length" else "eos_token"


def _response(result: JsonObject) -> JsonObject:
    return {"model_id": "m", "created_at": "2026-11-21T10:00:00.000Z", "results": [result]}


def _whole(body: JsonObject, answered: EngineAnswer) -> JsonObject:
    (written,) = answered.choices
    tokens = _tokens(body, written)
    return _response(
        {
            "generated_text": written.text,
            "generated_token_count": answered.generated,
            "input_token_count": answered.prompt_tokens,
            "stop_reason": _reason(written),
            **({"generated_tokens": tokens} if tokens else {}),
        }
    )


def _frames(body: JsonObject, answered: EngineAnswer) -> list[bytes]:
    """Return events: the first has the prompt's count, each has the response's count so far."""
    (written,) = answered.choices
    results: list[JsonObject] = [
        {"generated_text": token["text"], "generated_tokens": [token]}
        for token in _tokens(body, written)
        if isinstance(token, dict)
    ]
    results = [{"generated_text": ""}, *(results or [{"generated_text": piece} for piece in pieces(written)])]
    last = len(results) - 1
    for place, result in enumerate(results):
        result["input_token_count"] = 0 if place else answered.prompt_tokens
        result["generated_token_count"] = answered.generated if place == last else min(place, answered.generated)
        result["stop_reason"] = _reason(written) if place == last else "not_finished"
    return [
        b"id: %d\nevent: message\ndata: %b\n\n" % (place + 1, orjson.dumps(_response(result)))
        for place, result in enumerate(results)
    ]


_OPENAI_CHAT = OPENAI.calls[0]


def _chat_ask(body: JsonObject) -> EngineRequest:
    return _OPENAI_CHAT.read_request({**body, "tool_choice": body.get("tool_choice", body.get("tool_choice_option"))})


def _chat_frames(body: JsonObject, answered: EngineAnswer) -> list[bytes]:
    """Return OpenAI's frames with usage, which the client need not request, and without a terminator."""
    frames = _OPENAI_CHAT.frames(body, replace(answered, counts_unasked=True))[:-1]
    return [b"id: %d\nevent: message\n%b" % (place + 1, frame) for place, frame in enumerate(frames)]


def _too_large(request: EngineRequest) -> tuple[int, JsonObject]:
    prompt, limit = prompt_tokens(request), request.limit or 0
    told = (
        f"This model's maximum context length is {WINDOW} tokens. However, you requested {prompt + limit} tokens "
        + (f"({prompt} in the messages, {limit} in the completion). Please reduce their length.")
    )
    error: JsonObject = {
        "code": "invalid_input_argument",
        "message": told,
        "more_info": "https://cloud.ibm.com/apidocs",
    }
    return 400, {"errors": [error], "trace": "t-1", "status_code": 400}


WATSONX = FakeDialect(
    calls=(
        FakeEndpoint(("/text/generation", "/text/generation_stream"), _read_request, _whole, _frames, _streams),
        FakeEndpoint(("/text/chat", "/text/chat_stream"), _chat_ask, _OPENAI_CHAT.whole, _chat_frames, _streams),
    ),
    too_large=_too_large,
)

FAKE_DIALECTS = {"watsonx": WATSONX}
