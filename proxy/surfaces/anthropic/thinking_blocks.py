"""Reasoning as thinking blocks of the Messages API.

Claude's blocks have Claude's own signature, or are redacted. For reasoning of another vendor, the data that the vendor
needs back is in an envelope in the block's signature. The signature of plain text is empty.

Source: `anthropic` 2.12.0 types `ThinkingBlock`, `RedactedThinkingBlock`, November 2026.
"""

from collections.abc import Iterable, Sequence

from providers.conversation import CLAUDE_FORMAT, UNKNOWN_FORMAT
from providers.json_types import JsonObject
from proxy.surfaces.thinking_envelope import seal

_PLAIN = (None, UNKNOWN_FORMAT)


def is_claude_detail(detail: JsonObject) -> bool:
    """Return whether a reasoning detail is Claude's own. Claude's details become blocks of their own."""
    return detail.get("format") == CLAUDE_FORMAT and detail.get("type") in ("reasoning.text", "reasoning.encrypted")


def redacted_block(detail: JsonObject) -> JsonObject:
    """Return the redacted block of a reasoning detail that only Claude can read."""
    return {"type": "redacted_thinking", "data": str(detail.get("data") or "")}


def signature_for(details: Sequence[JsonObject]) -> str:
    """Return the signature of a block for the details of another vendor; empty if the vendor needs nothing back."""
    needed = any([_is_needed(detail) for detail in details])
    return seal(details) if needed else ""


def _is_needed(detail: JsonObject) -> bool:
    return bool(detail.get("signature") or detail.get("data")) or detail.get("format") not in _PLAIN


def whole_blocks(reasoning: str | None, details: Iterable[JsonObject]) -> list[JsonObject]:
    """Return the thinking blocks of a non-streaming response: one for each of Claude's details, and one for all of
    another vendor's."""
    blocks: list[JsonObject] = []
    others: list[JsonObject] = []
    for detail in details:
        if not is_claude_detail(detail):
            others.append(detail)
        elif detail["type"] == "reasoning.encrypted":
            blocks.append(redacted_block(detail))
        else:
            blocks.append(_thinking(str(detail.get("text") or ""), str(detail.get("signature") or "")))
    if any([block["type"] == "thinking" for block in blocks]):
        reasoning = "".join([str(detail.get("text") or "") for detail in others])
    signature = signature_for(others)
    if reasoning or signature:
        blocks.append(_thinking(reasoning or "", signature))
    return blocks


def _thinking(text: str, signature: str) -> JsonObject:
    return {"type": "thinking", "thinking": text, "signature": signature}
