"""What an answer of Anthropic's holds besides its text and the input of its calls, in the common shape.

Thinking becomes `reasoning_details` in OpenRouter's form, with signatures and redacted blocks, in the order of the
blocks. A citation with an address becomes a `url_citation` that spans the text of its block, any other is listed under
`citations` with that span. Blocks without a common form (calls and results of server tools, files of containers, types
that are not known here) are listed under `content_blocks` as the vendor sent them, in order. Further members of the
message and of its usage keep their names.

Sources: `anthropic` 2.12.0 types `ContentBlock`, `TextCitation`, `Message`, `Usage`; "Citations", "Web search" and
"Preserved thinking" pages, November 2026; vercel/ai ed857f5 recorded answers.
"""

from collections.abc import Mapping

from providers.completion import Extras
from providers.conversation import CLAUDE_FORMAT, UNKNOWN_FORMAT
from providers.json_types import JsonObject, JsonValue

BLOCKS, CITATIONS = "content_blocks", "citations"
"""The members of a message that hold blocks without a common form, and citations without an address."""

_OF_MESSAGE = frozenset({"id", "type", "role", "model", "content", "stop_reason", "stop_sequence", "usage"})
_OF_USAGE = frozenset(
    {"input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "cache_creation"}
    | {"output_tokens_details", "server_tool_use", "service_tier"}
)
_OF_CALL = frozenset({"type", "id", "name", "input"})
_DIRECT: JsonValue = {"type": "direct"}


def whole_thought(block: JsonObject, index: int) -> JsonObject:
    """Return the reasoning detail of a whole block of thinking."""
    if block.get("type") == "redacted_thinking":
        return {"type": "reasoning.encrypted", "data": block.get("data"), "format": CLAUDE_FORMAT, "index": index}
    signature = block.get("signature")
    detail: JsonObject = {"type": "reasoning.text", "text": block.get("thinking"), "index": index}
    if isinstance(signature, str) and signature:
        return {**detail, "signature": signature, "format": CLAUDE_FORMAT}
    return {**detail, "format": UNKNOWN_FORMAT}


def thought_piece(index: int, text: str, form: str = CLAUDE_FORMAT) -> Extras:
    """Return a piece of the reasoning detail of a streamed block of thinking."""
    return Extras(reasoning_details=({"type": "reasoning.text", "text": text, "format": form, "index": index},))


def signature_piece(index: int, signature: str) -> Extras:
    """Return the piece with the signature, which may be all that a block has; then its text is empty."""
    detail: JsonObject = {"type": "reasoning.text", "text": "", "signature": signature, "format": CLAUDE_FORMAT}
    return Extras(reasoning_details=({**detail, "index": index},))


def cited(citations: list[JsonValue], start: int, end: int) -> Extras | None:
    """Return the citations of a text block that is the text from `start` to `end` of the answer, in code points."""
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
        # The vendor wants it back with the citation.
        source["encrypted_index"] = index
    return source


def other_block(block: JsonObject) -> Extras:
    """Return a block that has no common form."""
    return Extras(message={BLOCKS: [block]})


def call_extra(block: JsonObject) -> Mapping[str, JsonValue] | None:
    """Return the further members of a call: who made it, where that was not the model itself, and of which toolset."""
    rest = {name: value for name, value in block.items() if name not in _OF_CALL and value is not None}
    if rest.get("caller") == _DIRECT:
        del rest["caller"]
    return rest or None


def message_members(message: JsonObject) -> Mapping[str, JsonValue]:
    """Return the members of a message, or of an event about it, that have no common form; null ones are left out."""
    return {name: value for name, value in message.items() if name not in _OF_MESSAGE and value is not None}


def usage_rest(usage: JsonObject) -> Mapping[str, JsonValue] | None:
    """Return the members of a usage that have no common form; null ones are left out."""
    rest = {name: value for name, value in usage.items() if name not in _OF_USAGE and value is not None}
    return rest or None
