"""Arguments that arrive in several parts."""

from providers.dialects.gemini.partial_arguments import MAX_DEPTH, ArgumentAssembler
from providers.failure import FailureKind
from providers.json_types import JsonObject, JsonValue
from tests.providers.kit import failure_of
from tests.support.looped import looped


def assembled(*pieces: JsonValue) -> JsonObject:
    given = ArgumentAssembler()
    given.add_partial([*pieces])
    return given.complete()


def test_pieces_find_their_places() -> None:
    assert assembled(
        {"jsonPath": "$.a.b[0].c", "numberValue": 1},
        {"jsonPath": "$.a.b[1]", "stringValue": "x", "willContinue": True},
        {"jsonPath": "$.a.b[1]", "stringValue": "y"},
        {"jsonPath": "$['with space']", "boolValue": False},
        {"jsonPath": '$["q"]', "nullValue": "NULL_VALUE"},
    ) == {"a": {"b": [{"c": 1}, "xy"]}, "with space": False, "q": None}


def test_no_pieces_change_nothing() -> None:
    given = ArgumentAssembler()
    given.update({"a": 1})
    given.add_partial(None)
    assert given.complete() == {"a": 1}


def test_a_member_that_comes_whole_replaces_a_text_in_pieces() -> None:
    given = ArgumentAssembler()
    given.add_partial([{"jsonPath": "$.a", "stringValue": "x"}, {"jsonPath": "$.a", "stringValue": "y"}])
    given.update({"a": "z"})
    given.add_partial([{"jsonPath": "$.a", "stringValue": "!"}])
    assert given.complete() == {"a": "z!"}


def test_arguments_are_nested_no_deeper_than_a_request() -> None:
    nested = assembled({"jsonPath": "$" + ".a" * MAX_DEPTH, "stringValue": "x"})
    assert str(nested).count("{") == MAX_DEPTH
    assert (
        failure_of(assembled, {"jsonPath": "$" + ".a" * (MAX_DEPTH + 1), "stringValue": "x"}).kind
        is FailureKind.MALFORMED
    )


@looped(
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
    assert failure_of(assembled, *pieces).kind is FailureKind.MALFORMED
