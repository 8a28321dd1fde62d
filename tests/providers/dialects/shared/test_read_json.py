"""Vendors' JSON: its bounds, invalid UTF-8, and the readers of single values."""

import contextlib
import json
from functools import partial
from typing import cast

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.dialects.shared.read_json import (
    SplitCharacter,
    arguments_text,
    call_id,
    index_of,
    is_json,
    json_object,
    load_json,
    parse_event,
    parse_json,
    passed_on,
    text_of,
    unknown_in,
)
from providers.failure import FailureKind, UpstreamError
from providers.json_types import JsonObject, JsonValue
from tests.faults.memory import growth
from tests.providers.kit import failure_of
from tests.support.cpu_growth import growth as cpu_growth
from tests.support.looped import looped
from tests.support.nightly import by_day


def test_arguments_are_a_text_whatever_the_vendor_sends() -> None:
    assert [arguments_text("{}"), arguments_text({"a": 1}), arguments_text(None)] == ["{}", '{"a":1}', ""]


def test_the_id_of_a_call_is_its_own_and_stays_the_same() -> None:
    assert call_id("x", 0, 0) == call_id("x", 0, 0)
    assert len({call_id("x", 0, 0), call_id("x", 0, 1), call_id("x", 1, 0), call_id("y", 0, 0)}) == 4


def test_a_content_is_its_text() -> None:
    assert text_of([{"type": "text", "text": "a"}, {"type": "image"}, "x", {"type": "text", "text": 1}]) == "ax"


def test_a_refusal_among_the_parts_of_a_message_is_its_text() -> None:
    assert text_of([{"type": "refusal", "refusal": "I cannot."}]) == "I cannot."


@looped("content", [7, True, {"text": "abc"}, [7], [["a"]]])
def test_content_of_another_form_is_no_answer(content: JsonValue) -> None:
    assert failure_of(text_of, content).kind is FailureKind.MALFORMED


def test_an_index_that_is_none_is_the_position() -> None:
    assert [index_of(cast(JsonObject, raw), 3) for raw in ({"index": 1}, {}, {"index": True})] == [1, 3, 3]


def test_blank_lines_around_a_body_are_ignored() -> None:
    assert json_object(b"\n\r\n" + orjson.dumps({"a": 1}) + b"\n") == {"a": 1}


@looped(
    ("text", "value"),
    [
        (b'"h\xffi"', "h\ufffdi"),
        (b'"\xe2\x82"', "\ufffd"),
        (b'"\xed\xa0\x80"', "\ufffd\ufffd\ufffd"),
        (b'"h\xc3\xa9"', "h\u00e9"),
        (b"[1]", [1]),
    ],
)
def test_what_is_no_utf8_is_replaced_and_nothing_else(text: bytes, value: JsonValue) -> None:
    assert parse_json(text) == value
    assert is_json(text)


@looped(
    ("text", "value"),
    [
        (rb'"a\ud83d"', "a\ufffd"),
        (rb'"\ude00a"', "\ufffda"),
        (rb'"\ud83d\ud83d\ude00\ude00"', "\ufffd\U0001f600\ufffd"),
        (rb'"\uD83D\n\uDE00"', "\ufffd\n\ufffd"),
        (rb'"\\ud83d\ude00"', "\\ud83d\ufffd"),
        (rb'"\\\ud83d"', "\\\ufffd"),
        (b'"\\ud83d\xff"', "\ufffd\ufffd"),
        (rb'{"\ud83d":1}', {"\ufffd": 1}),
    ],
)
def test_half_of_a_surrogate_pair_is_replaced(text: bytes, value: JsonValue) -> None:
    assert parse_json(text) == value
    assert is_json(text)


def read_or_not(text: bytes) -> None:
    with contextlib.suppress(orjson.JSONDecodeError):
        parse_json(text)


def test_a_text_of_halves_costs_time_in_proportion_to_its_size() -> None:
    for piece in (rb"\ud83d", rb"\ud83dx", rb"\\", rb"\ud83d\ude00"):
        small, large = (
            b'"' + piece * int(size * 2**20 // len(piece)) + rb'\ud83d"' for size in by_day((0.25, 1), (1, 4))
        )
        assert cpu_growth(partial(read_or_not, small), partial(read_or_not, large)) == ""


@looped("text", [b"", b"\xff", b'"h', b'{"a":\xff}', b'"\xff', b'"\\ud800', b'"\\u\\ud800"'])
def test_replacing_makes_no_json_of_what_is_none(text: bytes) -> None:
    assert not is_json(text)


@pytest.mark.thorough
@looped("piece", [b"{},", b"[],", b'{"a":1},', b'"ab",'])
def test_a_text_whose_values_would_take_many_times_its_size_is_not_read(piece: bytes) -> None:
    text = b'{"choices":[' + piece * (31 * 2**20 // len(piece)) + b"0]}"
    with growth() as grown, pytest.raises(UpstreamError) as caught:
        load_json(text)
    assert caught.value.failure.kind is FailureKind.MALFORMED
    assert grown.bytes < 8 * 2**20


@pytest.mark.thorough
def test_the_log_probabilities_of_a_long_answer_are_read() -> None:
    other = b'{"token":" the","logprob":-0.0123,"bytes":[32,116,104,101]}'
    token = b'{"token":" the","logprob":-0.0123,"top_logprobs":[' + b",".join([other] * 20) + b"]}"
    assert load_json(b'{"content":[' + b",".join([token] * 12_000) + b"]}")


def test_unknown_members_are_those_that_say_something() -> None:
    known = frozenset({"a", "b"})
    assert unknown_in({"a": 1, "b": 2}, known) is None
    assert unknown_in({"c": None, "d": "", "e": [], "f": {}}, known) is None
    assert unknown_in({"a": 1, "c": 0, "d": False, "e": [None]}, known) == {"c": 0, "d": False, "e": [None]}


@looped(
    ("data", "passed"),
    [
        (b'{"a":1}', b'{"a":1}'),
        (b'{"a":\n1,\r\n"b":"\\n"}', b'{"a": 1,  "b":"\\n"}'),
        ('{"a":"é"}'.encode(), '{"a":"é"}'.encode()),
        (b'{"a":"\xff\xe5\xa4"}', '{"a":"\ufffd\ufffd"}'.encode()),
    ],
)
def test_an_event_is_passed_on_in_one_line_of_utf_8(data: bytes, passed: bytes) -> None:
    assert passed_on(data) == passed


# Lone surrogates ----- ------------------------------------------------------------------------------------------------

_OF_A_STRING = st.lists(
    st.sampled_from(["\\\\", "\\ud83d", "\\ude00", "\\uD83D\\uDE00", "\\u0041", '\\"', "\\n", "u", "d83d", "a", "天"]),
    max_size=12,
).map("".join)


@given(_OF_A_STRING, st.integers(0, 80))
def test_halves_are_mended_wherever_they_stand(inside: str, backslashes: int) -> None:
    text = "\\\\" * backslashes + inside
    text = f'{{"a":"{text}"}}'
    said: str = json.loads(text)["a"]
    mended = said.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    assert parse_json(text.encode()) == {"a": mended}
    if said == mended:
        assert parse_event(text.encode()) == {"a": mended}
    else:
        with pytest.raises(SplitCharacter):
            parse_event(text.encode())
