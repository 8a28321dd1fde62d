"""Stored responses as entries and back: the fields that are stored, and entries that another program has written."""

from dataclasses import replace
from functools import partial

import orjson
import pytest

from providers.json_types import JsonObject
from proxy.conversations.response_entries import (
    MOST_BYTES,
    MOST_ITEMS,
    MOST_TURNS,
    StoredData,
    ancestors_in,
    answer_in,
    entries_of,
    item_key,
    items_of,
    read_chain,
    read_items,
    read_turn,
    response_key,
    session_in,
)
from proxy.errors import GatewayError
from proxy.surfaces.surface import StoredResponse
from tests.support.cpu_growth import excess
from tests.support.looped import looped


def item(name: str, **members: str) -> JsonObject:
    return {"id": name, "type": "message", **members}


def response(
    name: str, *ancestors: str, said: tuple[JsonObject, ...] = (), out: tuple[JsonObject, ...] = ()
) -> StoredResponse:
    return StoredResponse(name, ancestors, said, {"id": name, "object": "response", "output": [*out]})


STORED = response("resp_2", "resp_0", "resp_1", said=(item("msg_1"),), out=(item("rs_2"), item("msg_2")))


def test_a_response_comes_back_as_it_was() -> None:
    data = entries_of(STORED)[response_key("resp_2")]
    assert ancestors_in(data) == ("resp_0", "resp_1")
    turn = read_turn("resp_2", data)
    assert turn is not None
    assert turn.response == {"id": "resp_2", "output": STORED.response["output"]}
    assert replace(turn, response=STORED.response) == STORED
    assert orjson.loads(answer_in("resp_2", data) or b"") == STORED.response
    assert items_of(STORED) == [item("msg_1"), item("rs_2"), item("msg_2")]


def test_the_number_of_its_conversation_is_read_without_the_rest() -> None:
    data = entries_of(STORED, 0x1F)[response_key("resp_2")]
    assert session_in(data) == 0x1F
    assert read_turn("resp_2", data) == read_turn("resp_2", entries_of(STORED)[response_key("resp_2")])
    earlier = entries_of(response("resp_1"), 7)[response_key("resp_1")]
    assert StoredData({"resp_1": earlier, "resp_2": data}).session == 0x1F
    assert StoredData().session is None


@looped("data", [entries_of(STORED)[response_key("resp_2")], b"", b"[]", b'[]\n{"session":"1f"}', b'[]\n{"session":"'])
def test_what_no_gateway_wrote_has_no_conversation(data: bytes) -> None:
    assert session_in(data) is None
    assert StoredData({"r": data}).session is None


def test_each_item_leads_to_its_response() -> None:
    entries = entries_of(STORED)
    assert {key: data for key, data in entries.items() if key != response_key("resp_2")} == {
        item_key(name): b"resp_2" for name in ("msg_1", "rs_2", "msg_2")
    }


def test_an_item_can_never_be_asked_for_as_a_response() -> None:
    made = entries_of(response("resp_1", said=(item("resp_9"), item("r:resp_1"), item("i:x"))))
    assert sorted(made) == ["i:i:x", "i:r:resp_1", "i:resp_9", "r:resp_1"]


def test_items_without_a_usable_id_are_kept_and_not_found_by_it() -> None:
    odd: tuple[JsonObject, ...] = ({"type": "message"}, {"id": 7}, {"id": ""}, {"id": "x" * 129})
    entries = entries_of(response("resp_1", said=odd))
    assert list(entries) == ["r:resp_1"]
    again = read_turn("resp_1", entries["r:resp_1"])
    assert again is not None
    assert again.input == odd


def test_the_output_and_the_latest_of_the_input_can_be_found_where_there_are_too_many() -> None:
    said = tuple(item(f"in_{number}") for number in range(MOST_ITEMS + 50))
    entries = entries_of(response("resp_1", said=said, out=(item("msg_1"),)))
    assert len(entries) == MOST_ITEMS + 1
    assert item_key("msg_1") in entries
    assert item_key(f"in_{MOST_ITEMS + 49}") in entries
    assert item_key("in_50") not in entries


def test_what_is_too_long_or_no_json_is_not_kept() -> None:
    assert entries_of(response("resp_1", said=(item("m", text="x" * MOST_BYTES),))) == {}
    assert entries_of(response("resp_1", said=(item("m", text="\ud800"),))) == {}


@looped("name", ["", "x" * 129, "x" * 1_000_000])
def test_an_id_that_nobody_could_ask_for_is_not_kept(name: str) -> None:
    assert entries_of(response(name)) == {}


GOOD = entries_of(STORED)[response_key("resp_2")]


@looped(
    "data",
    [
        b"",
        b"\n",
        b"[]",
        b"[]\n",
        b"[]\n[]\n{}",
        b"[]\n{}\n{}",
        b'[1]\n{"input":[],"output":[]}\n{"id":"resp_2"}',
        b'[""]\n{"input":[],"output":[]}\n{"id":"resp_2"}',
        b'{}\n{"input":[],"output":[]}\n{"id":"resp_2"}',
        b'[]\n{"input":{},"output":[]}\n{"id":"resp_2"}',
        b'[]\n{"input":[],"output":null}\n{"id":"resp_2"}',
        b'[]\n{"input":[],"output":[]}',
        b"\xff\n\xff",
        b"resp_2",
        orjson.dumps(["r"] * (MOST_TURNS + 1)) + b'\n{"input":[],"output":[]}\n{}',
        b'[]\n{"output":[],"input":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n{}",
    ],
)
def test_what_no_gateway_wrote_is_not_there(data: bytes) -> None:
    assert read_turn("resp_2", data) is None
    assert answer_in("resp_2", data) is None
    assert read_items(StoredData({}, {"msg_1": "resp_2"}, {"resp_2": data})) == {}


@looped("data", [b"", b"[]", b"[]\n{}\n{}", b"resp_2", b'[]\n{"input":{},"output":[]}\n{}'])
def test_a_conversation_with_what_no_gateway_wrote_does_not_go_on(data: bytes) -> None:
    good = entries_of(response("resp_1"))[response_key("resp_1")]
    with pytest.raises(GatewayError) as caught:
        read_chain(StoredData({"resp_1": good, "resp_2": data}))
    assert caught.value.facts.code == "previous_response_not_found"
    assert "'resp_2'" in caught.value.facts.message


@looped("rest", [b"", b"{}", b"[]", b'{"id":"other"}', b'{"id":"resp_2"', b"\xff"])
def test_an_answer_that_no_gateway_wrote_is_not_given_out(rest: bytes) -> None:
    assert answer_in("resp_2", b'[]\n{"input":[],"output":[]}\n' + rest) is None


def test_named_items_are_taken_from_the_response_that_they_lead_to() -> None:
    old = response("resp_1", said=(item("msg_1", text="old"),))
    new = response("resp_2", said=(item("msg_1", text="new"), item("msg_2")))
    held = {each.id: entries_of(each)[response_key(each.id)] for each in (old, new)}
    found = read_items(StoredData({}, {"msg_1": "resp_2", "gone": "resp_1", "away": "resp_9"}, held))
    assert found == {"msg_1": item("msg_1", text="new")}


def test_a_dense_response_of_the_largest_size_is_refused_quickly() -> None:
    data = b'[]\n{"output":[],"input":[' + b"{}," * 2_700_000 + b"{}]}\n{}"
    assert read_turn("resp_2", data) is None
    assert excess(partial(read_turn, "resp_2", data), 30) == ""
