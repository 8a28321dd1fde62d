"""Translates the sources of a response, Google's grounding and citations, into OpenAI's annotations.

The vendor's offsets count UTF-8 bytes, over all texts of a response except its thoughts or, if a segment names a part,
within that part. These offsets may be slightly wrong, so the text of the segment decides. OpenAI's offsets count code
points.

Sources: `google-genai` 3.4.0 types `GroundingMetadata`, `Segment`, `CitationMetadata`; pydantic-ai 2.68.0 for wrong
offsets, November 2026.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping

from providers.json_types import JsonObject, JsonValue

MAX_ANNOTATIONS = 4096
"""The maximum number of annotations of one response. The number is limited because each annotation repeats the address
of its source. The vendor's own fields hold all of them."""

MAX_ANNOTATED_TEXT = 2**20
"""The maximum number of characters of a response's text that are stored for its annotations. A response with a longer
text has no annotations."""

_MAX_SEARCHED = 2**24
"""The maximum number of characters that are searched in one response for segments whose offsets are wrong."""

_BLOCK_BYTES = 1024
_LATER_BYTES = bytes(range(0x80, 0xC0))
"""The UTF-8 bytes that cannot be the first byte of a character."""

_URL_KEYS = ("uri", "sourceUri")


class SegmentFinder:
    """Finds segments in one text. `parts` maps the number of each part to its offset in the text."""

    __slots__ = ("_budget", "_data", "_first_of_block", "_parts", "_text")

    def __init__(self, text: str, parts: Mapping[int, int]) -> None:
        self._text = text
        self._data = text.encode(errors="replace")
        self._parts = parts
        self._budget = _MAX_SEARCHED
        self._first_of_block = [0]
        if not text.isascii():
            for start in range(0, len(self._data), _BLOCK_BYTES):
                characters = len(self._data[start : start + _BLOCK_BYTES].translate(None, _LATER_BYTES))
                self._first_of_block.append(self._first_of_block[-1] + characters)

    def find(self, segment: JsonObject) -> tuple[int, int]:
        """Return the positions, in code points, at which a segment begins and ends."""
        part = self._parts.get(_count(segment, "partIndex"), 0)
        before = self._bytes_before(part)
        start = self._point(before + _count(segment, "startIndex"))
        end = max(start, self._point(before + _count(segment, "endIndex")))
        text = segment.get("text")
        if not isinstance(text, str) or not text or self._text.startswith(text, start):
            return (start, start + len(text)) if isinstance(text, str) and text else (start, end)
        if self._budget > 0:
            search_start = max(0, start - 64)
            self._budget -= len(self._text)
            found = self._text.find(text, search_start)
            found = self._text.find(text) if found < 0 else found
            if found >= 0:
                return found, found + len(text)
        return start, end

    def _point(self, byte: int) -> int:
        """Return the position of the code point that begins at a byte offset, or of the next code point if the offset
        is within one."""
        byte = min(max(byte, 0), len(self._data))
        if len(self._first_of_block) == 1:
            return byte
        block, rest = divmod(byte, _BLOCK_BYTES)
        start = block * _BLOCK_BYTES
        return self._first_of_block[block] + len(self._data[start : start + rest].translate(None, _LATER_BYTES))

    def _bytes_before(self, point: int) -> int:
        """Return the byte offset at which a code point begins."""
        if len(self._first_of_block) == 1:
            return point
        block = min(bisect_right(self._first_of_block, point), len(self._first_of_block)) - 1
        skipped = point - self._first_of_block[block]
        start = block * _BLOCK_BYTES
        tail = self._data[start : start + 2 * _BLOCK_BYTES].decode(errors="ignore")
        return start + self._split_bytes(start) + len(tail[:skipped].encode())

    def _split_bytes(self, start: int) -> int:
        """Return how many bytes at a block's start belong to the character before it."""
        data = self._data[start : start + 4]
        return len(data) - len(data.lstrip(_LATER_BYTES))


def annotations_of(
    text: str, parts: Mapping[int, int], grounding: JsonValue, citations: JsonValue
) -> tuple[JsonObject, ...]:
    """Return the annotations of a response's text, made from the response's `groundingMetadata` and
    `citationMetadata`."""
    annotations: list[JsonObject] = []
    finder = SegmentFinder(text, parts)
    for source, segment in (*_grounded(grounding), *_cited(citations)):
        if len(annotations) == MAX_ANNOTATIONS:
            break
        start, end = finder.find(segment)
        title = source.get("title")
        cited: JsonObject = {"url": source["url"], "title": title if isinstance(title, str) else ""}
        annotations.append({"type": "url_citation", "url_citation": {**cited, "start_index": start, "end_index": end}})
    return tuple(annotations)


def _grounded(raw: JsonValue) -> Iterator[tuple[JsonObject, JsonObject]]:
    """Yield each source that has a web address, with each segment that it supports."""
    chunks, supports = _list(raw, "groundingChunks"), _list(raw, "groundingSupports")
    sources = [_source(chunk) for chunk in chunks]
    for support in supports:
        segment = support.get("segment") if isinstance(support, dict) else None
        for index in _list(support, "groundingChunkIndices") if isinstance(segment, dict) else ():
            # The vendor leaves out a field that is 0, but not a 0 in a list.
            if isinstance(index, int) and 0 <= index < len(sources) and (source := sources[index]) is not None:
                yield source, segment if isinstance(segment, dict) else {}


def _cited(raw: JsonValue) -> Iterator[tuple[JsonObject, JsonObject]]:
    for citation in _list(raw, "citations"):
        if isinstance(citation, dict) and (source := _with_address(citation)) is not None:
            yield source, {name: citation[name] for name in ("startIndex", "endIndex") if name in citation}


def _source(chunk: JsonValue) -> JsonObject | None:
    """Return the address and the title of a grounding chunk of any kind; `None` if the chunk has no web address."""
    for value in chunk.values() if isinstance(chunk, dict) else ():
        if isinstance(value, dict) and (source := _with_address(value)) is not None:
            return source
    return None


def _with_address(fields: JsonObject) -> JsonObject | None:
    for name in _URL_KEYS:
        address = fields.get(name)
        if isinstance(address, str) and address.startswith(("https://", "http://")):
            return {"url": address, "title": fields.get("title")}
    return None


def _list(holder: JsonValue, name: str) -> list[JsonValue]:
    found = holder.get(name) if isinstance(holder, dict) else None
    return found if isinstance(found, list) else []


def _count(holder: JsonObject, name: str) -> int:
    value = holder.get(name, 0)
    return value if isinstance(value, int) and 0 <= value < 2**40 else 0
