"""Check OpenRouter's chat against the vendor's own types (`openrouter` 1.3.84).

The types drop members that they do not know, so a body must come back from them as it went in. They have none for the
endpoint of raw prompts.
"""

import json

from openrouter.components import ChatRequest, ChatResult, ChatStreamChunk  # type: ignore[import-not-found]


def check_body(operation: str, body: bytes) -> None:
    """Raise for anything that the vendor's client would not send as it is."""
    assert operation == "chat", operation
    sent = json.loads(body)
    # "Reasoning tokens" has a budget there; the types do not yet.
    sent.get("reasoning", {}).pop("max_tokens", None)
    back = ChatRequest.model_validate(sent).model_dump(mode="json", by_alias=True, exclude_unset=True)
    assert back == sent, (back, sent)


def check_answer(body: bytes) -> None:
    """Raise unless the vendor's client would read the answer."""
    ChatResult.model_validate_json(body)


def check_events(payloads: list[bytes]) -> None:
    for payload in payloads:
        ChatStreamChunk.model_validate_json(payload)
