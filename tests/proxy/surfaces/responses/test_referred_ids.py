"""What is looked up for a body, before anything else is known of it."""

import orjson

from proxy.surfaces.responses.referred_ids import MAX_ID_LENGTH, MAX_REFERENCES, is_id, referred_ids
from proxy.surfaces.surface import ReferredIds
from tests.support.looped import looped


def refer(**members: object) -> ReferredIds:
    return referred_ids(orjson.dumps({"model": "m", "input": "hi", **members}))


def test_a_body_refers_to_the_response_before_it_and_to_items_by_id() -> None:
    items = [{"type": "item_reference", "id": "rs_1"}, {"role": "user", "content": "hi"}]
    again = [*items, {"type": "item_reference", "id": "rs_1"}, {"type": "item_reference", "id": "msg_2"}]
    assert refer(previous_response_id="resp_1", input=again) == ReferredIds("resp_1", ("rs_1", "msg_2"))


@looped(
    "body",
    [
        b'{"model":"m","input":"hi"}',
        b'{"input":"previous_response_id and item_reference"}',
        b'{"previous_response_id":null,"input":[]}',
        b'["previous_response_id"]',
        b'{"previous_response_id":',
        b'{"previous_response_id":' + b"[" * 100_000,
        b'{"previous_response_id":7,"input":[{"type":"item_reference"},{"type":"item_reference","id":[1]},3]}',
    ],
)
def test_other_bodies_refer_to_nothing(body: bytes) -> None:
    assert referred_ids(body) == ReferredIds()


@looped("name", ["", "x" * (MAX_ID_LENGTH + 1), "resp_\n", "resp_é", "resp_\x00"])
def test_what_was_never_given_out_is_not_looked_up(name: str) -> None:
    assert not is_id(name)
    assert refer(previous_response_id=name, input=[{"type": "item_reference", "id": name}]) == ReferredIds()


def test_a_bounded_number_of_items_is_looked_up() -> None:
    items = [{"type": "item_reference", "id": f"rs_{number}"} for number in range(10_000)]
    assert len(refer(input=items).items) == MAX_REFERENCES
