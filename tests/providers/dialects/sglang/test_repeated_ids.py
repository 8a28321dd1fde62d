"""Ids that are left out: what is left of an event is read as the event itself, and is JSON only where that is."""

import orjson
from hypothesis import given
from hypothesis import strategies as st

from providers.dialects.sglang.repeated_ids import RepeatedIds
from providers.json_types import JsonObject, JsonValue

texts = st.text(max_size=6) | st.sampled_from(['"', "\\", 'a\\"', '","output_ids":[1],"', "\\\\"])
numbers = st.lists(st.integers(0, 300), max_size=6)
tails = st.dictionaries(st.sampled_from(["meta_info", "output_ids", "index"]), numbers | texts, max_size=2)


def event(text: str, ids: list[int], tail: JsonObject) -> bytes:
    shown: JsonObject = {"text": text, "output_ids": [*ids]}
    return orjson.dumps({**shown, **{name: value for name, value in tail.items() if name != "output_ids"}})


def loaded(data: bytes) -> JsonValue:
    try:
        value: JsonValue = orjson.loads(data)
    except orjson.JSONDecodeError:
        return "no JSON"
    return value


def read(reader: RepeatedIds, data: bytes) -> tuple[JsonValue, JsonValue]:
    """What an event says, and what it says read with its ids left out, where those are put back in number only."""
    whole, cut = loaded(data), loaded(reader.without(data))
    ids = cut.get("output_ids") if isinstance(cut, dict) else None
    if isinstance(cut, dict) and isinstance(ids, list):
        count = reader.count + len(ids)
        reader.know(count)
        cut["output_ids"] = count
    if isinstance(whole, dict) and isinstance(listed := whole.get("output_ids"), list):
        whole["output_ids"] = len(listed)
    return whole, cut


@given(st.lists(st.tuples(texts, numbers, tails), max_size=6))
def test_events_say_the_same_without_their_ids(events: list[tuple[str, list[int], JsonObject]]) -> None:
    reader, so_far = RepeatedIds(), list[int]()
    for text, ids, tail in events:
        so_far += ids
        whole, cut = read(reader, event(text, so_far, tail))
        assert cut == whole
        whole, cut = read(reader, event(text, ids, tail))
        assert cut == whole


@given(
    st.lists(st.integers(0, 99), min_size=1, max_size=4),
    st.text(st.sampled_from('0123456789,]["{}\\ :at'), max_size=8),
    st.integers(0, 60),
)
def test_an_event_is_as_much_json_as_without_its_ids(ids: list[int], noise: str, place: int) -> None:
    reader = RepeatedIds()
    first = event("a", ids, {})
    read(reader, first)
    at = min(place, len(first))
    whole, cut = read(reader, first[:at] + noise.encode() + first[at:])
    assert cut == whole


def test_ids_that_continue_are_left_out_and_counted() -> None:
    reader = RepeatedIds()
    assert reader.without(event("a", [10, 11], {})) == event("a", [10, 11], {})
    reader.know(2)
    assert reader.without(event("a", [10, 11, 12], {})) == event("a", [12], {})
    assert reader.count == 2


def test_a_number_that_only_begins_alike_is_another() -> None:
    reader = RepeatedIds()
    reader.without(event("a", [1, 2], {}))
    reader.know(2)
    assert reader.without(event("a", [1, 23], {})) == event("a", [1, 23], {})
