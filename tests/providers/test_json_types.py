"""JSON objects merged, and levels counted."""

from providers.json_types import JsonObject, merged, nests_deeper


def test_merging_changes_neither_map() -> None:
    below: JsonObject = {"a": {"b": 1, "c": [1]}}
    above: JsonObject = {"a": {"b": 2}, "d": None}
    assert merged(below, above) == {"a": {"b": 2, "c": [1]}, "d": None}
    assert (below, above) == ({"a": {"b": 1, "c": [1]}}, {"a": {"b": 2}, "d": None})


def test_levels_of_objects_and_lists_are_counted() -> None:
    assert not nests_deeper("a", 0)
    assert nests_deeper({}, 0)
    assert not nests_deeper({"a": [1]}, 2)
    assert nests_deeper([{"a": [1]}, 2], 2)
