"""Arguments in pieces."""

import pytest

from providers.dialects.gemini_partial import put_pieces
from providers.failure import FailureKind, UpstreamError
from providers.unified import JsonObject, JsonValue


def assembled(*pieces: JsonValue) -> JsonObject:
    given: JsonObject = {}
    put_pieces(given, [*pieces])
    return given


def test_pieces_find_their_places() -> None:
    assert assembled(
        {"jsonPath": "$.a.b[0].c", "numberValue": 1},
        {"jsonPath": "$.a.b[1]", "stringValue": "x", "willContinue": True},
        {"jsonPath": "$.a.b[1]", "stringValue": "y"},
        {"jsonPath": "$['with space']", "boolValue": False},
        {"jsonPath": '$["q"]', "nullValue": "NULL_VALUE"},
    ) == {"a": {"b": [{"c": 1}, "xy"]}, "with space": False, "q": None}


def test_no_pieces_change_nothing() -> None:
    given: JsonObject = {"a": 1}
    put_pieces(given, None)
    assert given == {"a": 1}


@pytest.mark.parametrize(
    "pieces",
    [
        [3],
        [{"stringValue": "x"}],
        [{"jsonPath": "$", "stringValue": "x"}],
        [{"jsonPath": "a.b", "stringValue": "x"}],
        [{"jsonPath": "$[0]", "stringValue": "x"}],
        [{"jsonPath": "$.a..b", "stringValue": "x"}],
        [{"jsonPath": "$.a[2]", "stringValue": "x"}],
        [{"jsonPath": "$.a", "stringValue": "x"}, {"jsonPath": "$.a[0]", "stringValue": "x"}, {"jsonPath": "$.a.b"}],
    ],
)
def test_places_that_cannot_be_are_malformed(pieces: list[JsonValue]) -> None:
    with pytest.raises(UpstreamError) as caught:
        assembled(*pieces)
    assert caught.value.failure.kind is FailureKind.MALFORMED
