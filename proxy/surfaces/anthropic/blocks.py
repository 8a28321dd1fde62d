"""Content blocks of the Messages API as parts of OpenAI's chat shape.

A document of text becomes a part of text, since few vendors take text files; a search result likewise. What only
Anthropic has (citations, files of its store, types that are not known here) is noted as binding in turns of the user;
in turns of the model unknown blocks without a text are left out, as those of server tools are. Addresses of media stay
in the parts even then, since the configuration's rules for them are checked there. Parts in the form of OpenAI's APIs
do not belong to the Messages API.

Sources: `anthropic` 2.12.0 types `ContentBlockParam` and what it holds, November 2026.
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
    """Return the blocks of a content: a text is one block. Raises Invalid."""
    if isinstance(value, str):
        return [{"type": "text", "text": value}]
    if not isinstance(value, list):
        raise Invalid(NO_BLOCKS)
    return [check_at(content_block, item, index) for index, item in enumerate(value)]


def content_block(value: JsonValue) -> JsonObject:
    """Return a block. Raises Invalid for a value without the form of one."""
    block = json_object(value)
    check_at(text, block.get("type"), "type")
    if block.get(MARKER) is not None:
        check_at(json_object, block[MARKER], MARKER)
    return block


def parts_of(made: Translation, block: JsonObject) -> _Parts:
    """Return the parts of a block of text or media; none for an empty text. Raises Invalid."""
    read = _READERS.get(str(block["type"]))
    if read is None:
        if block["type"] in _OPENAIS:
            instead = _OPENAIS[str(block["type"])]
            raise Invalid(f"is '{block['type']}', as in OpenAI's APIs; {instead}", "type")
        if block["type"] in _FOUND:
            made.leave_out(f"messages.{block['type']}")
        else:
            made.bind("messages", f"a block of type '{kind_of(block)}'")
        return []
    return read(made, block)


def model_parts_of(made: Translation, block: JsonObject) -> _Parts:
    """Return the parts of a block in a turn of the model. A block of an unknown type is part of a response that the
    client repeats: its text stays, and one without a text is left out and named. Raises Invalid."""
    kind = block["type"]
    if block.get("citations"):
        made.leave_out("citations")
    if kind in _READERS or kind in _OPENAIS or kind in _FOUND:
        return parts_of(made, block)
    for name in ("text", "content"):
        if isinstance(said := block.get(name), str) and said:
            return [_marked({"type": "text", "text": said}, block)]
    made.leave_out(f"messages.{kind_of(block)}")
    return []


def _text(made: Translation, block: JsonObject) -> _Parts:
    said = check_at(string, block.get("text"), "text")
    return [_marked({"type": "text", "text": said}, block)] if said else []


def _image(made: Translation, block: JsonObject) -> _Parts:
    source = check_at(json_object, block.get("source"), "source")
    match source:
        case {"type": "base64", "media_type": str(kind), "data": str(data)}:
            url = f"data:{kind};base64,{data}"
        case {"type": "url", "url": str(address)}:
            url = address
            made.lacks_address = made.lacks_address or not address
        case _:
            return _unknown_source(made, "an image", source)
    return [_marked({"type": "image_url", "image_url": {"url": url}}, block)]


def _document(made: Translation, block: JsonObject) -> _Parts:
    source = check_at(json_object, block.get("source"), "source")
    _check_citations(made, block, "a document")
    before, title = _labels(block), block.get("title")
    named: JsonObject = {"filename": title} if isinstance(title, str) and title else {}
    match source:
        case {"type": "base64", "media_type": str(kind), "data": str(data)}:
            file: JsonObject = {"file_data": f"data:{kind};base64,{data}", **named}
        case {"type": "url", "url": str(address)}:
            file = {"file_url": address, **named}
        case {"type": "text", "data": str(data)}:
            return [_marked({"type": "text", "text": "\n\n".join([*before, data])}, block)]
        case {"type": "content", "content": held}:
            inner = check_at(content_blocks, held, "source", "content")
            heads: _Parts = [{"type": "text", "text": line} for line in before]
            return _with_marker([*heads, *(part for each in inner for part in parts_of(made, each))], block)
        case _:
            return _unknown_source(made, "a document", source)
    context: _Parts = [{"type": "text", "text": line} for line in before[bool(named) :]]
    return [*context, _marked({"type": "file", "file": file}, block)]


def _labels(block: JsonObject) -> list[str]:
    """Return the title of a document and what its client says about it."""
    return [label for name in ("title", "context") if isinstance(label := block.get(name), str) and label]


def _search_result(made: Translation, block: JsonObject) -> _Parts:
    _check_citations(made, block, "a search result")
    heads = [head for name in ("title", "source") if isinstance(head := block.get(name), str) and head]
    inner = check_at(content_blocks, block.get("content"), "content")
    lines = [line for each in inner if isinstance(line := each.get("text"), str)]
    return [_marked({"type": "text", "text": "\n".join([*heads, *lines])}, block)]


def _check_citations(made: Translation, block: JsonObject, what: str) -> None:
    citations = block.get("citations")
    if isinstance(citations, dict) and citations.get("enabled") is True:
        made.bind("messages", f"{what} to cite")


def _unknown_source(made: Translation, what: str, source: JsonObject) -> _Parts:
    kind = check_at(text, source.get("type"), "source", "type")
    if kind in ("base64", "url", "text", "content"):
        raise Invalid("lacks what its type promises", "source")
    made.bind("messages", f"{what} from the source '{kind_of(source)}'")
    return []


def _marked(part: JsonObject, block: JsonObject) -> JsonObject:
    marker = block.get(MARKER)
    return part if marker is None else {**part, MARKER: marker}


def _with_marker(parts: _Parts, block: JsonObject) -> _Parts:
    return [*parts[:-1], _marked(parts[-1], block)] if parts else parts


_AS_TEXT: Final = "a text is a block of type 'text' here"
_AS_IMAGE: Final = "an image is a block of type 'image' with a 'source' here"
_AS_FILE: Final = "a file is a block of type 'document' with a 'source' here"

_OPENAIS: Final[Mapping[str, str]] = {
    "input_text": _AS_TEXT,
    "output_text": _AS_TEXT,
    "image_url": _AS_IMAGE,
    "input_image": _AS_IMAGE,
    "file": _AS_FILE,
    "input_file": _AS_FILE,
    "input_audio": "the Messages API takes no sound",
    "video_url": "the Messages API takes no video",
}
"""Types of parts of OpenAI's APIs, and what to send here: openai 3.54.0 `ChatCompletionContentPartParam`,
`ResponseInputContentParam`; `video_url` is what several vendors add to these (November 2026)."""

_FOUND: Final = frozenset(
    {"server_tool_use", "web_search_tool_result", "web_fetch_tool_result", "code_execution_tool_result"}
    | {"bash_code_execution_tool_result", "text_editor_code_execution_tool_result", "tool_search_tool_result"}
)
"""Blocks of past calls of tools that a vendor ran, and of their results. A conversation makes sense without them, since
its text mentions the results."""

_READERS: Mapping[str, Callable[[Translation, JsonObject], _Parts]] = {
    "text": _text,
    "image": _image,
    "document": _document,
    "search_result": _search_result,
}
