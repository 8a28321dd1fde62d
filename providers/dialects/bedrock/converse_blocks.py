"""What an answer of Bedrock's Converse holds besides text and calls, in the common shape: blocks of thinking,
citations, images, and under the service's names everything that has no common form.

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

_KNOWN_OF_ANSWER = frozenset({"output", "stopReason", "usage", "serviceTier", "p"})
_KNOWN_OF_USAGE = frozenset(
    {"inputTokens", "outputTokens", "totalTokens", "cacheReadInputTokens", "cacheWriteInputTokens"}
    | {"cacheReadInputTokenCount", "cacheWriteInputTokenCount"}
)


def thinking_format(sent: UpstreamRequest) -> str:
    """Return OpenRouter's name for whose thinking an answer holds."""
    target = sent.target
    return CLAUDE_FORMAT if converse_model(*target.model_names).claude else UNKNOWN_FORMAT


def thought_detail(form: str, index: int, text: str | None, signature: str | None) -> JsonObject:
    """Return a block of thinking, or a piece of one, in OpenRouter's form."""
    detail: JsonObject = {"type": "reasoning.text", "format": form, "index": index}
    if text is not None:
        detail["text"] = text
    if signature is not None:
        detail["signature"] = signature
    return detail


def redacted_detail(form: str, index: int, data: str) -> JsonObject:
    """Return a block of redacted thinking in OpenRouter's form."""
    return {"type": "reasoning.encrypted", "format": form, "index": index, "data": data}


class AnswerExtras:
    """Collects the extras of an answer, or of one block of a stream."""

    __slots__ = ("_annotations", "_details", "_images", "_message", "_places")

    def __init__(self) -> None:
        self._places: list[int] = []
        self._details: list[JsonObject] = []
        self._annotations: list[JsonObject] = []
        self._images: list[JsonObject] = []
        self._message: dict[str, JsonValue] = {}

    def think(self, detail: JsonObject) -> None:
        """Add a block of thinking."""
        self._details.append(detail)

    def cite(self, citations: Iterable[JsonValue], start: int, end: int) -> None:
        """Add the citations of a span of the text: as annotations where they have a web address, and as they came
        where they hold more than that."""
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
                self.keep("citations", citation)

    def show(self, image: JsonObject, place: int = 0) -> None:
        """Add an image that follows `place` characters of the text; one that failed or has no data is passed on
        unchanged."""
        shown = len(self._images)
        match image:
            case {"format": str(form), "source": {"bytes": str(data)}} if data:
                self._images.append(_image(f"data:image/{form};base64,{data}"))
            case {"source": {"s3Location": {"uri": str(uri)}}}:
                self._images.append(_image(uri))
            case _:
                self.pass_on("image", image)
        self._places += [place] * (len(self._images) - shown)

    def pass_on(self, kind: str, value: JsonValue) -> None:
        """Add a block that has no common form, or a piece of one, as it came: clients send messages back whole, so
        that they must not hold members of any name."""
        self.keep("content_blocks", {kind: value})

    def keep(self, name: str, value: JsonValue) -> None:
        """Add a value to the list in a member of the message."""
        held = self._message.setdefault(name, [])
        if isinstance(held, list):
            held.append(value)

    def whole(self, answer: Mapping[str, JsonValue] | None = None, length: int = 0) -> Extras | None:
        """Return the extras, with fields of the whole response, whose text has `length` characters; `None` if there are
        none."""
        if not (self._details or self._annotations or self._images or self._message or answer):
            return None
        return Extras(
            tuple(self._details),
            tuple(self._annotations),
            tuple(self._images),
            message=self._message or None,
            answer=answer or None,
            image_places=known_places(self._places, length),
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
    """Return the text of the source that a citation cites (botocore 1.44.5 `Citation.sourceContent`)."""
    return _texts_of(citation.get("sourceContent"))


def _texts_of(content: JsonValue) -> str:
    pieces = [each.get("text") for each in content if isinstance(each, dict)] if isinstance(content, list) else []
    return "".join([piece for piece in pieces if isinstance(piece, str)])


def cited_text(block: JsonObject) -> str:
    """Return the text of a block of `citationsContent`, which is a part of the answer's text."""
    return _texts_of(block.get("content"))


def own_members(*holders: JsonObject) -> dict[str, JsonValue]:
    """Return what answers and events say of the whole answer that has no common form, under the service's names."""
    members: dict[str, JsonValue] = {}
    for holder in holders:
        for name, value in holder.items():
            if name not in _KNOWN_OF_ANSWER and value not in (None, {}) and not _is_stop(name, value):
                members[name] = value
        usage = holder.get("usage")
        for name, value in usage.items() if isinstance(usage, dict) else ():
            if name not in _KNOWN_OF_USAGE and value not in (None, {}, []):
                members[name] = value
    return members


def _is_stop(name: str, value: JsonValue) -> bool:
    """Return whether a member holds no more than the stop string that the gateway has asked for."""
    if name != "additionalModelResponseFields" or not isinstance(value, dict):
        return False
    inner = value.get("delta", {})
    return value.keys() <= {"stop_sequence", "delta"} and isinstance(inner, dict) and inner.keys() <= {"stop_sequence"}


def joined_base64(pieces: list[str]) -> str:
    """Return the base64 of data that came in pieces, each in base64 of its own."""
    if len(pieces) == 1:
        return pieces[0]
    try:
        return b2a_base64(b"".join([a2b_base64(piece) for piece in pieces]), newline=False).decode()
    except (Error, ValueError):
        return "".join(pieces)
