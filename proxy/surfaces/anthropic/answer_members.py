"""The fields of a response in the Messages API besides its blocks of text, reasoning and calls.

Anthropic's own stop reasons are unchanged. Input tokens exclude tokens read from a cache or written to one, which the
unified usage includes. A citation has the vendor's index, which is empty if the vendor is not Anthropic.

Sources: `anthropic` 2.12.0 types `Message`, `StopReason`, `Usage`, `MessageDeltaUsage`, `TextCitation`, November 2026.
"""

from collections.abc import Iterable, Mapping

from providers.completion import Chunk, Extras, Usage
from providers.dialects.shared.read_logprobs import objects_in
from providers.json_types import JsonObject, JsonValue
from proxy.surfaces.anthropic.thinking_blocks import is_claude_detail

BLOCKS, CITATIONS = "content_blocks", "citations"
"""Fields of the unified message with Anthropic's blocks and citations that have no common form."""

IN_DELTA = frozenset({"stop_details", "container"})
"""Fields of a message that a stream has in the delta of `message_delta`."""

_OWN_STOPS = frozenset({"pause_turn", "model_context_window_exceeded", "compaction", "refusal"})
_STOPS: Mapping[str, str] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "content_filter": "refusal",
}
_MESSAGE_FIELDS = frozenset({"id", "type", "role", "model", "content", "stop_reason", "stop_sequence", "usage"})
_SHOWN_IN_BLOCKS = frozenset({BLOCKS, CITATIONS, "reasoning_details", "tool_calls"})
_LOCATIONS = frozenset(
    {"char_location", "page_location", "content_block_location", "search_result_location", "web_search_result_location"}
)
_TIERS = {"default": "standard"}
_CACHE_WRITE_COUNTS = ("ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens")
_SERVER_TOOL_COUNTS = ("web_search_requests", "web_fetch_requests")

NO_USAGE = Usage(0, 0)


def stop_fields(
    finish: str, native: str | None, matched: str | int | None, called: object, refusal: str | None
) -> JsonObject:
    """Return the fields that report why a response ended. `called` is true for a response with tool calls, because some
    vendors do not report them in the finish reason."""
    reason = next((word for word in (native, finish) if word in _OWN_STOPS), None)
    if reason is None and finish == "stop":
        if called:
            reason = "tool_use"
        elif isinstance(matched, str) and matched:
            reason = "stop_sequence"
        elif refusal is not None:
            reason = "refusal"
    reason = reason or _STOPS.get(finish, "end_turn")
    fields: JsonObject = {
        "stop_reason": reason,
        "stop_sequence": matched if reason == "stop_sequence" and isinstance(matched, str) else None,
        "stop_details": None,
    }
    if reason == "refusal" and refusal:
        fields["stop_details"] = {"type": "refusal", "category": None, "explanation": refusal}
    return fields


def usage_counts(usage: Usage | None, tier: str | None = None) -> JsonObject:
    """Return the token counts of a response."""
    usage = usage or NO_USAGE
    prompt, made = usage.prompt_details or {}, usage.completion_details or {}
    read, written = prompt.get("cached_tokens", 0), prompt.get("cache_write_tokens", 0)
    fields: JsonObject = {
        "input_tokens": max(0, usage.prompt_tokens - read - written),
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": read,
        "output_tokens": usage.completion_tokens,
    }
    if created := {name: prompt[name] for name in _CACHE_WRITE_COUNTS if name in prompt}:
        fields["cache_creation"] = {**created}
    if "reasoning_tokens" in made:
        fields["output_tokens_details"] = {"thinking_tokens": made["reasoning_tokens"]}
    if server_tool_counts := {name: made[name] for name in _SERVER_TOOL_COUNTS if name in made}:
        # Anthropic's type requires both counts.
        fields["server_tool_use"] = {**dict.fromkeys(_SERVER_TOOL_COUNTS, 0), **server_tool_counts}
    if tier is not None:
        fields["service_tier"] = _TIERS.get(tier, tier)
    if usage.estimated:
        fields["estimated"] = True
    return {**usage.extra, **fields} if usage.extra else fields


def citations_of(extras: Extras | None) -> list[JsonObject]:
    """Return the citations of a text in Anthropic's form."""
    if extras is None:
        return []
    found = [cited for each in extras.annotations if (cited := _citation(each)) is not None]
    listed = (extras.message or {}).get(CITATIONS)
    for each in listed if isinstance(listed, list) else ():
        if isinstance(each, dict) and each.get("type") in _LOCATIONS:
            found.append({name: value for name, value in each.items() if name not in ("start_index", "end_index")})
    return found


def _citation(annotation: JsonObject) -> JsonObject | None:
    cited = annotation.get("url_citation")
    if not isinstance(cited, dict) or not isinstance(cited.get("url"), str):
        return None
    return {
        "type": "web_search_result_location",
        "url": cited["url"],
        "title": cited.get("title") or None,
        "cited_text": cited.get("content") or "",
        "encrypted_index": cited.get("encrypted_index") or "",
    }


def own_blocks(extras: Extras | None) -> list[JsonObject]:
    """Return a vendor's blocks that have no common form. Blocks without a type, such as Bedrock's, do not belong to
    this API."""
    message = (extras.message if extras is not None else None) or {}
    return [block for block in objects_in(message.get(BLOCKS)) if isinstance(block.get("type"), str)]


def other_fields(extras: Extras | None, *more: Mapping[str, JsonValue] | None) -> JsonObject:
    """Return the fields of a response under the vendor's own names, and media for which there is no block."""
    fields: JsonObject = {}
    holders: Iterable[Mapping[str, JsonValue] | None] = more
    if extras is not None:
        unshown = [each for each in extras.annotations if _citation(each) is None]
        media: JsonObject = {
            "annotations": [*unshown],
            "images": [*extras.images],
            "audio": extras.audio,
            CITATIONS: _other_citations(extras),
            BLOCKS: _other_blocks(extras),
        }
        fields = {name: value for name, value in media.items() if value}
        own_message = extras.message or {}
        fields |= {
            name: own_message[name]
            for name in own_message
            if name not in _MESSAGE_FIELDS and name not in _SHOWN_IN_BLOCKS
        }
        holders = (extras.choice, extras.answer, *more)
    for holder in holders:
        # Citations that vendors list beside the choices, such as xAI's addresses, are in no block.
        listed = fields.get(CITATIONS)
        fields |= {name: value for name, value in (holder or {}).items() if name not in _MESSAGE_FIELDS}
        if isinstance(listed, list) and listed is not (further := fields[CITATIONS]):
            fields[CITATIONS] = [*listed, *(further if isinstance(further, list) else [further])]
    return fields


def _other_blocks(extras: Extras) -> list[JsonValue]:
    """Return the blocks of a list that `own_blocks` leaves out."""
    listed = (extras.message or {}).get(BLOCKS)
    return [
        each
        for each in (listed if isinstance(listed, list) else ())
        if not (isinstance(each, dict) and isinstance(each.get("type"), str))
    ]


def _other_citations(extras: Extras) -> list[JsonValue]:
    """Return a vendor's citations in a form that this API does not have."""
    listed = (extras.message or {}).get(CITATIONS)
    return [
        each
        for each in (listed if isinstance(listed, list) else ())
        if not (isinstance(each, dict) and each.get("type") in _LOCATIONS)
    ]


def holds_more(extras: Extras) -> bool:
    """Return whether extras have anything besides reasoning."""
    return bool(extras.annotations or extras.images or extras.audio or extras.message or extras.choice or extras.answer)


def with_ending(stop: JsonObject, others: JsonObject) -> JsonObject:
    """Return the fields for the end of a response, including the vendor's own fields for it."""
    return {**stop, **{name: others[name] for name in IN_DELTA if name in others}}


def only_text(chunk: Chunk) -> bool:
    """Return whether a chunk has only a text."""
    return (
        chunk.finish_reason is None
        and chunk.reasoning is None
        and chunk.refusal is None
        and not chunk.tool_calls
        and chunk.extras is None
    )


def needs_block(chunk: Chunk) -> bool:
    """Return whether a chunk has anything for a block other than a call."""
    if chunk.text or chunk.reasoning:
        return True
    extras = chunk.extras
    return extras is not None and bool(own_blocks(extras) or any(map(is_claude_detail, extras.reasoning_details)))
