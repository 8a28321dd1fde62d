"""Finds `[1]`, by which a text names one of the answer's sources, and cites the source there.

Sources: "Search results" in Perplexity's documentation and xAI's "Live search", November 2026: sources are listed at
the top of the answer, as `citations` (addresses) and as `search_results` (objects), and counted from 1. zai-sdk 0.2.3
`SearchResult`: Z.ai lists them as `web_search`, each with the number (`ref_1`) by which the text names it.
"""

import re
from collections.abc import Sequence
from typing import Final

from providers.dialects.openai.read_extras import url_citation
from providers.dialects.shared.read_logprobs import objects_in
from providers.json_types import JsonObject, JsonValue

MOST_MARKS = 4096
"""Citations of one choice at most: each takes a hundred times the memory of its mark."""

_MARK = re.compile(r"(?<!\[)\[(?:ref_)?([1-9]\d{0,2})\](?![(\]])")
"""A mark; `[[1]](https://...)` is a link that names its address itself."""

_BEGUN = re.compile(r"\[{1,2}(?:r|re|ref|(?:ref_)?[1-9]\d{0,2}\]?|ref_)?\Z")
"""The end of a piece of a stream that the next one may complete to a mark or to a link."""

_LONGEST_MARK: Final = len("[[ref_123]")

_REFERENCE = re.compile(r"ref_([1-9]\d{0,2})")

LISTS: Final = frozenset({"citations", "search_results", "web_search"})
"""The fields of an answer that list its sources."""

Source = tuple[str, str]
"""Address and title."""


def sources_of(answer: JsonObject) -> Sequence[Source]:
    """Return the sources that an answer, or an event of its stream, lists; none for those that are no web pages."""
    if found := objects_in(answer.get("web_search")):
        return _numbered(found)
    results = objects_in(answer.get("search_results"))
    titles = {result.get("url"): result.get("title") for result in results if isinstance(result.get("url"), str)}
    listed = answer.get("citations")
    addresses: list[JsonValue] = listed if isinstance(listed, list) and listed else [*map(_address, results)]
    return [(url, _words(titles.get(url))) if _is_page(url) else ("", "") for url in map(_text, addresses)]


def _numbered(results: Sequence[JsonObject]) -> Sequence[Source]:
    """Return Z.ai's results at the places of their numbers; those without one keep their own place."""
    places: dict[int, Source] = {}
    for position, result in enumerate(results, 1):
        number = _REFERENCE.fullmatch(_text(result.get("refer")))
        url = _text(result.get("link"))
        places.setdefault(int(number[1]) if number else position, (url, _words(result.get("title"))))
    listed = [places.get(number, ("", "")) for number in range(1, max(places) + 1)]
    return [source if _is_page(source[0]) else ("", "") for source in listed]


def _address(result: JsonObject) -> JsonValue:
    return result.get("url")


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else ""


def _words(title: JsonValue) -> str:
    return title if isinstance(title, str) else ""


def _is_page(url: str) -> bool:
    return url.startswith(("https://", "http://"))


class MarkFinder:
    """Finds the marks of one choice's text in the pieces of a stream."""

    __slots__ = ("_held", "_left", "_place")

    def __init__(self) -> None:
        self._held = ""
        self._place = 0
        self._left = MOST_MARKS

    def cite(self, piece: str, sources: Sequence[Source], last: bool = False) -> tuple[JsonObject, ...]:
        """Return annotations for the marks that a piece completes; the end of the text, and only it, is `last`."""
        text = self._held + piece
        begun = None if last else _BEGUN.search(text, max(0, len(text) - _LONGEST_MARK))
        end = begun.start() if begun else len(text)
        cited = []
        for mark in _MARK.finditer(text):
            number = int(mark[1])
            if mark.end() > end or not self._left:
                break
            url, title = sources[number - 1] if number <= len(sources) else ("", "")
            if url:
                self._left -= 1
                cited.append(url_citation(url, title, self._place + mark.start(), self._place + mark.end()))
        self._held = text[end:]
        self._place += end
        return tuple(cited)
