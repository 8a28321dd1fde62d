"""Check Mistral's chat and fill-in-the-middle requests against the vendor's own types (`mistralai` 3.7.0).

The types drop unknown fields and accept any text for an enumeration. So a body must be unchanged after a round trip
through them, and texts are compared with the values of the enumeration.
"""

import json
from typing import Any  # the SDK is not installed for the type check

from mistralai.client.models import (  # type: ignore[import-not-found]
    ChatCompletionRequest,
    ChatCompletionResponse,
    ChatCompletionStreamRequest,
    CompletionChunk,
    FIMCompletionRequest,
    FIMCompletionStreamRequest,
)

_TYPES: dict[tuple[str, bool], Any] = {
    ("chat", False): ChatCompletionRequest,
    ("chat", True): ChatCompletionStreamRequest,
    ("completions", False): FIMCompletionRequest,
    ("completions", True): FIMCompletionStreamRequest,
}
_ROLES = {"system", "user", "assistant", "tool"}
_FORMATS = {"text", "json_object", "json_schema"}
_CHOICES = {"auto", "none", "any", "required"}


def check_body(operation: str, body: bytes) -> None:
    """Raise for anything that the vendor's client would not send unchanged."""
    sent = json.loads(body)
    read = _TYPES[operation, sent.get("stream") is True].model_validate_json(body)
    back = read.model_dump(mode="json", by_alias=True, exclude_unset=True)
    assert back == sent, (back, sent)
    assert {message["role"] for message in sent.get("messages", ())} <= _ROLES
    assert sent.get("response_format", {"type": "text"})["type"] in _FORMATS
    choice = sent.get("tool_choice", "auto")
    assert isinstance(choice, dict) or choice in _CHOICES, choice


def check_answer(body: bytes) -> None:
    """Raise unless the vendor's client would read the response."""
    ChatCompletionResponse.model_validate_json(body)


def check_events(payloads: list[bytes]) -> None:
    for payload in payloads:
        CompletionChunk.model_validate_json(payload)
