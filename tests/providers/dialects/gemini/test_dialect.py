"""The outgoing call of Gemini's dialect, and the incoming response."""

from dataclasses import replace

import orjson

from providers.json_types import JsonObject, JsonValue
from providers.target import Target
from providers.unified_request import Operation
from tests.providers.dialects.gemini.kit import DIALECT, TARGET, VERTEX, body_of
from tests.providers.dialects.kit import chat_request, refusal_for, text_request
from tests.support.looped import looped

BASE = "https://generativelanguage.googleapis.com/v1beta"


def test_a_prompt_becomes_one_turn_of_the_user() -> None:
    call = DIALECT.encode(text_request("Say hi"), TARGET)
    assert (call.method, call.operation, call.stream) == ("POST", Operation.CHAT, False)
    assert call.url == f"{BASE}/models/gemini-3.1-pro-preview:generateContent"
    assert orjson.loads(call.body) == {"contents": [{"role": "user", "parts": [{"text": "Say hi"}]}]}
    assert call.emulated == ("prompt",)


def test_a_stream_is_another_verb_and_nothing_in_the_body() -> None:
    call = DIALECT.encode(replace(chat_request(), stream=True), TARGET)
    assert call.url == f"{BASE}/models/gemini-3.1-pro-preview:streamGenerateContent?alt=sse"
    assert call.stream
    assert call.body == DIALECT.encode(chat_request(), TARGET).body


@looped(
    ("target", "model", "path"),
    [
        (TARGET, "models/gemini-3.8-flash", f"{BASE}/models/gemini-3.8-flash"),
        (TARGET, "tunedModels/mine-1", f"{BASE}/tunedModels/mine-1"),
        (TARGET, "a b/../c?d", f"{BASE}/models/a%20b%2F..%2Fc%3Fd"),
        (VERTEX, "gemini-3.8-flash", f"{VERTEX.base_url}/publishers/google/models/gemini-3.8-flash"),
        (VERTEX, "gemini-3.8-flash@default", f"{VERTEX.base_url}/publishers/google/models/gemini-3.8-flash@default"),
        (VERTEX, "endpoints/4711", f"{VERTEX.base_url}/endpoints/4711"),
        (VERTEX, "endpoints/a/b", f"{VERTEX.base_url}/publishers/google/models/endpoints%2Fa%2Fb"),
        (
            replace(VERTEX, base_url="https://global-aiplatform.googleapis.com/v1/projects/p/locations/global"),
            "gemini-3.8-flash",
            "https://aiplatform.googleapis.com/v1/projects/p/locations/global/publishers/google/models/gemini-3.8-flash",
        ),
    ],
)
def test_the_model_stands_in_the_path(target: Target, model: str, path: str) -> None:
    call = DIALECT.encode(chat_request(), replace(target, upstream_model=model))
    assert call.url == f"{path}:generateContent"


def test_a_deadline_is_told_where_it_is_one_of_the_whole_answer() -> None:
    request = replace(chat_request(), timeout=2.5)
    assert DIALECT.encode(request, TARGET).headers == {"x-server-timeout": "3"}
    assert DIALECT.encode(replace(request, stream=True), TARGET).headers == {}


def test_the_clients_headers_go_along() -> None:
    request = replace(chat_request(), extra_headers={"x-trace": "1"}, timeout=1)
    assert DIALECT.encode(request, TARGET).headers == {"x-server-timeout": "1", "x-trace": "1"}


def test_extra_params_are_merged_last_and_deep() -> None:
    safety: list[JsonValue] = [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}]
    extra: JsonObject = {"generationConfig": {"maxOutputTokens": 9, "audioTimestamp": True}, "safetySettings": safety}
    body = body_of(replace(chat_request(max_tokens=5, temperature=0.5), extra_params=extra))
    assert body["generationConfig"] == {"maxOutputTokens": 9, "temperature": 0.5, "audioTimestamp": True}
    assert body["safetySettings"] == safety


@looped(
    "extra",
    [
        {"contents": []},
        {"generationConfig": {"candidateCount": 2}},
        {"generationConfig": {"candidate_count": 2}},
        {"generation_config": {"top_k": 1}},
    ],
)
def test_extra_params_may_not_say_what_the_call_says_already(extra: JsonObject) -> None:
    assert refusal_for(replace(chat_request(), extra_params=extra), TARGET).param == "inference_extra_params"
