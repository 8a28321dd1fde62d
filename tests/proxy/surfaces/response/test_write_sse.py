"""JSON serialization, and the SSE frames around choices."""

import json

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.completion import Usage
from providers.unified_request import UnifiedRequest
from proxy.surfaces.response.write_sse import (
    DONE,
    FinishUsageSseWriter,
    SseWriter,
    UsageSseWriter,
    ascii_json,
    event,
    usage_json,
    utf8_json,
)
from tests.proxy.surfaces.kit import ROWS, complete
from tests.support.looped import looped

HEAD = {"id": "x"}
START = b'data: {"id":"x","choices":['


def stream(**fields: bool) -> UnifiedRequest:
    return complete(stream=True, stream_options=dict(fields))


@looped("text", ["plain", "\u2028\u2029\x85", "👋", "\ud800", '"\\\n\x7f'])
def test_ascii_json_holds_nothing_that_splits_a_line(text: str) -> None:
    data = ascii_json({"a": text})
    assert data.isascii()
    assert len(data.splitlines()) == 1
    assert json.loads(data) == {"a": text}


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner, max_size=3)))
def test_both_writers_keep_any_value(value: object) -> None:
    assert json.loads(ascii_json(value)) == value
    assert json.loads(utf8_json(value)) == value


def test_utf8_json_leaves_characters_readable() -> None:
    assert utf8_json({"a": "é"}) == '{"a":"é"}'.encode()


def test_an_event_is_one_data_line_and_a_blank_one() -> None:
    assert event(b"{}") == b"data: {}\n\n"


def test_usage_has_three_totals_and_the_details_the_vendor_gave() -> None:
    assert usage_json(Usage(6, 2)) == {"prompt_tokens": 6, "completion_tokens": 2, "total_tokens": 8}
    assert usage_json(Usage(6, 2, {"cached_tokens": 4}, {"reasoning_tokens": 1})) == {
        "prompt_tokens": 6,
        "completion_tokens": 2,
        "total_tokens": 8,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 1},
    }
    assert "prompt_tokens_details" not in usage_json(Usage(6, 2, {}))


def test_a_guessed_usage_says_so_and_keeps_its_totals() -> None:
    assert usage_json(Usage(6, 2, estimated=True)) == {**usage_json(Usage(6, 2)), "estimated": True}


def test_plain_frames_never_mention_usage() -> None:
    frames = SseWriter(HEAD, complete(), DONE)
    assert frames.event(b"{}") == START + b"{}]}\n\n"
    assert frames.usage(Usage(1, 1)) == b""
    assert frames.finish(b"{}") == START + b"{}]}\n\n"
    assert frames.end() == DONE
    assert frames.bare({"error": 1}) == START + b'],"error":1}\n\n'


def test_a_fingerprint_is_on_every_frame_from_then_on() -> None:
    frames = UsageSseWriter(HEAD, stream(include_usage=True), DONE)
    frames.set_fingerprint("fp_1")
    assert frames.event(b"{}") == START + b'{}],"system_fingerprint":"fp_1","usage":null}\n\n'
    frames.usage(Usage(1, 1))
    assert frames.end().startswith(START + b'],"system_fingerprint":"fp_1","usage":{')


def test_asked_usage_is_null_and_then_a_frame_of_its_own() -> None:
    frames = UsageSseWriter(HEAD, stream(include_usage=True), DONE)
    assert frames.event(b"{}") == START + b'{}],"usage":null}\n\n'
    assert frames.usage(Usage(1, 0)) == b""
    assert frames.event(b"{}") == START + b'{}],"usage":null}\n\n'
    assert frames.usage(Usage(1, 2)) == b""
    assert frames.end() == START + b'],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}\n\n' + DONE


def test_usage_that_no_vendor_gave_is_not_invented() -> None:
    assert UsageSseWriter(HEAD, stream(include_usage=True), DONE).end() == DONE


def test_running_usage_shows_the_latest_numbers_on_each_frame() -> None:
    frames = UsageSseWriter(HEAD, stream(include_usage=True, continuous_usage_stats=True), DONE)
    assert b'"usage":null' in frames.event(b"{}")
    frames.usage(Usage(1, 1))
    assert b'"total_tokens":2}' in frames.event(b"{}")
    frames.set_fingerprint("fp")
    assert b'"total_tokens":2}' in frames.event(b"{}")


def test_the_last_finish_waits_for_the_usage() -> None:
    frames = FinishUsageSseWriter(HEAD, complete(n=2), b"")
    assert frames.usage(Usage(1, 0)) == b""
    assert frames.finish(b"{1}") == START + b"{1}]}\n\n"
    assert frames.finish(b"{0}") == b""
    released = frames.usage(Usage(1, 2))
    assert released == START + b'{0}],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}\n\n'
    assert frames.end() == b""


def test_the_last_finish_leaves_at_the_end_with_the_usage_known_by_then() -> None:
    early, without = FinishUsageSseWriter(HEAD, complete(), DONE), FinishUsageSseWriter(HEAD, complete(), DONE)
    early.usage(Usage(1, 2))
    for frames in (early, without):
        assert frames.finish(b"{}") == b""
    assert b'"total_tokens":3' in early.end()
    assert without.end() == START + b"{}]}\n\n" + DONE


def test_a_style_picks_its_frames_by_what_the_client_asked() -> None:
    def kinds(name: str) -> list[type[SseWriter]]:
        style = ROWS[name].style
        return [type(style.writer(HEAD, request)) for request in (complete(), stream(include_usage=True))]

    assert kinds("openai") == kinds("pais") == [SseWriter, UsageSseWriter]
    assert kinds("fireworks") == [FinishUsageSseWriter, UsageSseWriter]
    assert kinds("scale_v4") == kinds("scale_v5") == [FinishUsageSseWriter, FinishUsageSseWriter]


def test_a_head_that_is_not_ascii_is_escaped() -> None:
    assert orjson.loads(SseWriter({"model": "é"}, complete(), DONE).event(b"{}")[6:])["model"] == "é"
    assert SseWriter({"model": "é"}, complete(), DONE).event(b"{}").isascii()


@pytest.mark.parametrize("kind", [UsageSseWriter, FinishUsageSseWriter])
def test_members_that_come_after_the_last_choice_go_with_the_usage(kind: type[SseWriter]) -> None:
    frames = kind(HEAD, stream(include_usage=True), DONE)
    frames.finish(b'{"index":0}')
    frames.add_late({"timings": {"n": 1}})
    (last, done) = (frames.usage(Usage(1, 2)) + frames.end()).split(b"\n\n")[:2]
    assert orjson.loads(last.removeprefix(b"data: "))["timings"] == {"n": 1}
    assert done + b"\n\n" == DONE


def test_a_client_without_usage_gets_no_event_without_choices_for_them() -> None:
    frames = SseWriter(HEAD, stream(), DONE)
    frames.add_late({"timings": {"n": 1}})
    assert frames.end() == DONE
