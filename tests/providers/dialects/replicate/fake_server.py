"""Replicate's predictions with waiting: a stream is the whole body at once. Shapes: replicate 1.0.7 `Prediction`."""

import orjson

from providers.json_types import JsonObject, JsonValue
from tests.conformance.engine import WINDOW, EngineRequest, prompt_tokens
from tests.conformance.fake_dialect import EngineAnswer, FakeDialect, FakeEndpoint, pieces, whole_number


def _input(body: JsonObject) -> JsonObject:
    given = body["input"]
    return given if isinstance(given, dict) else {}


def _read_request(body: JsonObject) -> EngineRequest:
    given = _input(body)
    return EngineRequest((str(given["prompt"]),), limit=whole_number(given, "max_tokens"))


def _whole(body: JsonObject, answered: EngineAnswer) -> JsonObject:
    (written,) = answered.choices
    output: list[JsonValue] = [*pieces(written)]
    metrics: JsonObject = {"input_token_count": answered.prompt_tokens, "output_token_count": answered.generated}
    return {"id": "p-1", "status": "succeeded", "output": output, "error": None, "metrics": metrics}


def _body(body: JsonObject, answered: EngineAnswer) -> list[bytes]:
    return [orjson.dumps(_whole(body, answered))]


def _too_large(request: EngineRequest) -> tuple[int, JsonObject]:
    prompt, limit = prompt_tokens(request), request.limit or 0
    told = (
        f"This model's maximum context length is {WINDOW} tokens. However, you requested {prompt + limit} tokens "
        f"({prompt} in the messages, {limit} in the completion)."
    )
    return 201, {"id": "p-1", "status": "failed", "output": None, "error": told}


REPLICATE = FakeDialect(
    calls=(FakeEndpoint(("/predictions",), _read_request, _whole, _body, lambda path, body: True, "application/json"),),
    too_large=_too_large,
)

FAKE_DIALECTS = {"replicate": REPLICATE}
