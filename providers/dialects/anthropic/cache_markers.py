"""Applies the limits on the cache markers of a request to Anthropic's Messages API.

A cache marker does not change the response, so surplus markers are left out. The vendor accepts at most four markers,
including the marker at the top of the body. It refuses a one-hour marker after a shorter marker, in the order of tools,
system text and messages.

Sources: `anthropic` 2.12.0 type `CacheControlEphemeralParam`; "Prompt caching" page; pydantic-ai 2.68.0
`models/anthropic`, November 2026.
"""

from collections.abc import Iterator, Sequence

from providers.json_types import JsonObject, JsonValue

MAX_MARKERS = 4
"""The maximum number of cache markers in a request."""

MARKER = "cache_control"


def limit_markers(body: JsonObject) -> bool:
    """Remove surplus markers from a body, the oldest of the messages first. Return whether any was removed or
    shortened.

    One-hour markers after a shorter marker are shortened. Blocks are replaced, never changed in place, because they
    may be part of the client's request.
    """
    messages = body.get("messages")
    return limit_markers_with(body, messages if isinstance(messages, list) else [])


def limit_markers_with(body: JsonObject, turns: Sequence[JsonValue]) -> bool:
    """Remove and shorten the markers of a body by the rules of `limit_markers`. `turns` are all turns of the body that
    may have markers."""
    of_prefix = [found for name in ("tools", "system") for found in _marked_blocks(body.get(name))]
    of_messages = [found for turn in turns if isinstance(turn, dict) for found in _marked_blocks(turn.get("content"))]
    at_top = isinstance(body.get(MARKER), dict)
    surplus = max(0, len(of_prefix) + len(of_messages) + at_top - MAX_MARKERS)
    for blocks, index in [*of_messages, *of_prefix][:surplus]:
        block = blocks[index]
        if isinstance(block, dict):
            blocks[index] = {name: value for name, value in block.items() if name != MARKER}
    from_messages = min(surplus, len(of_messages))
    remaining = [*of_prefix[surplus - from_messages :], *of_messages[from_messages:]]
    return _shorten_late_hours(body, remaining) or surplus > 0


def _marked_blocks(content: JsonValue) -> Iterator[tuple[list[JsonValue], int]]:
    """Yield the list and the position of each block that has a marker."""
    blocks = content if isinstance(content, list) else []
    for index, block in enumerate(blocks):
        if isinstance(block, dict) and isinstance(block.get(MARKER), dict):
            yield blocks, index


def _shorten_late_hours(body: JsonObject, marked: list[tuple[list[JsonValue], int]]) -> bool:
    """Shorten the one-hour markers that follow a shorter marker. Return whether there are any."""
    short = changed = False
    for blocks, index in marked:
        block = blocks[index]
        if not isinstance(block, dict):
            continue
        if not _is_hour(block):
            short = True
        elif short:
            blocks[index] = _shortened(block)
            changed = True
    if short and _is_hour(body):
        body.update(_shortened(body))
        changed = True
    return changed


def _is_hour(block: JsonObject) -> bool:
    marker = block.get(MARKER)
    return isinstance(marker, dict) and marker.get("ttl") == "1h"


def _shortened(block: JsonObject) -> JsonObject:
    marker = block[MARKER]
    default = {name: value for name, value in marker.items() if name != "ttl"} if isinstance(marker, dict) else marker
    return {**block, MARKER: default}
