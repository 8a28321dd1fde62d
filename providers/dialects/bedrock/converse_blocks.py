"""Translates the parts of Converse responses other than text and tool calls into the common shape: blocks of reasoning,
citations, images, and all fields without a common form under the service's names.

Sources: botocore 1.44.5 service model `bedrock-runtime`, shapes `ContentBlock`, `CitationsContentBlock`,
`ConverseResponse` and `TokenUsage`; recorded answers of @ai-sdk/amazon-bedrock 4.0.186, November 2026.
"""

from binascii import Error, a2b_base64, b2a_base64
from collections.abc import Iterable, Mapping

from providers.completion import Extras
from providers.conversation import CLAUDE_FORMAT, UNKNOWN_FORMAT
from providers.dialect import UpstreamRequest
from providers.dialects.bedrock.converse_models import converse_model
from providers.emulation.join_extras import known_places
from providers.json_types import JsonObject, JsonValue

_KNOWN_RESPONSE_FIELDS = frozenset({"output", "stopReason", "usage", "serviceTier", "p"})
_KNOWN_USAGE_FIELDS = frozenset(
    {"inputTokens", "outputTokens", "totalTokens", "cacheReadInputTokens", "cacheWriteInputTokens"}
    | {"cacheReadInputTokenCount", "cacheWriteInputTokenCount"}
)


def reasoning_format(sent: UpstreamRequest) -> str:
    """Return OpenRouter's name for the format of a response's reasoning."""
    target = sent.target
    return CLAUDE_FORMAT if converse_model(*target.model_names).claude else UNKNOWN_FORMAT


def reasoning_detail(form: str, index: int, text: str | None, signature: str | None) -> JsonObject:
    """Return a block of reasoning, or a delta of one, in OpenRouter's form."""
    detail: JsonObject = {"type": "reasoning.text", "format": form, "index": index}
    if text is not None:
        detail["text"] = text
    if signature is not None:
        detail["signature"] = signature
    return detail


def redacted_detail(form: str, index: int, data: str) -> JsonObject:
    """Return a block of redacted reasoning in OpenRouter's form."""
    return {"type": "reasoning.encrypted", "format": form, "index": index, "data": data}


class ResponseExtras:
    """The extras of a response, or of one block of a stream, collected block by block."""

    __slots__ = ("_annotations", "_details", "_image_positions", "_images", "_message")

    def __init__(self) -> None:
        self._image_positions: list[int] = []
        self._details: list[JsonObject] = []
        self._annotations: list[JsonObject] = []
        self._images: list[JsonObject] = []
        self._message: dict[str, JsonValue] = {}

    def add_reasoning(self, detail: JsonObject) -> None:
        """Add a block of reasoning."""
        self._details.append(detail)

    def add_citations(self, citations: Iterable[JsonValue], start: int, end: int) -> None:
        """Add the citations of a span of the text. A citation with a web address becomes an annotation. A citation
        without a web address, or with source content, is also added unchanged."""
        for citation in citations:
            if not isinstance(citation, dict):
                continue
            url = _web_address(citation)
            if url is not None:
                title = citation.get("title")
                cited: JsonObject = {"url": url, "title": title if isinstance(title, str) else url}
                if content := _source_text(citation):
                    cited["content"] = content
                span: JsonObject = {"start_index": start, "end_index": end}
                self._annotations.append({"type": "url_citation", "url_citation": {**cited, **span}})
            if url is None or citation.get("sourceContent"):
                self.append_to("citations", citation)

    def add_image(self, image: JsonObject, position: int = 0) -> None:
        """Add an image that follows `position` characters of the text. An image that failed or has no data is added
        unchanged."""
        before = len(self._images)
        match image:
            case {"format": str(form), "source": {"bytes": str(data)}} if data:
                self._images.append(_image(f"data:image/{form};base64,{data}"))
            case {"source": {"s3Location": {"uri": str(uri)}}}:
                self._images.append(_image(uri))
            case _:
                self.add_block("image", image)
        self._image_positions += [position] * (len(self._images) - before)

    def add_block(self, kind: str, value: JsonValue) -> None:
        """Add a block, or a delta of one, that has no common form. The block is added to `content_blocks`, because
        clients send whole messages back, and a message must not have arbitrary fields."""
        self.append_to("content_blocks", {kind: value})

    def append_to(self, name: str, value: JsonValue) -> None:
        """Append a value to the list in a field of the message."""
        values = self._message.setdefault(name, [])
        if isinstance(values, list):
            values.append(value)

    def whole(self, answer: Mapping[str, JsonValue] | None = None, length: int = 0) -> Extras | None:
        """Return the extras together with the given fields of the whole response; `None` if there are no extras.
        `length` is the number of characters of the response's text."""
        if not (self._details or self._annotations or self._images or self._message or answer):
            return None
        return Extras(
            tuple(self._details),
            tuple(self._annotations),
            tuple(self._images),
            message=self._message or None,
            answer=answer or None,
            image_places=known_places(self._image_positions, length),
        )


def _image(url: str) -> JsonObject:
    return {"type": "image_url", "image_url": {"url": url}}


def _web_address(citation: JsonObject) -> str | None:
    location = citation.get("location")
    web = location.get("web") if isinstance(location, dict) else None
    for url in (web.get("url") if isinstance(web, dict) else None, citation.get("source")):
        if isinstance(url, str) and url.startswith(("https://", "http://")):
            return url
    return None


def _source_text(citation: JsonObject) -> str:
    """Return the text of the cited source (botocore 1.44.5 `Citation.sourceContent`)."""
    return _texts_of(citation.get("sourceContent"))


def _texts_of(content: JsonValue) -> str:
    texts = [each.get("text") for each in content if isinstance(each, dict)] if isinstance(content, list) else []
    return "".join([text for text in texts if isinstance(text, str)])


def cited_text(block: JsonObject) -> str:
    """Return the text of a `citationsContent` block, which is a part of the response's text."""
    return _texts_of(block.get("content"))


def other_response_fields(*holders: JsonObject) -> dict[str, JsonValue]:
    """Return the fields of a response, or of stream events about it, that have no common form, under the service's
    names."""
    fields: dict[str, JsonValue] = {}
    for holder in holders:
        for name, value in holder.items():
            if name not in _KNOWN_RESPONSE_FIELDS and value not in (None, {}) and not _is_stop(name, value):
                fields[name] = value
        usage = holder.get("usage")
        for name, value in usage.items() if isinstance(usage, dict) else ():
            if name not in _KNOWN_USAGE_FIELDS and value not in (None, {}, []):
                fields[name] = value
    return fields


def _is_stop(name: str, value: JsonValue) -> bool:
    """Return whether a field holds only the stop string that the gateway requested."""
    if name != "additionalModelResponseFields" or not isinstance(value, dict):
        return False
    inner = value.get("delta", {})
    return value.keys() <= {"stop_sequence", "delta"} and isinstance(inner, dict) and inner.keys() <= {"stop_sequence"}


def joined_base64(parts: list[str]) -> str:
    """Return the base64 of data that arrived in several parts, each encoded on its own."""
    if len(parts) == 1:
        return parts[0]
    try:
        return b2a_base64(b"".join([a2b_base64(part) for part in parts]), newline=False).decode()
    except (Error, ValueError):
        return "".join(parts)
