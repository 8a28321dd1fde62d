"""Sources of Gemini's responses as annotations."""

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.dialects.gemini.grounding import MAX_ANNOTATIONS, SegmentFinder, annotations_of
from providers.json_types import JsonObject, JsonValue
from tests.support.cpu_growth import growth
from tests.support.looped import looped


def support(start: int, end: int, *chunks: int, **segment: JsonValue) -> JsonObject:
    place: JsonObject = {**({"startIndex": start} if start else {}), "endIndex": end, **segment}
    return {"segment": place, "groundingChunkIndices": [*chunks]}


def web(uri: str, title: str = "a") -> JsonObject:
    return {"web": {"uri": uri, "title": title}}


def spans_in(text: str, grounding: JsonValue, citations: JsonValue = None) -> list[tuple[str, str]]:
    """Return the address and the text of each annotation."""
    found = annotations_of(text, {}, grounding, citations)
    cited = [one["url_citation"] for one in found]
    return [(str(one["url"]), text[one["start_index"] : one["end_index"]]) for one in cited]  # type: ignore


def test_bytes_become_code_points_of_openais_form() -> None:
    text = "Zürich: 3 °C 👋, sagt man."
    start = len("Zürich: ".encode())
    end = len("Zürich: 3 °C 👋".encode())
    grounding: JsonValue = {
        "groundingChunks": [web("https://a.example", "A"), {"maps": {"uri": "https://b.example"}}],
        "groundingSupports": [support(start, end, 0, 1)],
    }
    assert annotations_of(text, {}, grounding, None) == (
        {
            "type": "url_citation",
            "url_citation": {"url": "https://a.example", "title": "A", "start_index": 8, "end_index": 14},
        },
        {
            "type": "url_citation",
            "url_citation": {"url": "https://b.example", "title": "", "start_index": 8, "end_index": 14},
        },
    )


def test_the_text_of_a_segment_decides_where_its_offsets_are_off() -> None:
    text = "Ärger, dann Ruhe. Ärger, dann Glück."
    chunks: JsonValue = [web("https://a.example")]
    for wrong in (0, 20, 27, 900):
        moved: JsonValue = {
            "groundingChunks": chunks,
            "groundingSupports": [support(wrong, wrong + 3, 0, text="dann Glück")],
        }
        assert spans_in(text, moved) == [("https://a.example", "dann Glück")]
    lost: JsonValue = {"groundingChunks": chunks, "groundingSupports": [support(0, 6, 0, text="nowhere")]}
    assert spans_in(text, lost) == [("https://a.example", "Ärger")]


def test_offsets_within_a_part_begin_there() -> None:
    text, parts = "Grüße. Oslo ist kalt.", {0: 0, 1: 7}
    grounding: JsonValue = {
        "groundingChunks": [web("https://a.example")],
        "groundingSupports": [support(0, 4, 0, partIndex=1)],
    }
    (found,) = annotations_of(text, parts, grounding, None)
    assert found["url_citation"]["start_index"] == 7  # type: ignore[index,call-overload]
    assert found["url_citation"]["end_index"] == 11  # type: ignore[index,call-overload]


def test_only_sources_with_an_address_of_the_web_are_annotations() -> None:
    grounding: JsonValue = {
        "groundingChunks": [
            {"retrievedContext": {"uri": "gs://bucket/a.pdf", "title": "a"}},
            {"image": {"sourceUri": "https://c.example", "title": "c"}},
            {"web": {"title": "no address"}},
        ],
        "groundingSupports": [support(0, 2, 0, 1, 2, 7), {"segment": 3, "groundingChunkIndices": [1]}],
    }
    assert spans_in("Oslo", grounding) == [("https://c.example", "Os")]


def test_citations_are_annotations_too() -> None:
    citations: JsonValue = {
        "citations": [{"startIndex": 1, "endIndex": 3, "uri": "https://a.example", "license": "mit"}, {"endIndex": 2}]
    }
    assert spans_in("Oslo", None, citations) == [("https://a.example", "sl")]


@looped(
    "raw",
    [
        None,
        3,
        [],
        {},
        {"groundingChunks": 3, "groundingSupports": [3]},
        {"groundingChunks": [web("https://a.example")], "groundingSupports": [{"groundingChunkIndices": [0]}]},
        {"groundingChunks": [3], "groundingSupports": [support(0, 1, 0)]},
    ],
)
def test_grounding_without_what_is_needed_has_no_annotations(raw: JsonValue) -> None:
    assert annotations_of("Oslo", {}, raw, raw) == ()


@given(st.text(max_size=40).map(lambda text: text * 60), st.data())
def test_any_span_is_found_by_its_bytes(text: str, data: st.DataObject) -> None:
    text = text.encode(errors="replace").decode()
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    before = data.draw(st.integers(0, start))
    first, last = len(text[before:start].encode()), len(text[before:end].encode())
    segment: JsonObject = {"startIndex": first, "endIndex": last, "partIndex": 4}
    assert SegmentFinder(text, {4: before}).find(segment) == (start, end)


@pytest.mark.thorough
@looped("wanted", ["x" * 50, "aaaaaaaaab", "ä" * 9])
def test_hostile_grounding_costs_a_bounded_amount(wanted: str) -> None:
    chunks: JsonValue = [web("https://a.example/" + "x" * 500)] * 100

    def annotated(size: int) -> tuple[JsonObject, ...]:
        supports: JsonValue = [support(7, 9, *range(100), text=wanted) for _ in range(size)]
        return annotations_of("aé" * 500 * size, {}, {"groundingChunks": chunks, "groundingSupports": supports}, None)

    assert growth(partial(annotated, 250), partial(annotated, 1000)) == ""
    assert len(annotated(1000)) == MAX_ANNOTATIONS
