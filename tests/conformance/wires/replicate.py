"""Replicate's predictions, which are waited for: a stream is the whole body. Shapes: replicate 1.0.7 `Prediction`."""

import orjson

from providers.unified import JsonObject, JsonValue
from tests.conformance.engine import WINDOW, Ask, prompt_tokens
from tests.conformance.wires.wire import Answered, Spoken, WireFormat, pieces, whole_number


def _input(body: JsonObject) -> JsonObject:
    given = body["input"]
    return given if isinstance(given, dict) else {}


def _ask(body: JsonObject) -> Ask:
    given = _input(body)
    return Ask((str(given["prompt"]),), limit=whole_number(given, "max_tokens"))


def _whole(body: JsonObject, answered: Answered) -> JsonObject:
    (written,) = answered.choices
    output: list[JsonValue] = [*pieces(written)]
    metrics: JsonObject = {"input_token_count": answered.prompt_tokens, "output_token_count": answered.generated}
    return {"id": "p-1", "status": "succeeded", "output": output, "error": None, "metrics": metrics}


def _body(body: JsonObject, answered: Answered) -> list[bytes]:
    return [orjson.dumps(_whole(body, answered))]


def _too_large(ask: Ask) -> tuple[int, JsonObject]:
    prompt, limit = prompt_tokens(ask), ask.limit or 0
    told = (
        f"This model's maximum context length is {WINDOW} tokens. However, you requested {prompt + limit} tokens "
        f"({prompt} in the messages, {limit} in the completion)."
    )
    return 201, {"id": "p-1", "status": "failed", "output": None, "error": told}


REPLICATE = Spoken(
    calls=(WireFormat(("/predictions",), _ask, _whole, _body, lambda path, body: True, "application/json"),),
    too_large=_too_large,
)
