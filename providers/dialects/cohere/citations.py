"""Translates Cohere's citations into OpenAI's annotations.

A citation spans characters of one content item. Its sources that have a web address become annotations. A citation that
has another source, or that cites reasoning, is returned unchanged.

Sources: `cohere` 7.3.1 types `Citation`, `DocumentSource`, `ToolSource`; recorded answers of @ai-sdk/cohere, November
2026.
"""

from collections.abc import Iterable, Mapping

from providers.completion import Extras
from providers.json_types import JsonObject, JsonValue


def split_citations(
    citations: Iterable[JsonValue], starts: Mapping[int, int]
) -> tuple[list[JsonObject], list[JsonValue]]:
    """Return the annotations, and the citations that do not become annotations. `starts` maps the index of each text
    item to its offset in the whole text."""
    annotations: list[JsonObject] = []
    unchanged: list[JsonValue] = []
    for citation in citations:
        if not isinstance(citation, dict):
            continue
        sources = citation.get("sources")
        pages = [_web_page(source) for source in sources] if isinstance(sources, list) else []
        span = _span(citation, starts)
        if span is not None:
            start, end = span
            annotations += [
                {"type": "url_citation", "url_citation": {**page, "start_index": start, "end_index": end}}
                for page in pages
                if page is not None
            ]
        if span is None or not pages or None in pages:
            unchanged.append(citation)
    return annotations, unchanged


def citation_extras(citations: JsonValue, starts: Mapping[int, int]) -> Extras | None:
    """Return the extras of one citation or a list of citations; `None` if there are no citations."""
    annotations, unchanged = split_citations(citations if isinstance(citations, list) else [citations], starts)
    if not annotations and not unchanged:
        return None
    return Extras(annotations=tuple(annotations), message={"citations": unchanged} if unchanged else None)


def _span(citation: JsonObject, starts: Mapping[int, int]) -> tuple[int, int] | None:
    """Return the span of a citation in the whole text; `None` if the citation is not of the text."""
    start, end, kind = citation.get("start"), citation.get("end"), citation.get("type")
    if not isinstance(start, int) or not isinstance(end, int) or kind not in (None, "TEXT_CONTENT"):
        return None
    item = citation.get("content_index")
    offset = starts.get(item, 0) if isinstance(item, int) else min(starts.values(), default=0)
    return offset + start, offset + end


def _web_page(source: JsonValue) -> JsonObject | None:
    """Return the address and the title of a source; `None` if it has no web address."""
    document = (source.get("document") or source.get("tool_output")) if isinstance(source, dict) else None
    if not isinstance(document, dict):
        return None
    url, title = document.get("url"), document.get("title")
    if not isinstance(url, str) or not url.startswith(("https://", "http://")):
        return None
    return {"url": url, "title": title if isinstance(title, str) else url}
