"""Writes the reasoning of earlier turns into the field from which a vendor of the OpenAI family reads it.

OpenRouter must get its `reasoning_details` back unchanged, since changed or merged details invalidate the signatures in
them. Most other vendors read a text, from a field with their own name, or refuse such a field.

Sources, November 2026: @openrouter/sdk 1.3.19 `ReasoningDetailUnion`; litellm 1.109.1 `thinking_blocks`; the vendors'
errors that `messages` names.
"""

from collections.abc import Iterable
from typing import Final

from providers.conversation import AFTER_KEY, Part, Reasoning, RedactedReasoning
from providers.dialects.shared.read_thinking import reasoning_of_message, thinking_block
from providers.json_types import JsonObject, JsonValue
from providers.profile import Profile

DETAILS: Final = "reasoning_details"

_REASONING_FIELDS: Final = frozenset(
    {"reasoning", "reasoning_content", "reasoning_signature", "thinking_blocks", DETAILS}
)
_REASONING_PARTS: Final = ("thinking", "redacted_thinking")


def has_reasoning(message: JsonObject) -> bool:
    """Return whether a message carries reasoning, in a separate field or among its parts."""
    if not message.keys().isdisjoint(_REASONING_FIELDS):
        return True
    content = message.get("content")
    return isinstance(content, list) and any([_is_reasoning_part(part) for part in content])


def with_readable_reasoning(message: JsonObject, profile: Profile, dropped: list[str]) -> JsonObject:
    """Return the message with its reasoning in the form that the vendor reads. Reasoning that the vendor does not read
    is reported in `dropped` as `thinking`."""
    blocks = [
        part for part in _reasoning_blocks(message) if not isinstance(part, Reasoning) or part.text or part.signature
    ]
    rewritten = {name: value for name, value in message.items() if name not in _REASONING_FIELDS}
    content = rewritten.get("content")
    if isinstance(content, list) and any([_is_reasoning_part(part) for part in content]):
        rewritten["content"] = [part for part in content if not _is_reasoning_part(part)] or ""
    if not blocks:
        return rewritten
    text = "".join([part.text for part in blocks if isinstance(part, Reasoning)])
    given = message.get(DETAILS)
    has_details = isinstance(given, list) and given
    details = DETAILS in profile.takes and (
        has_details or any([not isinstance(part, Reasoning) or part.signature for part in blocks])
    )
    if details:
        rewritten[DETAILS] = _without_own_marks(given) if has_details else [*_details(blocks)]
    if profile.reasoning_members and text:
        rewritten.update(dict.fromkeys(profile.reasoning_members, text))
    elif not details:
        dropped.append("thinking")
    return rewritten


def _without_own_marks(details: JsonValue) -> JsonValue:
    """Return details as the vendor sent them, without the field that the gateway added."""
    if not isinstance(details, list):
        return details
    return [
        {name: value for name, value in detail.items() if name != AFTER_KEY}
        if isinstance(detail, dict) and AFTER_KEY in detail
        else detail
        for detail in details
    ]


def _is_reasoning_part(part: JsonValue) -> bool:
    return isinstance(part, dict) and part.get("type") in _REASONING_PARTS


def _reasoning_blocks(message: JsonObject) -> list[Part]:
    found = reasoning_of_message(message)
    content = message.get("content")
    if not found and isinstance(content, list):
        found = [
            thinking_block(part) for part in content if isinstance(part, dict) and part.get("type") in _REASONING_PARTS
        ]
    return found


def _details(blocks: Iterable[Part]) -> Iterable[JsonObject]:
    """Yield the entries of `reasoning_details` for reasoning that came in another form."""
    for index, part in enumerate(blocks):
        match part:
            case Reasoning(text, signature, form):
                entry: JsonObject = {"type": "reasoning.text", "text": text, "format": form, "index": index}
                yield entry if signature is None else {**entry, "signature": signature}
            case RedactedReasoning(data, form):
                yield {"type": "reasoning.encrypted", "data": data, "format": form, "index": index}
            case _:
                continue
