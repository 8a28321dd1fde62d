"""The thinking of earlier turns, under the member in which a vendor of the OpenAI family reads it.

OpenRouter takes `reasoning_details` as it gave them, since changed or merged ones break the signatures in them. Most
others read a text, under their own name for it, or refuse the member.

Sources, November 2026: @openrouter/sdk 1.3.19 `ReasoningDetailUnion`; litellm 1.109.1 `thinking_blocks`; the vendors'
errors that `messages` names.
"""

from collections.abc import Iterable
from typing import Final

from providers.conversation import AFTER, Part, RedactedThinking, Thinking
from providers.dialects.shared.read_thinking import thinking_block, thinking_of
from providers.json_types import JsonObject, JsonValue
from providers.profile import Profile

DETAILS: Final = "reasoning_details"

_MEMBERS: Final = frozenset({"reasoning", "reasoning_content", "reasoning_signature", "thinking_blocks", DETAILS})
_PARTS: Final = ("thinking", "redacted_thinking")


def holds_thinking(message: JsonObject) -> bool:
    """Return whether a message carries thinking, in a member of its own or among its parts."""
    if not message.keys().isdisjoint(_MEMBERS):
        return True
    content = message.get("content")
    return isinstance(content, list) and any([_is_thinking(part) for part in content])


def with_thinking(message: JsonObject, profile: Profile, dropped: list[str]) -> JsonObject:
    """Return the message with its thinking as the vendor reads it, and note in `dropped` thinking that it does not."""
    thoughts = [part for part in _thoughts(message) if not isinstance(part, Thinking) or part.text or part.signature]
    kept = {name: value for name, value in message.items() if name not in _MEMBERS}
    content = kept.get("content")
    if isinstance(content, list) and any([_is_thinking(part) for part in content]):
        kept["content"] = [part for part in content if not _is_thinking(part)] or ""
    if not thoughts:
        return kept
    text = "".join([part.text for part in thoughts if isinstance(part, Thinking)])
    given = message.get(DETAILS)
    received = isinstance(given, list) and given
    details = DETAILS in profile.takes and (
        received or any([not isinstance(part, Thinking) or part.signature for part in thoughts])
    )
    if details:
        kept[DETAILS] = _received(given) if received else [*_details(thoughts)]
    if profile.reasoning_members and text:
        kept.update(dict.fromkeys(profile.reasoning_members, text))
    elif not details:
        dropped.append("thinking")
    return kept


def _received(details: JsonValue) -> JsonValue:
    """Return details as the vendor gave them, without what the gateway noted in them."""
    if not isinstance(details, list):
        return details
    return [
        {name: value for name, value in detail.items() if name != AFTER}
        if isinstance(detail, dict) and AFTER in detail
        else detail
        for detail in details
    ]


def _is_thinking(part: JsonValue) -> bool:
    return isinstance(part, dict) and part.get("type") in _PARTS


def _thoughts(message: JsonObject) -> list[Part]:
    found = thinking_of(message)
    content = message.get("content")
    if not found and isinstance(content, list):
        found = [thinking_block(part) for part in content if isinstance(part, dict) and part.get("type") in _PARTS]
    return found


def _details(thoughts: Iterable[Part]) -> Iterable[JsonObject]:
    """Yield the entries of `reasoning_details` for thinking that came in another form."""
    for index, part in enumerate(thoughts):
        match part:
            case Thinking(text, signature, form):
                entry: JsonObject = {"type": "reasoning.text", "text": text, "format": form, "index": index}
                yield entry if signature is None else {**entry, "signature": signature}
            case RedactedThinking(data, form):
                yield {"type": "reasoning.encrypted", "data": data, "format": form, "index": index}
            case _:
                continue
