"""Events with their numbers, and the response that they contain."""

from providers.completion import Usage
from providers.framing.text_frames import MARK
from proxy.surfaces.responses.write_events import EventWriter, SilentWriter, framed, response_object, usage_json
from tests.proxy.surfaces.responses.kit import FACTS


def test_events_are_numbered_from_zero_and_named_twice() -> None:
    writer = EventWriter()
    assert writer.event("a", {"x": "é"}) == b'event: a\ndata: {"type":"a","sequence_number":0,"x":"\\u00e9"}\n\n'
    assert writer.event("b", {}) == b'event: b\ndata: {"type":"b","sequence_number":1}\n\n'
    assert framed("c", b"{}") == b"event: c\ndata: {}\n\n"


def test_an_answer_that_is_not_streamed_has_no_events() -> None:
    assert SilentWriter().event("a", {}) == b""


def test_a_response_that_has_begun_has_every_list_and_no_end() -> None:
    body = response_object(FACTS, {"tools": []}, "in_progress")
    assert body == {
        "id": "resp_u1",
        "object": "response",
        "created_at": 1795246123,
        "status": "in_progress",
        "model": "openai/gpt-x",
        "output": [],
        "error": None,
        "incomplete_details": None,
        "usage": None,
        "service_tier": None,
        "tools": [],
    }
    assert response_object(FACTS, {}, "failed", error={"code": "x"})["error"] == {"code": "x"}


def test_usage_has_its_details_even_where_the_vendor_reports_none() -> None:
    assert usage_json(Usage(6, 2)) == {
        "input_tokens": 6,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": 2,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 8,
    }


def test_usage_keeps_what_the_vendor_says() -> None:
    shown = usage_json(Usage(6, 2, {"cached_tokens": 4}, {"reasoning_tokens": 1}, estimated=True, extra={"cost": 1}))
    assert shown["input_tokens_details"] == {"cached_tokens": 4, "cache_write_tokens": 0}
    assert shown["output_tokens_details"] == {"reasoning_tokens": 1}
    assert (shown["estimated"], shown["cost"]) == (True, 1)


def test_the_form_of_an_event_is_the_event_around_its_number_and_its_text() -> None:
    writer = EventWriter()
    writer.number = 7
    before, middle, after = writer.form("response.x", {"item_id": "i", "delta": MARK, "logprobs": []})
    shown = writer.event("response.x", {"item_id": "i", "delta": "word", "logprobs": []})
    assert before + b"7" + middle + b"word" + after == shown
    assert writer.number == 8
