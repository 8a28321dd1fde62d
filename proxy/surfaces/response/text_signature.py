"""The signatures of texts, which differ from the signatures of reasoning and of calls.

Gemini puts the signature of a text into the last part of the response, which may contain nothing else. OpenRouter sends
such a signature as a reasoning detail without `id`, and the signature of a call as a detail with the call's `id`.
Neither signature belongs to any reasoning.

Sources: "Thought signatures" page of the Gemini API; OpenRouter's `reasoning_details` in @openrouter/sdk 1.3.19,
November 2026.
"""

from collections.abc import Iterable

from providers.conversation import GEMINI_FORMAT
from providers.json_types import JsonObject, JsonValue


def extra_content(signature: str) -> JsonObject:
    """Return the field in which Gemini's OpenAI-compatible endpoint sends the signature of a text, and in which it
    expects the signature back."""
    return {"google": {"thought_signature": signature}}


def without_signature(details: tuple[JsonObject, ...], signature: str | None) -> tuple[JsonObject, ...]:
    """Return the details without the text's `signature`, which is sent in its own field."""
    if signature is None:
        return details
    return tuple(
        [each for each in details if each.get("data") != signature or each.get("type") != "reasoning.encrypted"]
    )


def is_of_text(detail: JsonObject) -> bool:
    """Return whether a detail is the signature of a text."""
    encrypted = detail.get("type") == "reasoning.encrypted" and detail.get("format") == GEMINI_FORMAT
    return encrypted and not detail.get("id")


def needed_back(details: Iterable[JsonObject]) -> list[JsonValue]:
    """Return the details that the vendor needs back in addition to their text."""
    return [each for each in details if each.get("signature") or each.get("data")]
