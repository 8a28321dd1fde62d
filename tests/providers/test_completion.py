"""The common completion shape and its few computed values."""

import re
from pathlib import Path

from providers.completion import (
    LARGEST_COUNT,
    Chunk,
    Extras,
    NativeEvent,
    ToolCallDelta,
    Usage,
    count_of,
    has_content,
    reported_searches,
    reported_usage,
)
from providers.json_types import JsonObject, JsonValue
from tests.support.looped import looped

OF_ANSWER = Extras(answer={"prompt_filter_results": []})


def test_the_total_is_prompt_and_completion_whatever_the_details() -> None:
    assert Usage(7, 5).total_tokens == 12
    assert Usage(7, 5, {"cached_tokens": 3}, {"reasoning_tokens": 2}).total_tokens == 12


@looped(
    "chunk",
    [
        Chunk(),
        Chunk(text="x"),
        Chunk(finish_reason="stop", extras=OF_ANSWER),
        Chunk(reasoning="hm", extras=OF_ANSWER),
        Chunk(tool_calls=(ToolCallDelta(0, "c", "f"),), extras=OF_ANSWER),
        Chunk(refusal="no", extras=OF_ANSWER),
        Chunk(signature="s", extras=OF_ANSWER),
        Chunk(extras=Extras(reasoning_details=({"type": "reasoning.text"},))),
        Chunk(extras=Extras(annotations=({"type": "url_citation"},))),
        Chunk(extras=Extras(images=({"type": "image_url"},))),
        Chunk(extras=Extras(audio={"id": "a"})),
        Chunk(extras=Extras(message={"search": 1})),
    ],
)
def test_what_a_model_made_is_content(chunk: Chunk) -> None:
    assert has_content(chunk)


def test_what_a_vendor_says_of_a_choice_or_the_answer_is_none() -> None:
    assert not has_content(Chunk(extras=OF_ANSWER))
    assert not has_content(Chunk(system_fingerprint="fp", extras=OF_ANSWER))
    assert not has_content(Chunk(extras=Extras(choice={"content_filter_results": {}})))


def test_an_event_in_the_client_s_own_api_is_content_where_its_meaning_is() -> None:
    event = NativeEvent("message_start", b"{}")
    assert not has_content(Chunk(native=event))
    assert has_content(Chunk(text="x", native=event))


@looped(
    ("value", "count"),
    [
        (3, 3),
        (3.0, 3),
        (0, 0),
        (-1, None),
        (2.5, None),
        (True, None),
        ("3", None),
        (None, None),
        (2**60, None),
        (1e300, None),
        (LARGEST_COUNT, LARGEST_COUNT),
        (LARGEST_COUNT + 1, None),
        ([], None),
    ],
)
def test_a_count_is_a_whole_number_that_is_not_negative(value: JsonValue, count: int | None) -> None:
    assert count_of(value) == count


@looped(
    ("raw", "searches"),
    [
        ({"num_search_queries": 2}, 2),
        ({"server_tool_use_details": {"web_search_requests": 3}}, 3),
        ({"server_tool_use": {"web_search_requests": 3}}, 3),
        ({"server_side_tool_usage_details": {"web_search_calls": 4, "x_search_calls": 1}}, 4),
        ({"server_side_tool_usage_details": 4, "server_tool_use": "x", "num_search_queries": -1}, 0),
        ({"prompt_tokens": 2}, 0),
    ],
)
def test_searches_are_counted_under_each_vendor_s_name(raw: JsonObject, searches: int) -> None:
    assert reported_searches(raw) == searches


def test_without_both_counts_there_is_no_usage() -> None:
    assert reported_usage(None, 2) is None
    assert reported_usage(6, None) is None
    assert reported_usage(6, 2, {}, {}) == Usage(6, 2)


@looped(
    ("told", "kept"),
    [
        ({"cached_tokens": 6}, {"cached_tokens": 6}),
        ({"cached_tokens": 7}, None),
        ({"cached_tokens": 7, "audio_tokens": 1}, {"audio_tokens": 1}),
        ({"searches": 7, "cached_tokens": 7}, {"searches": 7}),
        ({"cache_write_tokens": 3, "ephemeral_1h_input_tokens": 3}, ...),
        ({"cache_write_tokens": 3, "ephemeral_1h_input_tokens": 4}, {"cache_write_tokens": 3}),
        ({"cache_write_tokens": 3, "ephemeral_5m_input_tokens": 4}, {"cache_write_tokens": 3}),
        ({"cache_write_tokens": 7, "ephemeral_1h_input_tokens": 4}, None),
        ({"ephemeral_1h_input_tokens": 0}, ...),
    ],
)
def test_a_detail_above_what_it_is_a_part_of_is_left_out(told: dict[str, int], kept: object) -> None:
    usage = reported_usage(6, 2, told)
    assert usage is not None
    assert usage.prompt_details == (told if kept is ... else kept)


def test_a_detail_of_the_answer_is_held_against_the_answer() -> None:
    assert reported_usage(6, 2, None, {"reasoning_tokens": 3}) == Usage(6, 2)
    assert reported_usage(6, 2, None, {"reasoning_tokens": 2}) == Usage(6, 2, None, {"reasoning_tokens": 2})


ROOT = Path(__file__).resolve().parents[2]


def test_no_reader_of_a_vendor_makes_usage_in_another_way() -> None:
    readers = [*(ROOT / "providers/dialects").rglob("*.py"), *(ROOT / "providers/tasks/forms").rglob("*.py")]
    assert sum("reported_usage(" in path.read_text() for path in readers) > 15
    assert [path.name for path in readers if re.search(r"\bUsage\(", path.read_text())] == []
