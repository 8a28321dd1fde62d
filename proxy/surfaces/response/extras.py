"""Renders the contents of a choice besides text, reasoning and calls: blocks of reasoning, citations, media, vendors'
own fields.

`reasoning_details` and `images` have OpenRouter's form, `thinking_blocks` have LiteLLM's (Claude's blocks only), and
`annotations` have OpenAI's. Clients of these APIs read them and send them back (@openrouter/ai-sdk-provider 2.10.0,
litellm 1.109.1, openai-agents 0.24.0, read in November 2026).

In a stream each entry of such a list has an `index`. OpenAI's own client joins lists by this `index`, and fails if an
entry of the second list has no `index` (openai 3.54.0 `lib/streaming/_deltas.py`, November 2026).
"""

from collections.abc import Collection, Iterable, Mapping

from providers.completion import Chunk, Extras
from providers.conversation import CLAUDE_FORMAT
from providers.json_types import JsonObject, JsonValue

DETAILS, BLOCKS = "reasoning_details", "thinking_blocks"

_MESSAGE_FIELDS = frozenset({"role", "content", "refusal", "tool_calls", "reasoning", "reasoning_content"})
_CHOICE_FIELDS = frozenset({"index", "message", "delta", "text", "logprobs", "finish_reason"})
_RESPONSE_FIELDS = frozenset(
    {"id", "object", "created", "model", "choices", "usage", "error", "service_tier", "system_fingerprint"}
)


def message_fields(extras: Extras | None) -> dict[str, object]:
    """Return the fields of a message or delta. The vendor's own fields never replace fields of the common shape."""
    if extras is None:
        return {}
    fields: dict[str, object] = {**_without(extras.message, _MESSAGE_FIELDS)}
    if extras.reasoning_details:
        fields[DETAILS] = extras.reasoning_details
        if blocks := [block for detail in extras.reasoning_details if (block := _claude_block(detail))]:
            fields[BLOCKS] = blocks
    if extras.annotations:
        fields["annotations"] = extras.annotations
    if extras.images:
        fields["images"] = extras.images
    if extras.audio is not None:
        fields["audio"] = extras.audio
    return fields


def delta_fields(extras: Extras, entry_counts: dict[str, int]) -> dict[str, object]:
    """Return the fields of a delta. `entry_counts` are the numbers of entries that the lists of its choice have had so
    far; the function updates it."""
    fields = message_fields(extras)
    if BLOCKS in fields:
        claudes = [(_claude_block(detail), detail) for detail in extras.reasoning_details]
        fields[BLOCKS] = _numbered(
            [_like(block, detail) for block, detail in claudes if block is not None], BLOCKS, entry_counts
        )
    for name, entries in (
        (DETAILS, extras.reasoning_details),
        ("annotations", extras.annotations),
        ("images", extras.images),
    ):
        if entries:
            fields[name] = _numbered(entries, name, entry_counts)
    for name, listed in (extras.message or {}).items():
        if (
            isinstance(listed, list)
            and fields.get(name) is listed
            and all([isinstance(entry, dict) for entry in listed])
        ):
            fields[name] = _numbered([entry for entry in listed if isinstance(entry, dict)], name, entry_counts)
    return fields


def choice_fields(extras: Extras | None) -> dict[str, JsonValue]:
    """Return the vendor's own fields of a choice."""
    return {} if extras is None else _without(extras.choice, _CHOICE_FIELDS)


def response_fields(extra: Mapping[str, JsonValue] | None) -> dict[str, JsonValue]:
    """Return the vendor's own fields of a response."""
    return _without(extra, _RESPONSE_FIELDS)


def is_late(chunk: Chunk) -> bool:
    """Return whether a chunk of a choice that has ended has only fields of the whole response."""
    extras = chunk.extras
    return extras is not None and extras == Extras(answer=extras.answer)


def text_fields(extras: Extras | None) -> dict[str, object]:
    """Return the fields of a text completion's choice, which has no message and no reasoning."""
    if extras is None:
        return {}
    fields = {**message_fields(extras), **choice_fields(extras)}
    return {
        name: value for name, value in fields.items() if name not in _CHOICE_FIELDS and name not in (DETAILS, BLOCKS)
    }


def _numbered(entries: Iterable[JsonObject], name: str, entry_counts: dict[str, int]) -> list[JsonObject]:
    """Return the entries of a list, each with an index: its own index, or else its position among all entries of the
    stream.

    The chunks of one block of reasoning have the same type and the same index of the vendor. They get the position of
    the block, because vendors number the blocks of each type, or all blocks of a response.
    """
    found: list[JsonObject] = []
    for entry in entries:
        given = entry.get("index")
        own = given if isinstance(given, int) else None
        key = "" if own is None or name not in (DETAILS, BLOCKS) else f"{name} {entry.get('type')} {own}"
        count = entry_counts.get(name, 0)
        position = entry_counts.get(key, count) if key or own is None else own
        if key not in entry_counts:
            entry_counts[name] = count + 1
        if key:
            entry_counts[key] = position
        found.append(entry if own == position else {**entry, "index": position})
    return found


def _like(block: JsonObject, detail: JsonObject) -> JsonObject:
    """Return a block with the index of the reasoning detail from which it is made."""
    index = detail.get("index")
    return {**block, "index": index} if isinstance(index, int) else block


def _without(fields: Mapping[str, JsonValue] | None, names: Collection[str]) -> dict[str, JsonValue]:
    return {name: value for name, value in (fields or {}).items() if name not in names}


def _claude_block(detail: JsonObject) -> JsonObject | None:
    """Return a detail as Anthropic's block; `None` if it is another vendor's."""
    if detail.get("format") != CLAUDE_FORMAT:
        return None
    if detail.get("type") == "reasoning.encrypted":
        return {"type": "redacted_thinking", "data": detail.get("data")}
    if detail.get("type") != "reasoning.text":
        return None
    block: JsonObject = {"type": "thinking", "thinking": detail.get("text") or ""}
    # openai-agents 0.24.0 fails on a signature that is null.
    return {**block, "signature": detail["signature"]} if detail.get("signature") else block
