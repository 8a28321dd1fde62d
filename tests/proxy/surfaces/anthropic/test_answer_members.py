"""Stop reasons, counts, citations and the vendor's own fields."""

from providers.completion import Extras, Usage
from providers.json_types import JsonObject, JsonValue
from proxy.surfaces.anthropic.answer_members import (
    citations_of,
    other_fields,
    own_blocks,
    stop_fields,
    usage_counts,
)
from tests.support.looped import looped

LINK: JsonObject = {
    "type": "url_citation",
    "url_citation": {
        "url": "https://x.example",
        "title": "X",
        "content": "cited",
        "encrypted_index": "e",
        "start_index": 0,
        "end_index": 3,
    },
}
PLACE: JsonObject = {"type": "char_location", "cited_text": "c", "document_index": 0, "start_index": 0, "end_index": 1}


@looped(
    ("finish", "native", "matched", "called", "refusal", "reason"),
    [
        ("stop", None, None, False, None, "end_turn"),
        ("stop", None, "END", False, None, "stop_sequence"),
        ("stop", None, 198, False, None, "end_turn"),
        ("stop", None, None, True, None, "tool_use"),
        ("stop", None, None, False, "no", "refusal"),
        ("length", None, None, True, None, "max_tokens"),
        ("length", "model_context_window_exceeded", None, False, None, "model_context_window_exceeded"),
        ("length", "compaction", None, False, None, "compaction"),
        ("tool_calls", None, None, True, None, "tool_use"),
        ("function_call", None, None, True, None, "tool_use"),
        ("content_filter", "refusal", None, False, None, "refusal"),
        ("content_filter", "SAFETY", None, False, None, "refusal"),
        ("pause_turn", None, None, False, None, "pause_turn"),
        ("of_tomorrow", None, None, False, None, "end_turn"),
    ],
)
def test_every_finish_has_its_stop_reason(
    finish: str, native: str | None, matched: str | int | None, called: bool, refusal: str | None, reason: str
) -> None:
    members = stop_fields(finish, native, matched, called, refusal)
    assert members["stop_reason"] == reason
    assert members["stop_sequence"] == ("END" if reason == "stop_sequence" else None)
    explained = {"type": "refusal", "category": None, "explanation": "no"}
    assert members["stop_details"] == (explained if refusal else None)


def test_input_excludes_what_a_cache_held() -> None:
    usage = Usage(
        20,
        5,
        {"cached_tokens": 4, "cache_write_tokens": 6, "ephemeral_1h_input_tokens": 6, "audio_tokens": 1},
        {"reasoning_tokens": 3, "web_search_requests": 2},
        extra={"cost": 0.1},
    )
    assert usage_counts(usage, "default") == {
        "cost": 0.1,
        "input_tokens": 10,
        "cache_creation_input_tokens": 6,
        "cache_read_input_tokens": 4,
        "output_tokens": 5,
        "cache_creation": {"ephemeral_1h_input_tokens": 6},
        "output_tokens_details": {"thinking_tokens": 3},
        "server_tool_use": {"web_search_requests": 2, "web_fetch_requests": 0},
        "service_tier": "standard",
    }


def test_counts_that_make_no_sense_are_never_below_zero() -> None:
    assert usage_counts(Usage(1, 1, {"cached_tokens": 9}))["input_tokens"] == 0
    assert usage_counts(None)["output_tokens"] == 0
    assert usage_counts(Usage(1, 1, estimated=True), "priority")["estimated"] is True


def test_citations_have_the_vendor_s_form() -> None:
    extras = Extras(annotations=(LINK, {"type": "file"}), message={"citations": [PLACE, "https://y.example"]})
    assert citations_of(extras) == [
        {
            "type": "web_search_result_location",
            "url": "https://x.example",
            "title": "X",
            "cited_text": "cited",
            "encrypted_index": "e",
        },
        {"type": "char_location", "cited_text": "c", "document_index": 0},
    ]
    assert citations_of(None) == []
    bare: JsonObject = {"type": "url_citation", "url_citation": {"url": "https://x.example"}}
    assert citations_of(Extras(annotations=(bare,)))[0]["encrypted_index"] == ""


def test_what_has_no_block_keeps_its_name() -> None:
    extras = Extras(
        annotations=(LINK, {"type": "file"}),
        images=({"type": "image_url"},),
        audio={"id": "a"},
        message={
            "citations": [PLACE, "https://y.example"],
            "content_blocks": [{"type": "a"}, {"b": 1}],
            "content": "no",
            "x": 1,
        },
        choice={"content_filter_results": {}},
        answer={"y": 2, "usage": "no"},
    )
    assert other_fields(extras, {"z": 3}) == {
        "annotations": [{"type": "file"}],
        "images": [{"type": "image_url"}],
        "audio": {"id": "a"},
        "citations": ["https://y.example"],
        "content_blocks": [{"b": 1}],
        "x": 1,
        "content_filter_results": {},
        "y": 2,
        "z": 3,
    }
    assert other_fields(None) == {}
    assert other_fields(None, {"x": 1, "model": "no"}) == {"x": 1}


def test_blocks_of_anthropic_s_own_are_found() -> None:
    assert own_blocks(Extras(message={"content_blocks": [{"type": "a"}, 1]})) == [{"type": "a"}]
    assert own_blocks(Extras(message={"content_blocks": 1})) == []
    assert own_blocks(None) == []


def test_citations_beside_the_choices_stand_beside_the_blocks() -> None:
    urls: list[JsonValue] = ["https://x.example"]
    other: JsonObject = {"type": "of_cohere"}
    extras = Extras(message={"citations": [other]})
    assert other_fields(None, {"citations": urls}) == {"citations": urls}
    assert other_fields(extras, {"citations": urls}) == {"citations": [other, *urls]}
    assert extras.message == {"citations": [other]}
