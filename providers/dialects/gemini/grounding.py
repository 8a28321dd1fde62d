"""Sources of an answer as OpenAI's annotations: Google's grounding and citations.

The vendor counts bytes of UTF-8 over the texts of an answer without its thoughts, or within the part that it names, and
may be off by some; the text of the segment decides. OpenAI counts code points.

Sources: `google-genai` 3.4.0 types `GroundingMetadata`, `Segment`, `CitationMetadata`; pydantic-ai 2.68.0 on offsets,
November 2026.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping

from providers.json_types import JsonObject, JsonValue

MOST_ANNOTATIONS = 4096
"""Annotations of one answer; each repeats the address of its source. The vendor's own members hold them all."""

MOST_TEXT = 2**20
"""Characters of an answer that are kept for its annotations; a longer one has none."""

_SEARCHED = 2**24
"""Characters that are searched for segments that are not where their offsets say, in one answer."""

_BLOCK = 1024
_LATER_BYTES = bytes(range(0x80, 0xC0))
"""Bytes of UTF-8 that begin no character."""

_ADDRESSES = ("uri", "sourceUri")


class Spans:
    """Places of segments in one text; `parts` are the places at which its parts begin."""

    __slots__ = ("_budget", "_data", "_first_of_block", "_parts", "_text")

    def __init__(self, text: str, parts: Mapping[int, int]) -> None:
        self._text = text
        self._data = text.encode(errors="replace")
        self._parts = parts
        self._budget = _SEARCHED
        self._first_of_block = [0]
        if not text.isascii():
            for start in range(0, len(self._data), _BLOCK):
                begun = len(self._data[start : start + _BLOCK].translate(None, _LATER_BYTES))
                self._first_of_block.append(self._first_of_block[-1] + begun)

    def find(self, segment: JsonObject) -> tuple[int, int]:
        """Return the code points at which a segment begins and ends."""
        part = self._parts.get(_count(segment, "partIndex"), 0)
        before = self._bytes_before(part)
        start = self._point(before + _count(segment, "startIndex"))
        end = max(start, self._point(before + _count(segment, "endIndex")))
        wanted = segment.get("text")
        if not isinstance(wanted, str) or not wanted or self._text.startswith(wanted, start):
            return (start, start + len(wanted)) if isinstance(wanted, str) and wanted else (start, end)
        if self._budget > 0:
            near = max(0, start - 64)
            self._budget -= len(self._text)
            found = self._text.find(wanted, near)
            found = self._text.find(wanted) if found < 0 else found
            if found >= 0:
                return found, found + len(wanted)
        return start, end

    def _point(self, byte: int) -> int:
        """Return the code point that begins at a byte, or the next one."""
        byte = min(max(byte, 0), len(self._data))
        if len(self._first_of_block) == 1:
            return byte
        block, rest = divmod(byte, _BLOCK)
        start = block * _BLOCK
        return self._first_of_block[block] + len(self._data[start : start + rest].translate(None, _LATER_BYTES))

    def _bytes_before(self, point: int) -> int:
        """Return the byte at which a code point begins."""
        if len(self._first_of_block) == 1:
            return point
        block = min(bisect_right(self._first_of_block, point), len(self._first_of_block)) - 1
        skipped = point - self._first_of_block[block]
        start = block * _BLOCK
        tail = self._data[start : start + 2 * _BLOCK].decode(errors="ignore")
        return start + self._cut(start) + len(tail[:skipped].encode())

    def _cut(self, start: int) -> int:
        """Return how many bytes at a block's start belong to the character before it."""
        held = self._data[start : start + 4]
        return len(held) - len(held.lstrip(_LATER_BYTES))


def annotations_of(
    text: str, parts: Mapping[int, int], grounding: JsonValue, citations: JsonValue
) -> tuple[JsonObject, ...]:
    """Return the annotations of an answer's text, from its `groundingMetadata` and its `citationMetadata`."""
    found: list[JsonObject] = []
    spans = Spans(text, parts)
    for source, segment in (*_grounded(grounding), *_cited(citations)):
        if len(found) == MOST_ANNOTATIONS:
            break
        start, end = spans.find(segment)
        title = source.get("title")
        cited: JsonObject = {"url": source["url"], "title": title if isinstance(title, str) else ""}
        found.append({"type": "url_citation", "url_citation": {**cited, "start_index": start, "end_index": end}})
    return tuple(found)


def _grounded(raw: JsonValue) -> Iterator[tuple[JsonObject, JsonObject]]:
    """Yield each source of each segment that has an address."""
    chunks, supports = _list(raw, "groundingChunks"), _list(raw, "groundingSupports")
    sources = [_source(chunk) for chunk in chunks]
    for support in supports:
        segment = support.get("segment") if isinstance(support, dict) else None
        for index in _list(support, "groundingChunkIndices") if isinstance(segment, dict) else ():
            # An index of 0 in a list is written.
            if isinstance(index, int) and 0 <= index < len(sources) and (source := sources[index]) is not None:
                yield source, segment if isinstance(segment, dict) else {}


def _cited(raw: JsonValue) -> Iterator[tuple[JsonObject, JsonObject]]:
    for citation in _list(raw, "citations"):
        if isinstance(citation, dict) and (source := _addressed(citation)) is not None:
            yield source, {name: citation[name] for name in ("startIndex", "endIndex") if name in citation}


def _source(chunk: JsonValue) -> JsonObject | None:
    """Return address and title of a grounding chunk, whatever its kind; None without an address of the web."""
    for held in chunk.values() if isinstance(chunk, dict) else ():
        if isinstance(held, dict) and (source := _addressed(held)) is not None:
            return source
    return None


def _addressed(held: JsonObject) -> JsonObject | None:
    for name in _ADDRESSES:
        address = held.get(name)
        if isinstance(address, str) and address.startswith(("https://", "http://")):
            return {"url": address, "title": held.get("title")}
    return None


def _list(holder: JsonValue, name: str) -> list[JsonValue]:
    found = holder.get(name) if isinstance(holder, dict) else None
    return found if isinstance(found, list) else []


def _count(holder: JsonObject, name: str) -> int:
    value = holder.get(name, 0)
    return value if isinstance(value, int) and 0 <= value < 2**40 else 0
