"""Typed access to fields of a request."""

from collections.abc import Callable

from providers.json_types import JsonValue
from providers.mock.fields import Fields
from tests.providers.mock.kit import refused
from tests.support.looped import looped


def test_what_is_absent_or_null_is_nothing() -> None:
    for fields in (Fields({}), Fields({"x": None})):
        assert fields.any("x") is None
        assert fields.integer("x", 0, 1) is None
        assert fields.flag("x") is False
        assert fields.text("x") == ""
        assert fields.object("x") == {}
        assert fields.strings("x") == ()


def test_members_are_read_as_they_are() -> None:
    fields = Fields({"i": 3, "b": True, "s": "a", "o": {"k": 1}, "l": ["a", "b"]})
    assert fields.integer("i", 0, 3) == 3
    assert fields.flag("b") is True
    assert fields.text("s") == "a"
    assert fields.object("o") == {"k": 1}
    assert fields.strings("s") == ("a",)
    assert fields.strings("l") == ("a", "b")


@looped(
    ("value", "read"),
    [
        (True, lambda fields: fields.integer("x", 0, 9)),
        ("3", lambda fields: fields.integer("x", 0, 9)),
        (10, lambda fields: fields.integer("x", 0, 9)),
        (-1, lambda fields: fields.integer("x", 0, 9)),
        (1, lambda fields: fields.flag("x")),
        (1, lambda fields: fields.text("x")),
        ([], lambda fields: fields.object("x")),
        ("", lambda fields: fields.strings("x")),
        (["a", 3], lambda fields: fields.strings("x")),
    ],
)
def test_a_wrong_member_is_a_400_that_names_it(value: JsonValue, read: Callable[[Fields], object]) -> None:
    assert refused(read, Fields({"x": value})) == (400, "x")
