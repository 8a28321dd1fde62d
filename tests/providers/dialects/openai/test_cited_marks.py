"""Citation marks in texts, whole and split between chunks."""

from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from providers.dialects.openai.cited_marks import MOST_MARKS, MarkFinder, Source, sources_of
from providers.json_types import JsonObject, JsonValue
from tests.support.cpu_growth import growth

SOURCES: list[Source] = [("https://a.example", "A"), ("", ""), ("https://c.example", "C")]


def spans(found: tuple[JsonObject, ...]) -> list[tuple[object, object, object]]:
    inner = [citation["url_citation"] for citation in found]
    return [(each["url"], each["start_index"], each["end_index"]) for each in inner if isinstance(each, dict)]


def whole(text: str) -> list[tuple[object, object, object]]:
    return spans(MarkFinder().cite(text, SOURCES, last=True))


def test_a_mark_cites_the_source_of_its_number() -> None:
    assert whole("Oslo[1], Bergen [3].") == [("https://a.example", 4, 7), ("https://c.example", 16, 19)]
    assert whole("Oslo[ref_1], Bergen[ref_999][ref].") == [("https://a.example", 4, 11)]


def test_marks_of_no_source_cite_nothing() -> None:
    assert whole("[0] [2] [4] [999] [1000] [x] [1") == []


def test_a_link_is_no_mark() -> None:
    assert whole("[[1]](https://a.example) and [1](https://a.example)") == []


@given(st.lists(st.sampled_from([*"[1]3(x 😀", "ref_", "[ref_1]"]), max_size=24).map("".join), st.integers(1, 5))
def test_a_text_in_pieces_has_the_citations_of_the_whole(text: str, size: int) -> None:
    finder = MarkFinder()
    found: tuple[JsonObject, ...] = ()
    for start in range(0, len(text), size):
        found += finder.cite(text[start : start + size], SOURCES)
    assert spans(found + finder.cite("", SOURCES, last=True)) == whole(text)


def test_a_text_of_marks_costs_time_in_proportion_and_bounded_memory() -> None:
    def found(pieces: int) -> int:
        finder = MarkFinder()
        return sum(len(finder.cite("[1] " * 64, SOURCES)) for _ in range(pieces))

    assert found(4096) == MOST_MARKS
    assert growth(partial(found, 1024), partial(found, 4096)) == ""


def test_sources_are_the_addresses_with_the_titles_of_the_results() -> None:
    results: JsonObject = {"search_results": [{"url": "https://b.example", "title": "B"}, {"url": 7}, 7]}
    assert sources_of({"citations": ["https://b.example", "doc-1", 7], **results}) == [
        ("https://b.example", "B"),
        ("", ""),
        ("", ""),
    ]
    assert sources_of(results) == [("https://b.example", "B"), ("", "")]
    assert sources_of({"citations": "x", "search_results": None}) == []


def test_results_with_numbers_are_the_sources_of_these_numbers() -> None:
    listed: list[JsonValue] = [
        {"link": "https://c.example", "title": "C", "refer": "ref_3"},
        {"link": "https://a.example", "title": "A", "refer": "ref_1"},
        {"link": "javascript:x", "refer": "ref_2"},
        7,
    ]
    assert sources_of({"web_search": listed}) == [*SOURCES[:1], ("", ""), *SOURCES[2:]]
    assert sources_of({"web_search": [{"link": "https://a.example", "title": "A"}]}) == SOURCES[:1]
    assert sources_of({"web_search": "none"}) == []
