"""Cohere's citations as OpenAI's annotations.

A citation spans characters of one item of the content. Sources that have a web address become annotations; a citation
with another source, or of thinking, is passed on as it came.

Sources: `cohere` 7.3.1 types `Citation`, `DocumentSource`, `ToolSource`; recorded answers of @ai-sdk/cohere, November
2026.
"""

from collections.abc import Iterable, Mapping

from providers.completion import Extras
from providers.json_types import JsonObject, JsonValue


def cited(citations: Iterable[JsonValue], starts: Mapping[int, int]) -> tuple[list[JsonObject], list[JsonValue]]:
    """Return the annotations, and the citations to pass on; `starts` has the offset of each text item of the content in
    the whole text."""
    annotations: list[JsonObject] = []
    passed: list[JsonValue] = []
    for citation in citations:
        if not isinstance(citation, dict):
            continue
        sources = citation.get("sources")
        found = [_web_page(source) for source in sources] if isinstance(sources, list) else []
        span = _span(citation, starts)
        if span is not None:
            start, end = span
            annotations += [
                {"type": "url_citation", "url_citation": {**page, "start_index": start, "end_index": end}}
                for page in found
                if page is not None
            ]
        if span is None or not found or None in found:
            passed.append(citation)
    return annotations, passed


def citation_extras(citations: JsonValue, starts: Mapping[int, int]) -> Extras | None:
    """Return the extras of one citation or a list of them; None where there are none."""
    annotations, passed = cited(citations if isinstance(citations, list) else [citations], starts)
    if not annotations and not passed:
        return None
    return Extras(annotations=tuple(annotations), message={"citations": passed} if passed else None)


def _span(citation: JsonObject, starts: Mapping[int, int]) -> tuple[int, int] | None:
    """Return the span in the whole text; None where the citation is not of the text."""
    start, end, kind = citation.get("start"), citation.get("end"), citation.get("type")
    if not isinstance(start, int) or not isinstance(end, int) or kind not in (None, "TEXT_CONTENT"):
        return None
    item = citation.get("content_index")
    offset = starts.get(item, 0) if isinstance(item, int) else min(starts.values(), default=0)
    return offset + start, offset + end


def _web_page(source: JsonValue) -> JsonObject | None:
    """Return address and title of a source; None where it has no web address."""
    held = (source.get("document") or source.get("tool_output")) if isinstance(source, dict) else None
    if not isinstance(held, dict):
        return None
    url, title = held.get("url"), held.get("title")
    if not isinstance(url, str) or not url.startswith(("https://", "http://")):
        return None
    return {"url": url, "title": title if isinstance(title, str) else url}
