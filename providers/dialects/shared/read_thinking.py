"""Reads the thinking of earlier turns from the members in which clients send it back.

Sources: OpenRouter's `reasoning_details` in @openrouter/sdk 1.3.19 and its ai-sdk-provider 2.10.0; litellm 1.109.1
`thinking_blocks`; "Thought signatures" page of the Gemini API, November 2026.
"""

from collections.abc import Iterator

from providers.conversation import CLAUDE_FORMAT, UNKNOWN_FORMAT, Part, RedactedThinking, Thinking
from providers.json_types import JsonObject, JsonValue


def thinking_of(message: JsonObject) -> list[Part]:
    """Return the thinking of a message, from the most exact member that holds any."""
    details, blocks = message.get("reasoning_details"), message.get("thinking_blocks")
    if isinstance(details, list) and (found := list(_from_details(details))):
        return found
    if isinstance(blocks, list) and blocks:
        return [thinking_block(block) for block in blocks if isinstance(block, dict)]
    text = message.get("reasoning_content") or message.get("reasoning")
    if not isinstance(text, str):
        return []
    signature = message.get("reasoning_signature")
    if isinstance(signature, str) and signature:
        return [Thinking(text, signature, CLAUDE_FORMAT)]
    return [Thinking(text)]


def thinking_block(block: JsonObject) -> Part:
    """Return the thinking of a block in Anthropic's form, or in Mistral's, whose thinking is a list of texts."""
    if block.get("type") == "redacted_thinking":
        return RedactedThinking(str(block.get("data") or ""), CLAUDE_FORMAT)
    text, signature = block.get("thinking"), block.get("signature")
    if isinstance(text, list):
        text = "".join([str(part.get("text", "")) for part in text if isinstance(part, dict)])
    signed = isinstance(signature, str) and signature
    return Thinking(
        text if isinstance(text, str) else "",
        str(signature) if signed else None,
        CLAUDE_FORMAT if signed else UNKNOWN_FORMAT,
    )


def google_signature(holder: JsonObject) -> str | None:
    """Return the signature that Google's own OpenAI-compatible endpoint puts beside a text or a call."""
    found: JsonValue = holder
    for step in ("extra_content", "google", "thought_signature"):
        found = found.get(step) if isinstance(found, dict) else None
    return found if isinstance(found, str) and found else None


def _from_details(details: list[JsonValue]) -> Iterator[Part]:
    """Yield the thinking of OpenRouter's `reasoning_details`; pieces of one block have one index and type, and follow
    each other. Entries of types without thinking of the model are skipped."""
    pieces: list[JsonObject] = []
    for detail in details:
        if not isinstance(detail, dict):
            continue
        if pieces and not _continues(pieces[-1], detail):
            yield from _of_pieces(pieces)
            pieces = []
        pieces.append(detail)
    yield from _of_pieces(pieces)


def _continues(before: JsonObject, detail: JsonObject) -> bool:
    """Return whether a detail is a further piece of the block before it: a block ends with its signature."""
    same = all(before.get(name) == detail.get(name) for name in ("type", "index"))
    return same and "index" in detail and not before.get("signature") and detail.get("type") == "reasoning.text"


def _of_pieces(pieces: list[JsonObject]) -> Iterator[Part]:
    if not pieces:
        return
    first = pieces[0]
    signature = next((str(each["signature"]) for each in pieces if each.get("signature")), None)
    given = first.get("format")
    form = given if isinstance(given, str) and given else CLAUDE_FORMAT if signature else UNKNOWN_FORMAT
    match first.get("type"):
        case "reasoning.text":
            yield Thinking("".join([str(each.get("text") or "") for each in pieces]), signature, form)
        case "reasoning.summary":
            yield Thinking(str(first.get("summary") or ""), None, UNKNOWN_FORMAT)
        case "reasoning.encrypted":
            identity = first.get("id")
            # Without a format OpenRouter's own client reads Claude's.
            whose = given if isinstance(given, str) and given else CLAUDE_FORMAT
            yield RedactedThinking(str(first.get("data") or ""), whose, identity if isinstance(identity, str) else None)
        case _:
            return
