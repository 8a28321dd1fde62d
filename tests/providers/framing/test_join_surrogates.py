"""Characters whose surrogates arrive in two events, in any field of a vendor's JSON."""

import pytest

from providers.framing.join_surrogates import HalfCharacter, SurrogateJoiner
from providers.json_types import JsonObject, JsonValue
from tests.support.looped import looped

HIGH, LOW = rb"\ud83d", rb"\ude00"
SMILE = "\U0001f600"


def joined(*events: bytes) -> list[JsonValue]:
    joiner = SurrogateJoiner()
    return [joiner.parse(event) for event in events]


@looped(
    "event",
    [
        b'{"choices":[{"index":2,"delta":{"content":"%b"}}]}',
        b'{"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"function":{"arguments":"%b"}}]}}]}',
        b'{"choices":[{"delta":{"content":[{"type":"text","text":"%b"}]}}]}',
        b'{"type":"response.output_text.delta","output_index":1,"content_index":0,"delta":"%b"}',
        b'{"message":{"content":"%b"}}',
    ],
)
def test_the_halves_of_one_text_are_one_character(event: bytes) -> None:
    first, second, third = joined(event % (b"a" + HIGH), event % b"", event % (LOW + b"b"))
    assert "a" in str(first)
    assert "\\ud" not in str((first, second, third))
    assert f"{SMILE}b" in str(third)


def test_the_halves_of_several_texts_are_told_apart() -> None:
    event = b'{"choices":[{"index":%d,"delta":{"content":"%b"}}]}'
    events = joined(event % (0, HIGH), event % (1, b"b" + HIGH), event % (0, LOW), event % (1, LOW))
    said = [found["choices"][0]["delta"]["content"] for found in events]  # type: ignore[call-overload, index]
    assert said == ["", "b", SMILE, SMILE]


@looped("texts", [(HIGH, b"x"), (HIGH, HIGH), (LOW,), (HIGH + b"x",), (b"x" + LOW + b"y",)])
def test_half_a_character_alone_is_told(texts: tuple[bytes, ...]) -> None:
    with pytest.raises(HalfCharacter):
        joined(*[b'{"delta":{"text":"%b"}}' % text for text in texts])


def test_what_is_open_is_known_by_its_place() -> None:
    joiner = SurrogateJoiner()
    joiner.parse(b'{"choices":[{"index":3,"delta":{"content":"%b"}}]}' % HIGH)
    assert joiner.open == {("choices", 3, "delta", "content"): "\ud83d"}
    joiner.parse(b'{"choices":[{"index":3,"delta":{"content":"%b"}}]}' % LOW)
    assert joiner.open == {}


def test_elsewhere_half_a_character_is_replaced() -> None:
    event = (
        b'{"id":"%b","message":{"content":"%b"},"delta":{},"logprobs":[{"text":"%b"}],"%b":1,"arguments":{"text":"%b"}}'
    )
    found: JsonObject = {
        "id": "\ufffd",
        "message": {"content": "\ufffd"},
        "delta": {},
        "logprobs": [{"text": "\ufffd"}],
    }
    assert joined(event % (HIGH, HIGH, HIGH, HIGH, HIGH)) == [{**found, "\ufffd": 1, "arguments": {"text": "\ufffd"}}]


def test_numbers_are_those_of_the_vendor_or_near_them() -> None:
    assert joined(b'{"a":1,"b":1.5,"c":123456789012345678901234567890,"text":"%b"}' % HIGH) == [
        {"a": 1, "b": 1.5, "c": 123456789012345678901234567890.0, "text": ""}
    ]
