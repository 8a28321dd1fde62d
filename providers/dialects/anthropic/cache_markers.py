"""Cache markers of a request to Anthropic's wire.

A marker promises nothing about the answer, so one that has no place is left out: the vendor takes four, that at the top
of the body among them, and none of an hour behind a shorter one, in the order of tools, system text and messages.

Sources: `anthropic` 2.12.0 type `CacheControlEphemeralParam`; "Prompt caching" page; pydantic-ai 2.68.0
`models/anthropic`, November 2026.
"""

from collections.abc import Iterator, Sequence

from providers.json_types import JsonObject, JsonValue

MOST_MARKERS = 4

MARKER = "cache_control"


def limit_markers(body: JsonObject) -> bool:
    """Take surplus markers out of a body, the oldest of the messages first, and return whether any had to go.

    The hour of a marker behind a shorter one goes too. Blocks are replaced, not changed: they may be the client's.
    """
    messages = body.get("messages")
    return limit_markers_with(body, messages if isinstance(messages, list) else [])


def limit_markers_with(body: JsonObject, turns: Sequence[JsonValue]) -> bool:
    """Take surplus markers out of a body as `limit_markers` does; `turns` are all turns of it that may have any."""
    steady = [place for name in ("tools", "system") for place in _places(body.get(name))]
    passing = [place for turn in turns if isinstance(turn, dict) for place in _places(turn.get("content"))]
    at_top = isinstance(body.get(MARKER), dict)
    surplus = max(0, len(steady) + len(passing) + at_top - MOST_MARKERS)
    for blocks, index in [*passing, *steady][:surplus]:
        block = blocks[index]
        if isinstance(block, dict):
            blocks[index] = {name: value for name, value in block.items() if name != MARKER}
    from_messages = min(surplus, len(passing))
    kept = [*steady[surplus - from_messages :], *passing[from_messages:]]
    return _order_hours(body, kept) or surplus > 0


def _places(held: JsonValue) -> Iterator[tuple[list[JsonValue], int]]:
    """Yield the list and the position of each block that has a marker."""
    blocks = held if isinstance(held, list) else []
    for index, block in enumerate(blocks):
        if isinstance(block, dict) and isinstance(block.get(MARKER), dict):
            yield blocks, index


def _order_hours(body: JsonObject, places: list[tuple[list[JsonValue], int]]) -> bool:
    """Shorten the markers that may not last an hour, and return whether there are any."""
    short = changed = False
    for blocks, index in places:
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
    kept = {name: value for name, value in marker.items() if name != "ttl"} if isinstance(marker, dict) else marker
    return {**block, MARKER: kept}
