"""Bodies and stream frames in the shape of OpenAI's completion and chat APIs, for fake vendors.

Shapes: OpenAI OpenAPI 2.3.0 (August 2026), `CreateCompletionResponse` and `CreateChatCompletionResponse`.
"""

from collections.abc import Sequence

from providers.json_types import JsonObject
from tests.support.http_scripts import DONE, data_frames

CREATED = 1_795_000_000
USAGE: JsonObject = {"prompt_tokens": 6, "completion_tokens": 2, "total_tokens": 8}


def completion(text: str, model: str = "m", finish_reason: str = "stop") -> JsonObject:
    """Return a complete text completion with one choice and usage."""
    choice: JsonObject = {"index": 0, "text": text, "logprobs": None, "finish_reason": finish_reason}
    return {**_envelope("cmpl-1", "text_completion", model), "choices": [choice], "usage": USAGE}


def chat(text: str, model: str = "m", finish_reason: str = "stop") -> JsonObject:
    """Return a complete chat completion with one choice and usage."""
    message: JsonObject = {"role": "assistant", "content": text, "refusal": None}
    choice: JsonObject = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish_reason}
    return {**_envelope("chatcmpl-1", "chat.completion", model), "choices": [choice], "usage": USAGE}


def completion_frames(texts: Sequence[str], model: str = "m", finish_reason: str = "stop") -> list[bytes]:
    """Return a frame for each text, one with the finish reason, one with usage and no choice, and the terminator."""
    start = _envelope("cmpl-1", "text_completion", model)
    endings: list[str | None] = [None] * len(texts) + [finish_reason]
    chunks: list[JsonObject] = [
        {**start, "choices": [{"index": 0, "text": text, "logprobs": None, "finish_reason": ending}], "usage": None}
        for text, ending in zip([*texts, ""], endings, strict=True)
    ]
    return [*data_frames(*chunks, {**start, "choices": [], "usage": USAGE}), DONE]


def chat_frames(texts: Sequence[str], model: str = "m", finish_reason: str = "stop") -> list[bytes]:
    """Return the frame with the role, then the same frames as `completion_frames`."""
    start = _envelope("chatcmpl-1", "chat.completion.chunk", model)
    contents: list[JsonObject] = [{"content": text} for text in texts]
    deltas: list[JsonObject] = [{"role": "assistant", "content": ""}, *contents, {}]
    endings: list[str | None] = [None] * (len(deltas) - 1) + [finish_reason]
    chunks: list[JsonObject] = [
        {**start, "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": ending}], "usage": None}
        for delta, ending in zip(deltas, endings, strict=True)
    ]
    return [*data_frames(*chunks, {**start, "choices": [], "usage": USAGE}), DONE]


def _envelope(answer_id: str, kind: str, model: str) -> JsonObject:
    return {"id": answer_id, "object": kind, "created": CREATED, "model": model, "system_fingerprint": "fp_1"}
