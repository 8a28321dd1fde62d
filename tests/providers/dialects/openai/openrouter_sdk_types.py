"""Check OpenRouter's chat against the vendor's own types (`openrouter` 1.3.84).

The types drop unknown fields, so a body must be unchanged after a round trip through them. They have none for the
endpoint of raw prompts.
"""

import json

from openrouter.components import ChatRequest, ChatResult, ChatStreamChunk  # type: ignore[import-not-found]


def check_body(operation: str, body: bytes) -> None:
    """Raise for anything that the vendor's client would not send unchanged."""
    assert operation == "chat", operation
    sent = json.loads(body)
    # The page "Reasoning tokens" documents a budget, which the types lack.
    sent.get("reasoning", {}).pop("max_tokens", None)
    back = ChatRequest.model_validate(sent).model_dump(mode="json", by_alias=True, exclude_unset=True)
    assert back == sent, (back, sent)


def check_answer(body: bytes) -> None:
    """Raise unless the vendor's client would read the response."""
    ChatResult.model_validate_json(body)


def check_events(payloads: list[bytes]) -> None:
    for payload in payloads:
        ChatStreamChunk.model_validate_json(payload)
