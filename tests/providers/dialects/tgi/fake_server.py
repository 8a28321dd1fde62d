"""TGI's own wire. Shapes: huggingface/text-generation-inference `docs/openapi.json`, January 2026."""

from providers.json_types import JsonObject, JsonValue
from tests.conformance.engine import WINDOW, EngineChoice, EngineRequest, constrained, prompt_tokens
from tests.conformance.fake_dialect import EngineAnswer, FakeDialect, FakeEndpoint, pieces, strings, whole_number
from tests.support.http_scripts import data_frames


def _parameters(body: JsonObject) -> JsonObject:
    parameters = body["parameters"]
    return parameters if isinstance(parameters, dict) else {}


def _read_request(body: JsonObject) -> EngineRequest:
    parameters = _parameters(body)
    grammar = parameters.get("grammar")
    return EngineRequest(
        (str(body["inputs"]),),
        stops=strings(parameters.get("stop")),
        # The response includes the stop string that ends it.
        keep_stop=True,
        limit=whole_number(parameters, "max_new_tokens"),
        text=constrained(grammar) if isinstance(grammar, dict) else None,
    )


def _details(answered: EngineAnswer) -> JsonObject:
    (written,) = answered.choices
    reason = "stop_sequence" if written.stop else "length" if written.finish == "length" else "eos_token"
    return {"finish_reason": reason, "generated_tokens": answered.generated, "seed": None}


def _token(text: str, logprob: float | None) -> JsonObject:
    return {"id": 1, "text": text, "logprob": logprob, "special": False}


def _tokens(body: JsonObject, written: EngineChoice) -> list[JsonObject]:
    if "top_n_tokens" in _parameters(body):
        return [_token(token, logprob) for token, logprob in written.tokens]
    return [_token(piece, -1.0) for piece in pieces(written)]


def _whole(body: JsonObject, answered: EngineAnswer) -> JsonObject:
    (written,) = answered.choices
    words = str(body["inputs"]).split(" ")
    prefill: list[JsonValue] = [
        {"id": 1, "text": f" {word}" if place else word, "logprob": -0.1 if place else None}
        for place, word in enumerate(words)
    ]
    tokens: list[JsonValue] = [*_tokens(body, written)]
    tops: list[JsonValue] = [[token] for token in tokens]
    details = {**_details(answered), "prefill": prefill, "tokens": tokens, "top_tokens": tops}
    return {"generated_text": written.text, "details": details}


def _frames(body: JsonObject, answered: EngineAnswer) -> list[bytes]:
    (written,) = answered.choices
    tokens = _tokens(body, written)
    events: list[JsonObject] = [
        {"index": place, "token": token, "top_tokens": [token], "generated_text": None, "details": None}
        for place, token in enumerate(tokens)
    ]
    last: JsonObject = {"id": 2, "text": "</s>", "logprob": -0.1, "special": True}
    details: JsonObject = {**_details(answered), "input_length": answered.prompt_tokens}
    events.append({"index": len(tokens), "token": last, "generated_text": written.text, "details": details})
    return data_frames(*events)


def _too_large(request: EngineRequest) -> tuple[int, JsonObject]:
    message = (
        f"Input validation error: `inputs` tokens + `max_new_tokens` must be <= {WINDOW}. Given: "
        f"{prompt_tokens(request)} `inputs` tokens and {request.limit} `max_new_tokens`"
    )
    return 422, {"error": message, "error_type": "validation"}


TGI = FakeDialect(
    calls=(
        FakeEndpoint(("/generate_stream",), _read_request, _whole, _frames, streams=lambda path, body: True),
        FakeEndpoint(("/generate",), _read_request, _whole, _frames, streams=lambda path, body: False),
    ),
    too_large=_too_large,
)

FAKE_DIALECTS = {"tgi": TGI}
