"""Repeated parts are removed from events before parsing: an event reads the same without them, and is JSON exactly if
the original is."""

import orjson
from hypothesis import given
from hypothesis import strategies as st

from providers.dialects.sglang.repeated_parts import RepeatedParts
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


def parsed_both_ways(reader: RepeatedParts, data: bytes, before: str) -> tuple[JsonValue, JsonValue]:
    """Return an event parsed in full, and parsed without its repeated parts.

    The repeated text is put back, and the ids are replaced by their number. `before` is the text of the previous event.
    """
    whole, left = loaded(data), loaded(reader.without(data))
    ids = left.get("output_ids") if isinstance(left, dict) else None
    if isinstance(left, dict) and isinstance(ids, list):
        count = reader.count + len(ids)
        reader.know(count)
        left["output_ids"] = count
        if reader.text:
            left["text"] = before + str(left["text"])
    if isinstance(whole, dict) and isinstance(listed := whole.get("output_ids"), list):
        whole["output_ids"] = len(listed)
    return whole, left


@given(st.lists(st.tuples(texts, numbers, tails), max_size=6))
def test_events_say_the_same_without_what_they_repeat(events: list[tuple[str, list[int], JsonObject]]) -> None:
    reader, so_far, said, before = RepeatedParts(), list[int](), "", ""
    for text, ids, tail in events:
        so_far += ids
        said += text
        for shown, listed in ((said, so_far), (text, so_far), (text, ids)):
            whole, left = parsed_both_ways(reader, event(shown, listed, tail), before)
            assert left == whole
            before = shown


@given(
    st.lists(st.integers(0, 99), min_size=1, max_size=4),
    st.text(st.sampled_from('0123456789,]["{}\\ :at'), max_size=8),
    st.integers(0, 60),
)
def test_an_event_is_as_much_json_as_without_what_it_repeats(ids: list[int], noise: str, place: int) -> None:
    reader = RepeatedParts()
    first = event("a", ids, {})
    parsed_both_ways(reader, first, "")
    at = min(place, len(first))
    whole, left = parsed_both_ways(reader, first[:at] + noise.encode() + first[at:], "a")
    assert left == whole


def reader_after(first: bytes, ids: int) -> RepeatedParts:
    """Return a reader whose stream began with this event."""
    reader = RepeatedParts()
    assert reader.without(first) == first
    reader.know(ids)
    return reader


def test_a_text_that_goes_on_is_left_out() -> None:
    reader = reader_after(event("The sky", [1, 2], {}), 2)
    assert reader.without(event("The sky is", [1, 2, 3], {})) == event(" is", [3], {})
    assert reader.text
    reader.know(3)
    assert reader.without(event("The sky was", [1, 2, 3, 4], {})) == event("The sky was", [4], {})
    assert not reader.text


def test_a_text_that_may_end_within_a_character_is_not_left_out() -> None:
    for halves in ((b"\xe2", b"\x82\xac"), (rb"\ud83d", rb"\ude00")):
        first = b'{"text":"%b","output_ids":[1]}' % halves[0]
        reader = reader_after(first, 1)
        whole = b"".join(halves)
        assert reader.without(b'{"text":"%b","output_ids":[1,2]}' % whole) == b'{"text":"%b","output_ids":[2]}' % whole
        assert not reader.text


def test_an_event_that_ends_where_the_text_before_did_is_read_as_it_is() -> None:
    reader = reader_after(event("a", [1], {}), 1)
    assert reader.without(b'{"text":"a') == b'{"text":"a'


def test_ids_that_continue_are_left_out_and_counted() -> None:
    reader = reader_after(event("a", [10, 11], {}), 2)
    assert reader.without(event("b", [10, 11, 12], {})) == event("b", [12], {})
    assert reader.count == 2


def test_a_number_that_only_begins_alike_is_another() -> None:
    reader = reader_after(event("a", [1, 2], {}), 2)
    assert reader.without(event("a", [1, 23], {})) == event("a", [1, 23], {})
