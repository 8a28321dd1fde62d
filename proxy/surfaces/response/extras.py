"""Renders what a choice holds besides text, reasoning and calls: blocks of thinking, citations, media, vendors' own.

`reasoning_details` have OpenRouter's form, `thinking_blocks` LiteLLM's (Claude's blocks only), `annotations` OpenAI's,
`images` OpenRouter's; clients of those read them and send them back (@openrouter/ai-sdk-provider 2.10.0, litellm
1.109.1, openai-agents 0.24.0, read in November 2026).

In a stream each entry of such a list has an `index`: OpenAI's own client joins lists by it, and ends where an entry of
the second one has none (openai 3.54.0 `lib/streaming/_deltas.py`, November 2026).
"""

from collections.abc import Collection, Iterable, Mapping

from providers.completion import Chunk, Extras
from providers.conversation import CLAUDE_FORMAT
from providers.json_types import JsonObject, JsonValue

DETAILS, BLOCKS = "reasoning_details", "thinking_blocks"

_OF_MESSAGE = frozenset({"role", "content", "refusal", "tool_calls", "reasoning", "reasoning_content"})
_OF_CHOICE = frozenset({"index", "message", "delta", "text", "logprobs", "finish_reason"})
_OF_ANSWER = frozenset(
    {"id", "object", "created", "model", "choices", "usage", "error", "service_tier", "system_fingerprint"}
)


def message_members(extras: Extras | None) -> dict[str, object]:
    """Return the members of a message or delta; the vendor's own never replace those of the common shape."""
    if extras is None:
        return {}
    members: dict[str, object] = {**_without(extras.message, _OF_MESSAGE)}
    if extras.reasoning_details:
        members[DETAILS] = extras.reasoning_details
        if blocks := [block for detail in extras.reasoning_details if (block := _claude_block(detail))]:
            members[BLOCKS] = blocks
    if extras.annotations:
        members["annotations"] = extras.annotations
    if extras.images:
        members["images"] = extras.images
    if extras.audio is not None:
        members["audio"] = extras.audio
    return members


def delta_members(extras: Extras, shown: dict[str, int]) -> dict[str, object]:
    """Return the members of a delta; `shown` are the numbers of entries that the lists of its choice have had so far,
    and is brought up to date."""
    members = message_members(extras)
    if BLOCKS in members:
        claudes = [(_claude_block(detail), detail) for detail in extras.reasoning_details]
        members[BLOCKS] = _numbered(
            [_like(block, detail) for block, detail in claudes if block is not None], BLOCKS, shown
        )
    for name, entries in (
        (DETAILS, extras.reasoning_details),
        ("annotations", extras.annotations),
        ("images", extras.images),
    ):
        if entries:
            members[name] = _numbered(entries, name, shown)
    for name, listed in (extras.message or {}).items():
        if (
            isinstance(listed, list)
            and members.get(name) is listed
            and all([isinstance(entry, dict) for entry in listed])
        ):
            members[name] = _numbered([entry for entry in listed if isinstance(entry, dict)], name, shown)
    return members


def choice_members(extras: Extras | None) -> dict[str, JsonValue]:
    """Return the vendor's own members of a choice."""
    return {} if extras is None else _without(extras.choice, _OF_CHOICE)


def answer_members(extra: Mapping[str, JsonValue] | None) -> dict[str, JsonValue]:
    """Return the vendor's own members of a whole answer."""
    return _without(extra, _OF_ANSWER)


def is_late(chunk: Chunk) -> bool:
    """Return whether a chunk of a choice that has ended holds members of the whole answer alone."""
    extras = chunk.extras
    return extras is not None and extras == Extras(answer=extras.answer)


def text_members(extras: Extras | None) -> dict[str, object]:
    """Return the members of a text completion's choice, which has no message and shows no reasoning."""
    if extras is None:
        return {}
    shown = {**message_members(extras), **choice_members(extras)}
    return {name: value for name, value in shown.items() if name not in _OF_CHOICE and name not in (DETAILS, BLOCKS)}


def _numbered(entries: Iterable[JsonObject], name: str, shown: dict[str, int]) -> list[JsonObject]:
    """Return the entries of a list with an index each: their own, else their place among all of the stream.

    Blocks of thinking come in chunks, which have the vendor's index and the type in common: they get the place of the
    block, since vendors number blocks of each type, or all blocks of an answer.
    """
    found: list[JsonObject] = []
    for entry in entries:
        given = entry.get("index")
        own = given if isinstance(given, int) else None
        key = "" if own is None or name not in (DETAILS, BLOCKS) else f"{name} {entry.get('type')} {own}"
        count = shown.get(name, 0)
        place = shown.get(key, count) if key or own is None else own
        if key not in shown:
            shown[name] = count + 1
        if key:
            shown[key] = place
        found.append(entry if own == place else {**entry, "index": place})
    return found


def _like(block: JsonObject, detail: JsonObject) -> JsonObject:
    """Return a block with the index of the detail that it is made of."""
    index = detail.get("index")
    return {**block, "index": index} if isinstance(index, int) else block


def _without(members: Mapping[str, JsonValue] | None, names: Collection[str]) -> dict[str, JsonValue]:
    return {name: value for name, value in (members or {}).items() if name not in names}


def _claude_block(detail: JsonObject) -> JsonObject | None:
    """Return a detail as Anthropic's block; None for another vendor's."""
    if detail.get("format") != CLAUDE_FORMAT:
        return None
    if detail.get("type") == "reasoning.encrypted":
        return {"type": "redacted_thinking", "data": detail.get("data")}
    if detail.get("type") != "reasoning.text":
        return None
    block: JsonObject = {"type": "thinking", "thinking": detail.get("text") or ""}
    # openai-agents 0.24.0 ends at a signature that is null.
    return {**block, "signature": detail["signature"]} if detail.get("signature") else block
