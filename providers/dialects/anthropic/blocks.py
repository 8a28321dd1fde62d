"""The parts of a conversation as Anthropic's content blocks.

Nothing is fetched: media stay the data, the address or the file id that the client sent. Parts in the vendor's own form
(`search_result`, `document`, `container_upload`, blocks of server tools …) are sent as they came.

Sources: `anthropic` 2.12.0 type `ContentBlockParam` and what it holds; "Vision", "PDF support", "Citations" and
"Preserved thinking" pages, November 2026.
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
    RedactedThinking,
    Text,
    Thinking,
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

_IMAGES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
_PDF, _TEXTS = "application/pdf", re.compile(r"text/[a-z0-9.+-]+|application/json")
CALL_ID = re.compile(r"[a-zA-Z0-9_-]+")
_OWN = frozenset({"image", "document", "search_result", "tool_reference", "container_upload", "server_tool_use"})
_OWN_RESULT = re.compile(r"[a-z_]{1,64}_tool_(?:result|use)")
_REPEATED = re.compile(r"server_tool_use|[a-z_]{1,64}_tool_(?:result|use)|compaction")


def block_of(turn: Turn, part: Part, names: ToolNames) -> JsonObject | None:
    """Return the block of a part; None for blank text, which the vendor refuses, and for thinking that is not signed by
    it. Raises Refusal for what it has no block for."""
    match part:
        case Text(text, cache):
            return _marked({"type": "text", "text": text}, cache) if text and not text.isspace() else None
        case ToolUse():
            return _marked(call_block(part, names), part.cache)
        case ToolResult():
            return _result(turn, part, names)
        case Thinking() | RedactedThinking():
            return thinking_block(part)
        case _:
            return _media(turn, part)


def call_block(call: ToolUse, names: ToolNames) -> JsonObject:
    """Return the block of a call, without its cache marker."""
    identity, name = fit_call_id(call.id, CALL_ID), names.used(call.name)
    return {"type": "tool_use", "id": identity, "name": name, "input": call.arguments}


def text_result(call_id: str, text: str | None) -> JsonObject:
    """Return the block of a result that is a text, or nothing."""
    block: JsonObject = {"type": "tool_result", "tool_use_id": fit_call_id(call_id, CALL_ID)}
    if text is not None:
        block["content"] = text
    return block


def thinking_block(part: Part) -> JsonObject | None:
    """Return the block of thinking; `None` if it is not signed by Claude."""
    match part:
        case Thinking(text, str(signature), form) if form == CLAUDE_FORMAT:
            return {"type": "thinking", "thinking": text, "signature": signature}
        case RedactedThinking(data, form) if form == CLAUDE_FORMAT:
            return {"type": "redacted_thinking", "data": data}
        case _:
            return None


def _media(turn: Turn, part: Image | Document | Audio | Video | OtherPart) -> JsonObject:
    match part:
        case Image(media, _, cache):
            return _marked({"type": "image", "source": _image_source(turn, media)}, cache)
        case Document():
            return _document(turn, part)
        case OtherPart(kind, value) if kind in _OWN or _OWN_RESULT.fullmatch(kind):
            return value
        case OtherPart(kind):
            raise turn.no_part(kind)
        case Audio():
            raise turn.no_part("input_audio")
        case Video():
            raise turn.no_part("video_url")


def repeated_blocks(message: JsonValue) -> list[JsonObject]:
    """Return the calls and results of server tools that a client repeats with an answer, as it got them."""
    blocks = message.get(BLOCKS) if isinstance(message, dict) else None
    return [
        block
        for block in (blocks if isinstance(blocks, list) else ())
        if isinstance(block, dict) and _REPEATED.fullmatch(str(block.get("type")))
    ]


def is_lost_thinking(part: Part) -> bool:
    """Return whether a part is thinking without Claude's signature, which is lost here."""
    match part:
        case Thinking(text, signature):
            return bool(text or signature) and thinking_block(part) is None
        case RedactedThinking():
            return thinking_block(part) is None
        case _:
            return False


def is_thinking(block: JsonValue) -> bool:
    """Return whether a native block is thinking."""
    return isinstance(block, dict) and block.get("type") in ("thinking", "redacted_thinking")


def refuse_stored_media(draft: RequestBody, param: str) -> None:
    """Raise Refusal for media by an address or a file's id: Bedrock and Vertex AI fetch nothing and store no files."""
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
    if not isinstance(media, InlineData) or media.media_type not in _IMAGES:
        allowed = ", ".join(sorted(_IMAGES))
        raise turn.refusal(f"has an image that is neither an https address nor a base64 data URI of {allowed}")
    return {"type": "base64", "media_type": media.media_type, "data": media.data}


def _stored(media: InlineData | Address | UploadedFile) -> JsonObject | None:
    """Return the source of media that the vendor fetches or has; None for others."""
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
        case InlineData(kind, data) if _TEXTS.fullmatch(kind):
            # The vendor has one type of text; the text itself says what it is.
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
    """Return the result of a call; a marker on a part inside stands for one behind the whole result."""
    block = text_result(part.call_id, None)
    made = [inner for each in part.parts if (inner := block_of(turn, each, names)) is not None]
    inner_marks = [mark for inner in made if isinstance(mark := inner.get("cache_control"), dict)]
    content = [{name: value for name, value in inner.items() if name != "cache_control"} for inner in made]
    if content:
        block["content"] = as_text_or_blocks(content)
    if part.failed:
        # "content cannot be empty if `is_error` is true".
        block |= {"content": EMPTY_RESULT, **block, "is_error": True}
    return _marked(block, part.cache or (inner_marks[-1] if inner_marks else None))


def as_text_or_blocks(blocks: list[JsonObject]) -> str | list[JsonValue]:
    """Return one plain text as a string, and anything else as it is."""
    match blocks:
        case [{"type": "text", "text": str(text), **more}] if not more:
            return text
        case _:
            return [*blocks]


def _marked(block: JsonObject, cache: JsonObject | None) -> JsonObject:
    if cache:
        block["cache_control"] = cache
    return block
