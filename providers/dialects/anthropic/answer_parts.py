"""Translates the parts of Anthropic's responses other than text and tool input into the common shape.

Reasoning becomes `reasoning_details` in OpenRouter's form, with signatures and redacted blocks, in the order of the
blocks. A citation with a web address becomes a `url_citation` that spans the text of its block. Any other citation is
listed under `citations` with the same span. Blocks without a common form are listed under `content_blocks`, unchanged
and in order: calls and results of server tools, files of containers, and unknown types. Other fields of the message and
of its usage keep their names.

Sources: `anthropic` 2.12.0 types `ContentBlock`, `TextCitation`, `Message`, `Usage`; "Citations", "Web search" and
"Preserved thinking" pages, November 2026; recorded responses in vercel/ai ed857f5.
"""

from collections.abc import Mapping

from providers.completion import Extras
from providers.conversation import CLAUDE_FORMAT, UNKNOWN_FORMAT
from providers.json_types import JsonObject, JsonValue

BLOCKS, CITATIONS = "content_blocks", "citations"
"""The fields of a message for blocks without a common form, and for citations without a web address."""

_KNOWN_MESSAGE_FIELDS = frozenset({"id", "type", "role", "model", "content", "stop_reason", "stop_sequence", "usage"})
_KNOWN_USAGE_FIELDS = frozenset(
    {"input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "cache_creation"}
    | {"output_tokens_details", "server_tool_use", "service_tier"}
)
_KNOWN_CALL_FIELDS = frozenset({"type", "id", "name", "input"})
_CALLED_BY_MODEL: JsonValue = {"type": "direct"}


def reasoning_detail(block: JsonObject, index: int) -> JsonObject:
    """Return the reasoning detail of a complete `thinking` or `redacted_thinking` block."""
    if block.get("type") == "redacted_thinking":
        return {"type": "reasoning.encrypted", "data": block.get("data"), "format": CLAUDE_FORMAT, "index": index}
    signature = block.get("signature")
    detail: JsonObject = {"type": "reasoning.text", "text": block.get("thinking"), "index": index}
    if isinstance(signature, str) and signature:
        return {**detail, "signature": signature, "format": CLAUDE_FORMAT}
    return {**detail, "format": UNKNOWN_FORMAT}


def reasoning_delta(index: int, text: str, form: str = CLAUDE_FORMAT) -> Extras:
    """Return a delta of the reasoning detail of a streamed `thinking` block."""
    return Extras(reasoning_details=({"type": "reasoning.text", "text": text, "format": form, "index": index},))


def signature_delta(index: int, signature: str) -> Extras:
    """Return the delta with a block's signature, whose text is empty. A block may consist of a signature alone."""
    detail: JsonObject = {"type": "reasoning.text", "text": "", "signature": signature, "format": CLAUDE_FORMAT}
    return Extras(reasoning_details=({**detail, "index": index},))


def citation_extras(citations: list[JsonValue], start: int, end: int) -> Extras | None:
    """Return the extras for the citations of a text block. The block is the response's text from `start` to `end`, in
    code points."""
    annotations: list[JsonObject] = []
    others: list[JsonValue] = []
    for citation in citations:
        if not isinstance(citation, dict):
            continue
        span: JsonObject = {"start_index": start, "end_index": end}
        url = citation.get("url") or citation.get("source")
        if isinstance(url, str) and url.startswith(("https://", "http://")):
            annotations.append({"type": "url_citation", "url_citation": {**_source(citation, url), **span}})
        else:
            others.append({**citation, **span})
    if not annotations and not others:
        return None
    return Extras(annotations=tuple(annotations), message={CITATIONS: others} if others else None)


def _source(citation: JsonObject, url: str) -> JsonObject:
    source: JsonObject = {"url": url, "title": citation.get("title") or ""}
    if isinstance(content := citation.get("cited_text"), str):
        source["content"] = content
    if isinstance(index := citation.get("encrypted_index"), str):
        # The client must send this value back with the citation.
        source["encrypted_index"] = index
    return source


def other_block_extras(block: JsonObject) -> Extras:
    """Return the extras for a block that has no common form."""
    return Extras(message={BLOCKS: [block]})


def other_call_fields(block: JsonObject) -> Mapping[str, JsonValue] | None:
    """Return the fields of a tool call that have no common form: its toolset, and its caller unless the model itself
    made the call."""
    rest = {name: value for name, value in block.items() if name not in _KNOWN_CALL_FIELDS and value is not None}
    if rest.get("caller") == _CALLED_BY_MODEL:
        del rest["caller"]
    return rest or None


def other_message_fields(message: JsonObject) -> Mapping[str, JsonValue]:
    """Return the fields of a message, or of a stream event about it, that have no common form. Null fields are left
    out."""
    return {name: value for name, value in message.items() if name not in _KNOWN_MESSAGE_FIELDS and value is not None}


def other_usage_fields(usage: JsonObject) -> Mapping[str, JsonValue] | None:
    """Return the fields of `usage` that have no common form. Null fields are left out."""
    rest = {name: value for name, value in usage.items() if name not in _KNOWN_USAGE_FIELDS and value is not None}
    return rest or None
