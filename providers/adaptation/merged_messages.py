"""Merges the contents of successive messages into one, with a blank line between their texts.

The parts of one message together form one text and are unchanged. Source: vllm-project/vllm-ascend#9920, November 2026.
"""

from collections.abc import Iterable
from typing import Final

from providers.json_types import JsonObject, JsonValue

BETWEEN: Final = "\n\n"
"""The separator between the texts of two messages."""


def merged_contents(contents: Iterable[JsonValue]) -> JsonValue:
    """Return the contents of messages as one content: a text if all contents are texts, else a list of parts."""
    given = [content for content in contents if content]
    texts = [content for content in given if isinstance(content, str)]
    if len(texts) == len(given):
        return BETWEEN.join(texts)
    parts: list[JsonValue] = []
    for content in given:
        own: list[JsonValue] = content if isinstance(content, list) else [{"type": "text", "text": content}]
        parts += apart(parts, own)
    return parts


def apart(before: list[JsonValue], parts: list[JsonValue]) -> list[JsonValue]:
    """Return the parts of a message that is placed after the parts `before` of another message. If two texts meet, the
    second text gets the separator at its beginning. The first text is unchanged, since the vendor may have cached
    it."""
    first = parts[0] if parts else None
    if not (before and _is_text(before[-1]) and isinstance(first, dict) and _is_text(first)):
        return parts
    parted: JsonObject = {**first, "text": f"{BETWEEN}{first.get('text')}"}
    return [parted, *parts[1:]]


def _is_text(part: JsonValue) -> bool:
    return isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str)
