"""Items of a request: their checks, the items that references stand for, and the items before them."""

import orjson
import pytest

from providers.json_types import JsonObject, JsonValue
from providers.unified_request import Operation
from proxy.errors import GatewayError
from proxy.surfaces.responses.input_items import (
    MAX_ID_LENGTH,
    MAX_ITEMS,
    MAX_REFERENCES,
    is_id,
    is_own_id,
    referred_ids,
    with_ids,
)
from proxy.surfaces.responses.responses_surface import RESPONSES
from proxy.surfaces.surface import ReferredIds, RequestContext, StoredResponse
from tests.proxy.surfaces.responses.kit import ask, losses, messages_of, native_body, refused, stored, typed
from tests.support.looped import looped

USER: JsonObject = {"type": "message", "role": "user", "content": "first"}
SAID: JsonObject = typed("message", id="msg_a_0", role="assistant", content=[typed("output_text", text="yes")])
THOUGHT: JsonObject = typed("reasoning", id="rs_a_1", summary=[typed("summary_text", text="hm")])


def chained(*chain: StoredResponse) -> RequestContext:
    return RequestContext(chain=chain)


def test_a_text_is_one_message_of_the_user() -> None:
    request = ask(input="hello")
    assert messages_of(request) == [{"role": "user", "content": "hello"}]
    assert request.terms.input == (typed("message", role="user", content=[typed("input_text", text="hello")]),)
    assert native_body(request)["input"] == "hello"


def test_a_conversation_goes_on_after_the_responses_before_it() -> None:
    before = stored("resp_1", USER, said=(SAID,))
    then = stored("resp_2", {**USER, "content": "second"}, said=(SAID,), after=("resp_1",))
    request = ask(chained(before, then), previous_response_id="resp_2", input="third", instructions="new")
    assert messages_of(request) == [
        {"role": "system", "content": "new"},
        {"role": "user", "content": "first"},
        {"role": "assistant", "content": "yes"},
        {"role": "user", "content": "second"},
        {"role": "assistant", "content": "yes"},
        {"role": "user", "content": "third"},
    ]
    assert request.terms.ancestors == ("resp_1", "resp_2")
    assert [item["content"] for item in request.terms.input] == [[typed("input_text", text="third")]]
    listed = native_body(request)["input"]
    assert isinstance(listed, list)
    assert len(listed) == 5
    assert "previous_response_id" not in native_body(request)


def test_nothing_new_need_be_said_after_a_response() -> None:
    request = ask(chained(stored("resp_1", USER)), previous_response_id="resp_1", input=[])
    assert messages_of(request) == [{"role": "user", "content": "first"}]


@pytest.mark.parametrize("chain", [(), (stored("resp_2"),)])
def test_a_response_that_is_not_stored_is_told_by_code(chain: tuple[StoredResponse, ...]) -> None:
    facts = refused(chained(*chain), previous_response_id="resp_1")
    assert (facts.status, facts.code, facts.param) == (400, "previous_response_not_found", "previous_response_id")


def test_references_stand_for_stored_items() -> None:
    context = RequestContext(items={"msg_a_0": SAID, "rs_a_1": THOUGHT})
    request = ask(context, input=[USER, typed("item_reference", id="rs_a_1"), typed("item_reference", id="msg_a_0")])
    assert messages_of(request)[1] == {"role": "assistant", "content": "yes", "reasoning_content": "hm"}
    assert request.terms.input == (USER, THOUGHT, SAID)


def test_thinking_that_is_gone_is_left_out_and_named_and_any_other_item_is_an_error() -> None:
    request = ask(input=[USER, typed("item_reference", id="rs_gone")])
    assert losses(request).left_out == losses(request).native_left_out == ("reasoning",)
    facts = refused(input=[USER, typed("item_reference", id="msg_gone")])
    assert (facts.status, facts.code, facts.param) == (404, "item_not_found", "input")


@looped(
    ("item", "param"),
    [
        (3, "input.0"),
        ({}, "input.0.type"),
        ({"id": "msg_1"}, "input.0.type"),
        ({"role": "critic", "content": "x"}, "input.0.role"),
        ({"role": "user"}, "input.0.content"),
        ({"role": "user", "content": [3]}, "input.0.content.0"),
        ({"role": "user", "content": [{"text": "x"}]}, "input.0.content.0.type"),
        (typed("function_call", name="f", arguments="{}"), "input.0.call_id"),
        (typed("function_call", call_id="c", arguments="{}"), "input.0.name"),
        (typed("function_call", call_id="c", name="f", arguments={}), "input.0.arguments"),
        (typed("function_call", call_id="c", name="f", namespace=3, arguments=""), "input.0.namespace"),
        (typed("custom_tool_call", call_id="c", name="f"), "input.0.input"),
        (typed("function_call_output", call_id="c"), "input.0.output"),
        (typed("custom_tool_call_output", output="x"), "input.0.call_id"),
        (typed("reasoning", summary="x"), "input.0.summary"),
        (typed("reasoning", summary=[], encrypted_content=3), "input.0.encrypted_content"),
        (typed("item_reference"), "input.0.id"),
    ],
)
def test_an_item_that_makes_no_sense_is_refused_by_name(item: JsonValue, param: str) -> None:
    assert refused(input=[item]).param == param


@looped("given", [3, {}, []])
def test_an_input_that_says_nothing_is_refused(given: JsonValue) -> None:
    assert refused(input=given).param == "input"


def test_ten_thousand_items_are_refused_whether_they_are_sent_or_stored() -> None:
    assert refused(input=[USER] * 10_000).param == "input"
    chain = stored("resp_1", *[USER] * MAX_ITEMS)
    assert refused(chained(chain), previous_response_id="resp_1").param == "input"


def test_thousands_of_calls_of_one_turn_are_read() -> None:
    calls: list[JsonValue] = [
        typed("function_call", call_id=f"c{number}", name="f", arguments="{}") for number in range(8000)
    ]
    (turn,) = messages_of(ask(input=calls))
    held = turn["tool_calls"]
    assert isinstance(held, list)
    assert len(held) == 8000


def test_deep_nesting_is_refused() -> None:
    deep = b'{"a":' * 5000 + b"1" + b"}" * 5000
    with pytest.raises(GatewayError):
        RESPONSES.parse(Operation.CHAT, b'{"model":"m","input":[' + deep + b"]}", None)


def test_stored_items_keep_their_ids_or_get_one_of_their_place() -> None:
    items: tuple[JsonObject, ...] = (USER, {**USER, "id": "mine"}, typed("function_call_output"), typed("other"))
    ids = [item["id"] for item in with_ids(items, "u1")]
    assert ids == ["msg_u1_i0", "mine", "fco_u1_i2", "item_u1_i3"]
    assert with_ids(items, "u1") == with_ids(items, "u1")


@looped(
    ("name", "own"),
    [
        ("msg_0123456789abcdef01234567_1", True),
        ("fco_u1_i2", True),
        ("msg_f4f1400e-22fd-5f07-be08-c822082dc1e0", False),
        ("rs_68cf3b1c", False),
        (None, False),
    ],
)
def test_ids_of_this_gateway_are_known(name: JsonValue, own: bool) -> None:
    assert is_own_id(name) is own


# References -----------------------------------------------------------------------------------------------------------


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
