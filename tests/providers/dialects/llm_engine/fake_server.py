"""LLM Engine's completions. Shapes: scale-llm-engine 0.0.0beta45 `CompletionSyncV1Response`,
`CompletionStreamV1Response`."""

from providers.json_types import JsonObject, JsonValue
from tests.conformance.engine import WINDOW, EngineChoice, EngineRequest, constrained, prompt_tokens
from tests.conformance.fake_dialect import EngineAnswer, FakeDialect, FakeEndpoint, pieces, strings, whole_number
from tests.support.http_scripts import data_frames


def _read_request(body: JsonObject) -> EngineRequest:
    return EngineRequest(
        strings(body["prompt"]),
        stops=strings(body.get("stop_sequences")),
        keep_stop=body.get("include_stop_str_in_output") is True,
        limit=whole_number(body, "max_new_tokens"),
        text=constrained(body),
    )


def _streams(path: str, body: JsonObject) -> bool:
    return path.endswith("-stream")


def _tokens(body: JsonObject, written: EngineChoice) -> list[JsonValue]:
    if not body.get("return_token_log_probs"):
        return []
    return [{"token": token, "log_prob": logprob} for token, logprob in written.tokens]


def _whole(body: JsonObject, answered: EngineAnswer) -> JsonObject:
    (written,) = answered.choices
    output: JsonObject = {
        "text": written.text,
        "num_prompt_tokens": answered.prompt_tokens,
        "num_completion_tokens": answered.generated,
        "tokens": _tokens(body, written) or None,
    }
    return {"request_id": "answer-1", "output": output}


def _frames(body: JsonObject, answered: EngineAnswer) -> list[bytes]:
    (written,) = answered.choices
    outputs: list[JsonObject] = [
        {"text": token["token"], "token": token} for token in _tokens(body, written) if isinstance(token, dict)
    ]
    outputs = outputs or [{"text": piece, "token": None} for piece in pieces(written)]
    outputs.append({"text": "", "token": None})
    last = len(outputs) - 1
    for place, output in enumerate(outputs):
        output["finished"] = place == last
        output["num_prompt_tokens"] = answered.prompt_tokens if place == last else None
        output["num_completion_tokens"] = answered.generated if place == last else place + 1
    events: list[JsonValue] = [{"request_id": "answer-1", "output": output, "error": None} for output in outputs]
    return data_frames(*events)


def _too_large(request: EngineRequest) -> tuple[int, JsonObject]:
    """Return the error message of the vLLM behind it."""
    prompt, limit = prompt_tokens(request), request.limit or 0
    told = (
        f"This model's maximum context length is {WINDOW} tokens. However, you requested {limit} output tokens and "
        f"your prompt contains {prompt} input tokens, for a total of {prompt + limit} "
        f"tokens. Please reduce the length of the input prompt or the number of requested output tokens."
    )
    return 400, {"detail": told}


LLM_ENGINE = FakeDialect(
    calls=(FakeEndpoint(("/completions-sync", "/completions-stream"), _read_request, _whole, _frames, _streams),),
    too_large=_too_large,
)

FAKE_DIALECTS = {"llm_engine": LLM_ENGINE}
