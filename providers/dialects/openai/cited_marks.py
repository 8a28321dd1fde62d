"""Finds marks such as `[1]`, by which a text refers to one of the response's sources, and makes them citations.

Sources: "Search results" in Perplexity's documentation and xAI's "Live search", November 2026: the response lists its
sources at the top level, as `citations` (URLs) and as `search_results` (objects), numbered from 1. zai-sdk 0.2.3
`SearchResult`: Z.ai lists them as `web_search`, each with the number (`ref_1`) by which the text refers to it.
"""

import re
from collections.abc import Sequence
from typing import Final

from providers.dialects.openai.read_extras import url_citation
from providers.dialects.shared.read_logprobs import objects_in
from providers.json_types import JsonObject, JsonValue

MOST_MARKS = 4096
"""The most citations of one choice. Each citation takes a hundred times the memory of its mark."""

_MARK = re.compile(r"(?<!\[)\[(?:ref_)?([1-9]\d{0,2})\](?![(\]])")
"""A mark. `[[1]](https://...)` is not a mark but a link, which has its own URL."""

_INCOMPLETE_MARK = re.compile(r"\[{1,2}(?:r|re|ref|(?:ref_)?[1-9]\d{0,2}\]?|ref_)?\Z")
"""The end of a chunk of text that the next chunk may complete to a mark or to a link."""

_LONGEST_MARK: Final = len("[[ref_123]")

_REFERENCE = re.compile(r"ref_([1-9]\d{0,2})")

SOURCE_LISTS: Final = frozenset({"citations", "search_results", "web_search"})
"""The fields of a response that list its sources."""

Source = tuple[str, str]
"""The URL and the title of a source, both empty if the source is not a web page."""


def sources_of(answer: JsonObject) -> Sequence[Source]:
    """Return the sources that a response, or an event of its stream, lists. A source that is not a web page has an
    empty URL and title."""
    if found := objects_in(answer.get("web_search")):
        return _numbered(found)
    results = objects_in(answer.get("search_results"))
    titles = {result.get("url"): result.get("title") for result in results if isinstance(result.get("url"), str)}
    listed = answer.get("citations")
    urls: list[JsonValue] = listed if isinstance(listed, list) and listed else [*map(_url_of_result, results)]
    return [(url, _title(titles.get(url))) if _is_page(url) else ("", "") for url in map(_string, urls)]


def _numbered(results: Sequence[JsonObject]) -> Sequence[Source]:
    """Return Z.ai's results at the positions of their numbers. A result without a number has its position in the
    list."""
    by_number: dict[int, Source] = {}
    for position, result in enumerate(results, 1):
        number = _REFERENCE.fullmatch(_string(result.get("refer")))
        url = _string(result.get("link"))
        by_number.setdefault(int(number[1]) if number else position, (url, _title(result.get("title"))))
    listed = [by_number.get(number, ("", "")) for number in range(1, max(by_number) + 1)]
    return [source if _is_page(source[0]) else ("", "") for source in listed]


def _url_of_result(result: JsonObject) -> JsonValue:
    return result.get("url")


def _string(value: JsonValue) -> str:
    return value if isinstance(value, str) else ""


def _title(title: JsonValue) -> str:
    return title if isinstance(title, str) else ""


def _is_page(url: str) -> bool:
    return url.startswith(("https://", "http://"))


class MarkFinder:
    """A finder of the marks in one choice's text, which arrives in chunks."""

    __slots__ = ("_held", "_marks_left", "_position")

    def __init__(self) -> None:
        self._held = ""
        self._position = 0
        self._marks_left = MOST_MARKS

    def cite(self, chunk: str, sources: Sequence[Source], last: bool = False) -> tuple[JsonObject, ...]:
        """Return annotations for the marks that a chunk of text completes. `last` is true if the text ends with this
        chunk."""
        text = self._held + chunk
        incomplete = None if last else _INCOMPLETE_MARK.search(text, max(0, len(text) - _LONGEST_MARK))
        end = incomplete.start() if incomplete else len(text)
        cited = []
        for mark in _MARK.finditer(text):
            number = int(mark[1])
            if mark.end() > end or not self._marks_left:
                break
            url, title = sources[number - 1] if number <= len(sources) else ("", "")
            if url:
                self._marks_left -= 1
                cited.append(url_citation(url, title, self._position + mark.start(), self._position + mark.end()))
        self._held = text[end:]
        self._position += end
        return tuple(cited)
