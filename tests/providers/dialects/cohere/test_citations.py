"""Citations as annotations."""

from providers.completion import Extras
from providers.dialects.cohere.citations import citation_extras, split_citations
from providers.json_types import JsonObject, JsonValue
from tests.support.looped import looped

PAGE: JsonObject = {"type": "tool", "id": "t:0", "tool_output": {"url": "https://example.com", "title": "A page"}}
FILE: JsonObject = {"type": "document", "id": "d:0", "document": {"text": "a"}}


def citation(*sources: JsonObject, **more: JsonValue) -> JsonObject:
    return {"start": 1, "end": 3, "text": "bc", "sources": [*sources], **more}


def annotation(start: int, end: int) -> JsonObject:
    page: JsonObject = {"url": "https://example.com", "title": "A page"}
    return {"type": "url_citation", "url_citation": {**page, "start_index": start, "end_index": end}}


@looped(
    ("given", "span"),
    [
        (citation(PAGE), (6, 8)),
        (citation(PAGE, content_index=3), (11, 13)),
        (citation(PAGE, type="TEXT_CONTENT", content_index=1), (6, 8)),
    ],
)
def test_a_span_is_that_of_the_whole_text(given: JsonObject, span: tuple[int, int]) -> None:
    assert split_citations([given], {1: 5, 3: 10}) == ([annotation(*span)], [])


@looped("given", [citation(FILE), citation(), citation(PAGE, type="PLAN"), citation(PAGE, start=None)])
def test_what_is_no_web_page_or_no_text_is_passed_on(given: JsonObject) -> None:
    assert split_citations([given, "no citation"], {}) == ([], [given])


def test_a_citation_of_both_is_told_in_both_ways() -> None:
    given = citation(PAGE, FILE)
    assert citation_extras(given, {}) == Extras(annotations=(annotation(1, 3),), message={"citations": [given]})
    assert citation_extras(None, {}) is None
