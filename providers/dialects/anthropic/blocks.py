"""Content blocks of Anthropic's Messages API, made from the parts of a conversation.

Nothing is fetched: media are sent as the data, the address or the file id that the client gave. Parts in the vendor's
own form (`search_result`, `document`, `container_upload`, blocks of server tools …) are sent unchanged.

Sources: `anthropic` 2.12.0 type `ContentBlockParam` and its parts; "Vision", "PDF support", "Citations" and "Preserved
thinking" pages, November 2026.
"""

import binascii
import re
from base64 import b64decode

from providers.conversation import (
    CLAUDE_FORMAT,
    Address,
    Audio,
    Document,
    Image,
    InlineData,
    OtherPart,
    Part,
    Reasoning,
    RedactedReasoning,
    Text,
    ToolResult,
    ToolUse,
    Turn,
    UploadedFile,
    Video,
)
from providers.dialects.anthropic.answer_parts import BLOCKS
from providers.dialects.anthropic.tools import ToolNames
from providers.dialects.shared.prompt import EMPTY_RESULT
from providers.dialects.shared.request_body import RequestBody
from providers.dialects.shared.tool_names import fit_call_id
from providers.failure import Refusal
from providers.json_types import JsonObject, JsonValue

_IMAGE_TYPES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
_PDF, _TEXT_TYPES = "application/pdf", re.compile(r"text/[a-z0-9.+-]+|application/json")
CALL_ID = re.compile(r"[a-zA-Z0-9_-]+")
_NATIVE_KINDS = frozenset(
    {"image", "document", "search_result", "tool_reference", "container_upload", "server_tool_use"}
)
_NATIVE_RESULT = re.compile(r"[a-z_]{1,64}_tool_(?:result|use)")
_SERVER_TOOL_BLOCK = re.compile(r"server_tool_use|[a-z_]{1,64}_tool_(?:result|use)|compaction")


def block_of(turn: Turn, part: Part, names: ToolNames) -> JsonObject | None:
    """Return the content block of a part.

    Return `None` for blank text, which the vendor refuses, and for reasoning without Claude's signature. Raises Refusal
    if the vendor has no block for the part.
    """
    match part:
        case Text(text, cache):
            return _marked({"type": "text", "text": text}, cache) if text and not text.isspace() else None
        case ToolUse():
            return _marked(call_block(part, names), part.cache)
        case ToolResult():
            return _result(turn, part, names)
        case Reasoning() | RedactedReasoning():
            return thinking_block(part)
        case _:
            return _media(turn, part)


def call_block(call: ToolUse, names: ToolNames) -> JsonObject:
    """Return the block of a tool call, without its cache marker."""
    identity, name = fit_call_id(call.id, CALL_ID), names.used(call.name)
    return {"type": "tool_use", "id": identity, "name": name, "input": call.arguments}


def text_result(call_id: str, text: str | None) -> JsonObject:
    """Return the block of a tool result whose content is a text or empty."""
    block: JsonObject = {"type": "tool_result", "tool_use_id": fit_call_id(call_id, CALL_ID)}
    if text is not None:
        block["content"] = text
    return block


def thinking_block(part: Part) -> JsonObject | None:
    """Return the `thinking` block of a part, or `None` if Claude has not signed it."""
    match part:
        case Reasoning(text, str(signature), form) if form == CLAUDE_FORMAT:
            return {"type": "thinking", "thinking": text, "signature": signature}
        case RedactedReasoning(data, form) if form == CLAUDE_FORMAT:
            return {"type": "redacted_thinking", "data": data}
        case _:
            return None


def _media(turn: Turn, part: Image | Document | Audio | Video | OtherPart) -> JsonObject:
    match part:
        case Image(media, _, cache):
            return _marked({"type": "image", "source": _image_source(turn, media)}, cache)
        case Document():
            return _document(turn, part)
        case OtherPart(kind, value) if kind in _NATIVE_KINDS or _NATIVE_RESULT.fullmatch(kind):
            return value
        case OtherPart(kind):
            raise turn.no_part(kind)
        case Audio():
            raise turn.no_part("input_audio")
        case Video():
            raise turn.no_part("video_url")


def repeated_blocks(message: JsonValue) -> list[JsonObject]:
    """Return the blocks of server tools that the client sends back in an assistant message, unchanged."""
    blocks = message.get(BLOCKS) if isinstance(message, dict) else None
    return [
        block
        for block in (blocks if isinstance(blocks, list) else ())
        if isinstance(block, dict) and _SERVER_TOOL_BLOCK.fullmatch(str(block.get("type")))
    ]


def is_lost_thinking(part: Part) -> bool:
    """Return whether a part is reasoning that is left out because it lacks Claude's signature."""
    match part:
        case Reasoning(text, signature):
            return bool(text or signature) and thinking_block(part) is None
        case RedactedReasoning():
            return thinking_block(part) is None
        case _:
            return False


def is_thinking(block: JsonValue) -> bool:
    """Return whether a content block is a `thinking` or `redacted_thinking` block."""
    return isinstance(block, dict) and block.get("type") in ("thinking", "redacted_thinking")


def refuse_stored_media(draft: RequestBody, param: str) -> None:
    """Raise Refusal for media given by address or file id: Bedrock and Vertex AI fetch no media and store no files."""
    turns, name = draft.body["messages"], draft.target.name
    for turn in turns if isinstance(turns, list) else ():
        content = turn.get("content") if isinstance(turn, dict) else None
        if isinstance(content, list) and any(map(_is_stored, content)):
            raise Refusal(param, f"'{param}' may hold images and documents for {name} only as base64 data URIs.")


def _is_stored(block: JsonValue) -> bool:
    match block:
        case {"type": "tool_result", "content": list(blocks)}:
            return any(_is_source(inner) for inner in blocks)
        case _:
            return _is_source(block)


def _is_source(block: JsonValue) -> bool:
    match block:
        case {"source": {"type": "url" | "file"}} | {"type": "container_upload"}:
            return True
        case _:
            return False


def _image_source(turn: Turn, media: InlineData | Address | UploadedFile) -> JsonObject:
    source = _stored(media)
    if source is not None:
        return source
    if not isinstance(media, InlineData) or media.media_type not in _IMAGE_TYPES:
        allowed = ", ".join(sorted(_IMAGE_TYPES))
        raise turn.refusal(f"has an image that is neither an https address nor a base64 data URI of {allowed}")
    return {"type": "base64", "media_type": media.media_type, "data": media.data}


def _stored(media: InlineData | Address | UploadedFile) -> JsonObject | None:
    """Return the source of media that the vendor fetches from an address or has stored; `None` for other media."""
    match media:
        case UploadedFile(identity):
            return {"type": "file", "file_id": identity}
        case Address(url) if url[:8].lower() == "https://":
            return {"type": "url", "url": url}
        case _:
            return None


def _document(turn: Turn, part: Document) -> JsonObject:
    block: JsonObject = {"type": "document", "source": _document_source(turn, part.media)}
    if part.name:
        block["title"] = part.name
    if part.context:
        block["context"] = part.context
    if part.citations:
        block["citations"] = {"enabled": True}
    return _marked(block, part.cache)


def _document_source(turn: Turn, media: InlineData | Address | UploadedFile) -> JsonObject:
    match media:
        case InlineData(kind, data) if kind == _PDF:
            return {"type": "base64", "media_type": kind, "data": data}
        case InlineData(kind, data) if _TEXT_TYPES.fullmatch(kind):
            # The vendor accepts no other media type for text.
            return {"type": "text", "media_type": "text/plain", "data": _decoded(turn, data)}
    source = _stored(media)
    if source is None:
        raise turn.refusal(
            "has a file that is neither a PDF nor a text, as an https address, a data URI or a file's id"
        )
    return source


def _decoded(turn: Turn, data: str) -> str:
    try:
        return b64decode(data, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        raise turn.refusal("has a text file whose data is not UTF-8 in base64", "invalid_value") from None


def _result(turn: Turn, part: ToolResult, names: ToolNames) -> JsonObject:
    """Return the block of a tool result. The last cache marker inside the result marks the whole result."""
    block = text_result(part.call_id, None)
    blocks = [inner for each in part.parts if (inner := block_of(turn, each, names)) is not None]
    inner_marks = [mark for inner in blocks if isinstance(mark := inner.get("cache_control"), dict)]
    content = [{name: value for name, value in inner.items() if name != "cache_control"} for inner in blocks]
    if content:
        block["content"] = as_text_or_blocks(content)
    if part.failed:
        # "content cannot be empty if `is_error` is true".
        block |= {"content": EMPTY_RESULT, **block, "is_error": True}
    return _marked(block, part.cache or (inner_marks[-1] if inner_marks else None))


def as_text_or_blocks(blocks: list[JsonObject]) -> str | list[JsonValue]:
    """Return a single text block without other fields as a string, and any other blocks as a list."""
    match blocks:
        case [{"type": "text", "text": str(text), **more}] if not more:
            return text
        case _:
            return [*blocks]


def _marked(block: JsonObject, cache: JsonObject | None) -> JsonObject:
    if cache:
        block["cache_control"] = cache
    return block
