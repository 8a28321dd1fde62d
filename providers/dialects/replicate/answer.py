"""Decodes Replicate's predictions into the common completion shape.

Sources: replicate 1.0.7 `Prediction`; "HTTP API" reference, November 2026. An output is a text or a list of chunks of
text. Only some models count tokens.
"""

import orjson

from providers.completion import Choice, Completion, FinishReason, count_of, reported_usage
from providers.dialect import UpstreamRequest
from providers.dialects.shared.errors import failure_in_body
from providers.dialects.shared.prompt import guess_finish
from providers.dialects.shared.read_json import json_object, malformed
from providers.failure import Failure, FailureKind, UpstreamError
from providers.json_types import JsonObject, JsonValue

_WAITING = frozenset({"starting", "processing"})


def decode_answer(sent: UpstreamRequest, body: bytes) -> Completion:
    """Decode a complete 2xx body. Raises UpstreamError if the prediction failed or is not ready."""
    prediction = json_object(body)
    status = prediction.get("status")
    if prediction.get("error"):
        raise UpstreamError(failure_in_body(sent.target.profile, {"error": prediction["error"]}))
    if isinstance(status, str) and status in _WAITING:
        message = "The upstream's prediction took longer than a call may wait."
        raise UpstreamError(Failure(FailureKind.TIMEOUT, message))
    if status != "succeeded":
        message = "The upstream ended the prediction without a result."
        raise UpstreamError(Failure(FailureKind.SERVER, message))
    prompt, generated = _counts(prediction)
    choice = Choice(0, _text(prediction.get("output")), _finish(sent, prompt, generated))
    return Completion((choice,), reported_usage(prompt, generated))


def _text(output: JsonValue) -> str:
    if isinstance(output, str):
        return output
    if output is None:
        return ""
    chunks = [chunk for chunk in output if isinstance(chunk, str)] if isinstance(output, list) else []
    if not isinstance(output, list) or len(chunks) < len(output):
        raise malformed("has an output that is no text")
    return "".join(chunks)


def _counts(prediction: JsonObject) -> tuple[int | None, int | None]:
    metrics = prediction.get("metrics")
    found = metrics if isinstance(metrics, dict) else {}
    return count_of(found.get("input_token_count")), count_of(found.get("output_token_count"))


def _finish(sent: UpstreamRequest, prompt: int | None, generated: int | None) -> FinishReason:
    limit = orjson.loads(sent.body)["input"].get("max_tokens")
    return guess_finish(sent.target, limit, prompt, generated) if isinstance(limit, int) else "stop"
