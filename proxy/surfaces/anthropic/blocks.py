"""Converts content blocks of the Messages API to parts of OpenAI's chat shape.

A document with text becomes a text part, because few vendors accept text files; so does a search result. In turns of
the user, content that only Anthropic supports (citations, files of its store, unknown types) is noted as binding. In
turns of the model, unknown blocks without a text are left out, like blocks of server tools. Addresses of media stay in
the parts even in these cases, because the configuration's rules for addresses are checked on the parts. Parts in the
form of OpenAI's APIs do not belong to the Messages API.

Sources: `anthropic` 2.12.0 types `ContentBlockParam` and the types in it, November 2026.
"""

from collections.abc import Callable, Mapping
from typing import Final

from providers.json_types import JsonObject, JsonValue
from proxy.surfaces.anthropic.translation import Translation, kind_of
from proxy.surfaces.request.rule_kinds import Invalid, check_at, json_object, string, text

MARKER = "cache_control"

NO_BLOCKS: Final = "must be a string or a list of content blocks"

_Parts = list[JsonObject]


def content_blocks(value: JsonValue) -> list[JsonObject]:
    """Return the blocks of a content. A text is one block. Raises Invalid."""
    if isinstance(value, str):
        return [{"type": "text", "text": value}]
    if not isinstance(value, list):
        raise Invalid(NO_BLOCKS)
    return [check_at(content_block, item, index) for index, item in enumerate(value)]


def content_block(value: JsonValue) -> JsonObject:
    """Return a block. Raises Invalid for a value without the form of a block."""
    block = json_object(value)
    check_at(text, block.get("type"), "type")
    if block.get(MARKER) is not None:
        check_at(json_object, block[MARKER], MARKER)
    return block


def parts_of(draft: Translation, block: JsonObject) -> _Parts:
    """Return the parts of a block of text or media; empty for an empty text. Raises Invalid."""
    read = _READERS.get(str(block["type"]))
    if read is None:
        if block["type"] in _OPENAI_PART_HINTS:
            instead = _OPENAI_PART_HINTS[str(block["type"])]
            raise Invalid(f"is '{block['type']}', as in OpenAI's APIs; {instead}", "type")
        if block["type"] in _HOSTED_CALL_BLOCKS:
            draft.leave_out(f"messages.{block['type']}")
        else:
            draft.bind("messages", f"a block of type '{kind_of(block)}'")
        return []
    return read(draft, block)


def model_parts_of(draft: Translation, block: JsonObject) -> _Parts:
    """Return the parts of a block in a turn of the model. A block of an unknown type is part of a response that the
    client repeats. Its text is used; a block without a text is left out and reported. Raises Invalid."""
    kind = block["type"]
    if block.get("citations"):
        draft.leave_out("citations")
    if kind in _READERS or kind in _OPENAI_PART_HINTS or kind in _HOSTED_CALL_BLOCKS:
        return parts_of(draft, block)
    for name in ("text", "content"):
        if isinstance(block_text := block.get(name), str) and block_text:
            return [_marked({"type": "text", "text": block_text}, block)]
    draft.leave_out(f"messages.{kind_of(block)}")
    return []


def _text(draft: Translation, block: JsonObject) -> _Parts:
    block_text = check_at(string, block.get("text"), "text")
    return [_marked({"type": "text", "text": block_text}, block)] if block_text else []


def _image(draft: Translation, block: JsonObject) -> _Parts:
    source = check_at(json_object, block.get("source"), "source")
    match source:
        case {"type": "base64", "media_type": str(kind), "data": str(data)}:
            url = f"data:{kind};base64,{data}"
        case {"type": "url", "url": str(address)}:
            url = address
            draft.lacks_address = draft.lacks_address or not address
        case _:
            return _unknown_source(draft, "an image", source)
    return [_marked({"type": "image_url", "image_url": {"url": url}}, block)]


def _document(draft: Translation, block: JsonObject) -> _Parts:
    source = check_at(json_object, block.get("source"), "source")
    _check_citations(draft, block, "a document")
    before, title = _labels(block), block.get("title")
    named: JsonObject = {"filename": title} if isinstance(title, str) and title else {}
    match source:
        case {"type": "base64", "media_type": str(kind), "data": str(data)}:
            file: JsonObject = {"file_data": f"data:{kind};base64,{data}", **named}
        case {"type": "url", "url": str(address)}:
            file = {"file_url": address, **named}
        case {"type": "text", "data": str(data)}:
            return [_marked({"type": "text", "text": "\n\n".join([*before, data])}, block)]
        case {"type": "content", "content": inner_content}:
            inner = check_at(content_blocks, inner_content, "source", "content")
            heads: _Parts = [{"type": "text", "text": line} for line in before]
            return _with_marker([*heads, *(part for each in inner for part in parts_of(draft, each))], block)
        case _:
            return _unknown_source(draft, "a document", source)
    context: _Parts = [{"type": "text", "text": line} for line in before[bool(named) :]]
    return [*context, _marked({"type": "file", "file": file}, block)]


def _labels(block: JsonObject) -> list[str]:
    """Return the title of a document, and the context that its client gives for it."""
    return [label for name in ("title", "context") if isinstance(label := block.get(name), str) and label]


def _search_result(draft: Translation, block: JsonObject) -> _Parts:
    _check_citations(draft, block, "a search result")
    heads = [head for name in ("title", "source") if isinstance(head := block.get(name), str) and head]
    inner = check_at(content_blocks, block.get("content"), "content")
    lines = [line for each in inner if isinstance(line := each.get("text"), str)]
    return [_marked({"type": "text", "text": "\n".join([*heads, *lines])}, block)]


def _check_citations(draft: Translation, block: JsonObject, subject: str) -> None:
    citations = block.get("citations")
    if isinstance(citations, dict) and citations.get("enabled") is True:
        draft.bind("messages", f"{subject} to cite")


def _unknown_source(draft: Translation, subject: str, source: JsonObject) -> _Parts:
    kind = check_at(text, source.get("type"), "source", "type")
    if kind in ("base64", "url", "text", "content"):
        raise Invalid("lacks a field that its type requires", "source")
    draft.bind("messages", f"{subject} from the source '{kind_of(source)}'")
    return []


def _marked(part: JsonObject, block: JsonObject) -> JsonObject:
    marker = block.get(MARKER)
    return part if marker is None else {**part, MARKER: marker}


def _with_marker(parts: _Parts, block: JsonObject) -> _Parts:
    return [*parts[:-1], _marked(parts[-1], block)] if parts else parts


_AS_TEXT: Final = "a text is a block of type 'text' here"
_AS_IMAGE: Final = "an image is a block of type 'image' with a 'source' here"
_AS_FILE: Final = "a file is a block of type 'document' with a 'source' here"

_OPENAI_PART_HINTS: Final[Mapping[str, str]] = {
    "input_text": _AS_TEXT,
    "output_text": _AS_TEXT,
    "image_url": _AS_IMAGE,
    "input_image": _AS_IMAGE,
    "file": _AS_FILE,
    "input_file": _AS_FILE,
    "input_audio": "the Messages API accepts no audio",
    "video_url": "the Messages API accepts no video",
}
"""Types of parts of OpenAI's APIs, each with the form that a client must send instead: openai 3.54.0
`ChatCompletionContentPartParam`, `ResponseInputContentParam`; several vendors add `video_url` to these (November
2026)."""

_HOSTED_CALL_BLOCKS: Final = frozenset(
    {"server_tool_use", "web_search_tool_result", "web_fetch_tool_result", "code_execution_tool_result"}
    | {"bash_code_execution_tool_result", "text_editor_code_execution_tool_result", "tool_search_tool_result"}
)
"""Blocks of past calls of tools that a vendor ran, and of their results. A conversation makes sense without them,
because its text mentions the results."""

_READERS: Mapping[str, Callable[[Translation, JsonObject], _Parts]] = {
    "text": _text,
    "image": _image,
    "document": _document,
    "search_result": _search_result,
}
