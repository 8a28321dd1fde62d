"""JSON objects: merging, and counting of levels and bytes."""

from hypothesis import given
from hypothesis import strategies as st

from providers.json_types import JsonObject, merged, nests_deeper, opens_more


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


_FEW_OR_MANY = st.integers(0, 5) | st.integers(250, 770)


@given(
    st.tuples(st.text("{[,a", max_size=30), _FEW_OR_MANY).map(lambda found: (found[0] * found[1]).encode()),
    _FEW_OR_MANY,
)
def test_a_bracket_occurs_more_often_or_not(text: bytes, limit: int) -> None:
    assert opens_more(text, limit) is (max(text.count(b"{"), text.count(b"[")) > limit)
