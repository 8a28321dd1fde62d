"""The bytes of the Messages API's stream events."""

import orjson

from proxy.surfaces.anthropic.events import (
    ARGUMENTS,
    END,
    MESSAGE_STOP,
    TEXT,
    THINKING,
    block_delta,
    block_start,
    block_stop,
    event,
    vendors_event,
)
from tests.proxy.surfaces.anthropic.kit import objects


def test_an_event_names_its_type_twice() -> None:
    stream = event("ping", {}) + block_start(3, {"type": "text", "text": ""}) + block_stop(3) + MESSAGE_STOP
    assert [each["type"] for each in objects(stream)] == [
        "ping",
        "content_block_start",
        "content_block_stop",
        "message_stop",
    ]


def test_what_is_written_by_hand_is_what_the_writer_would_write() -> None:
    for head, kind, member in (
        (TEXT, "text_delta", "text"),
        (THINKING, "thinking_delta", "thinking"),
        (ARGUMENTS, "input_json_delta", "partial_json"),
    ):
        assert head % 7 + orjson.dumps("x") + END == block_delta(7, {"type": kind, member: "x"})


def test_no_line_of_an_event_breaks_and_lines_of_a_vendor_s_event_stay_lines() -> None:
    assert event("ping", {"x": "a\u2028b\u0085c\nd"}).count(b"\n") == 3
    assert event("ping", {"x": "é"}).isascii()
    assert vendors_event("ping", b'{\n"type": "ping"\n}') == b'event: ping\ndata: {\ndata: "type": "ping"\ndata: }\n\n'
    assert vendors_event("ping", b"{}") == b"event: ping\ndata: {}\n\n"
