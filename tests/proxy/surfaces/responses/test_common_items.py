"""Inputs of only the most common items: which inputs they are, and that they are read with the same result as by the
full parser."""

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from providers.json_types import JsonObject, JsonValue
from providers.unified_request import ChatPrompt, Operation
from proxy.errors import ErrorFacts, GatewayError
from proxy.surfaces.request.chat_messages import MAX_MESSAGES
from proxy.surfaces.request.parse_json import MAX_ELEMENTS
from proxy.surfaces.responses import read_request
from proxy.surfaces.responses.common_items import common_input
from proxy.surfaces.responses.request_draft import ResponsesRequest
from proxy.surfaces.responses.responses_surface import RESPONSES
from proxy.surfaces.thinking_envelope import seal
from tests.proxy.surfaces.responses.kit import ask, losses, messages_of, native_body, typed
from tests.support.looped import looped

HI: JsonObject = typed("message", role="user", content=[typed("input_text", text="hi")])
SAID: JsonObject = typed("message", role="assistant", content=[typed("output_text", text="yes", annotations=[])])
CALL: JsonObject = typed("function_call", call_id="c1", name="f", arguments="{}")
RESULT: JsonObject = typed("function_call_output", call_id="c1", output="done")
CUSTOM: JsonObject = typed("custom_tool_call", call_id="c2", name="g", input="x")
CUSTOM_RESULT: JsonObject = typed("custom_tool_call_output", call_id="c2", output="")
THOUGHT: JsonObject = typed("reasoning", id="rs_68", summary=[typed("summary_text", text="hm")], encrypted_content="gA")
COMMON = (HI, SAID, CALL, RESULT, CUSTOM, CUSTOM_RESULT, THOUGHT)
EASY: JsonObject = {"role": "developer", "content": "be brief"}


@looped("item", [*COMMON, EASY])
def test_the_commonest_items_are_taken_as_they_are(item: JsonObject) -> None:
    listed: list[JsonValue] = [item, HI]
    found = common_input(listed, instructed=False)
    assert found is not None
    assert list(found.items) == [{**item, "type": item.get("type", "message")}, HI]
    assert (found.native is listed) is ("type" in item)


def test_fields_that_openai_refuses_are_left_out_of_an_item() -> None:
    found = common_input([{**HI, "id": "msg_a_0", "status": None, "phase": "x"}], instructed=False)
    assert found is not None
    assert found.items == ({**HI, "id": "msg_a_0", "status": None, "phase": "x"},)
    assert found.native == [{**HI, "phase": "x"}]


@looped(
    "item",
    [
        "text",
        {**HI, "type": None},
        {**HI, "type": ["message"]},
        {**HI, "role": "tool"},
        {**HI, "content": ""},
        {**HI, "content": []},
        {**HI, "content": [typed("input_image", image_url="https://example.com/x.png")]},
        {**HI, "content": [typed("input_text", text="a", annotations=[])]},
        {**SAID, "content": [typed("output_text", text="a", annotations=[{"type": "url_citation"}])]},
        {**SAID, "extra_content": {"google": {}}},
        {**SAID, "encrypted_content": "x"},
        {**CALL, "namespace": "n"},
        {**CALL, "arguments": {}},
        {**CALL, "role": "assistant"},
        {**RESULT, "output": None},
        {**RESULT, "call_id": ""},
        {**THOUGHT, "encrypted_content": None},
        {**THOUGHT, "encrypted_content": seal([{"type": "reasoning.text"}])},
        {**THOUGHT, "summary": ["hm"]},
        typed("item_reference", id="msg_1"),
        typed("web_search_call", id="ws_1"),
    ],
)
def test_any_other_item_is_for_the_full_way(item: JsonValue) -> None:
    assert common_input([HI, item], instructed=False) is None


def test_an_input_that_may_be_refused_as_a_whole_is_for_the_full_way() -> None:
    many: JsonValue = [{**CALL, "arguments": "[" + "1," * MAX_ELEMENTS}]
    long: list[JsonValue] = [HI] * MAX_MESSAGES
    for refusable in ("hi", None, [], long, many):
        assert common_input(refusable, instructed=False) is None
    assert common_input([THOUGHT], instructed=False) is None
    assert common_input([THOUGHT], instructed=True) is not None
    assert common_input([{**CALL, "arguments": "x" * (MAX_ELEMENTS + 1)}], instructed=False) is not None


def test_the_conversation_is_made_when_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    request = ask(input=[HI, CALL, RESULT], instructions="go")
    made: list[object] = []
    monkeypatch.setattr("proxy.surfaces.responses.read_conversation.ConversationReader", made.append)
    assert native_body(request)["input"] == [HI, CALL, RESULT]
    assert made == []
    with pytest.raises(AttributeError):
        messages_of(request)
    assert len(made) == 1


def test_reasoning_of_openai_is_named_as_left_out_of_a_translation() -> None:
    assert losses(ask(input=[HI, THOUGHT, CALL, RESULT])).left_out == ("reasoning",)


# The full parser ------------------------------------------------------------------------------------------------------


def in_full(body: bytes) -> ResponsesRequest | ErrorFacts:
    """Return the result of a body by the full parser."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(read_request, "common_input", lambda given, instructed: None)
        return outcome(body)


def outcome(body: bytes) -> ResponsesRequest | ErrorFacts:
    """Return the result of a body."""
    try:
        return RESPONSES.parse(Operation.CHAT, body, "m")
    except GatewayError as error:
        return error.facts


def written(request: ResponsesRequest | ErrorFacts) -> object:
    """Return all of a result, with the order of the fields of JSON objects."""
    if isinstance(request, ErrorFacts):
        return request
    assert isinstance(request.prompt, ChatPrompt)
    native = request.native and orjson.dumps(request.native.body)
    return request, orjson.dumps(request.prompt.messages), request.prompt.plain, native, request.losses, request.terms


def has_parts(request: ResponsesRequest) -> bool:
    """Return whether a message has a list of parts."""
    return any([isinstance(message.get("content"), list) for message in messages_of(request)])


TEXT = st.sampled_from(["", "a", "tab\tand \U0001f600"])
EMPTY: st.SearchStrategy[JsonValue] = st.sampled_from([None, [], {}, 0, False, "x"])
PART = st.one_of(
    st.builds(
        lambda kind, text: {"type": kind, "text": text}, st.sampled_from(["input_text", "output_text", "text"]), TEXT
    ),
    st.fixed_dictionaries(
        {"type": st.sampled_from(["output_text", "input_text"]), "text": st.just("b")},
        optional={"annotations": EMPTY, "logprobs": EMPTY, "parsed": EMPTY},
    ),
    st.sampled_from([typed("refusal", refusal="no"), typed("input_image", image_url="data:image/png;base64,AA"), 3]),
)
CONTENT = st.one_of(TEXT, st.lists(PART, max_size=3), EMPTY)
IDS = st.sampled_from(["msg_68cf", "msg_a_0", "fc_u1_i3", None, 7])
BESIDE = st.dictionaries(
    st.sampled_from(
        [
            "id",
            "status",
            "phase",
            "extra_content",
            "namespace",
            "parsed",
            "encrypted_content",
            "role",
            "created_by",
            "name",
        ]
    ),
    st.one_of(IDS, EMPTY),
    max_size=2,
)
MESSAGE = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "assistant", "system", "developer", "tool"]), "content": CONTENT},
    optional={"type": st.sampled_from(["message", "message", "message", None, ""])},
)
OTHER = st.one_of(
    st.sampled_from([*COMMON, EASY]),
    st.builds(lambda item, output: {**item, "output": output}, st.sampled_from([RESULT, CUSTOM_RESULT]), CONTENT),
    st.builds(
        lambda item, name, value: {**item, name: value},
        st.sampled_from([CALL, CUSTOM, RESULT, THOUGHT]),
        st.sampled_from(["call_id", "name", "arguments", "input", "summary", "content", "encrypted_content", "type"]),
        EMPTY,
    ),
)
ITEM = st.one_of(
    st.sampled_from(COMMON), MESSAGE, st.builds(lambda item, more: {**more, **item}, MESSAGE | OTHER, BESIDE), OTHER
)


@given(st.lists(ITEM, max_size=6), st.sampled_from([None, "", "go", 3]), st.sampled_from([{}, {"n": 2}, {"tools": 3}]))
@example([HI, SAID, SAID], None, {})
@example([HI, SAID, CALL, SAID, RESULT], "go", {})
@example([THOUGHT], None, {})
@example([HI, {**SAID, "content": "x"}], None, {})
def test_an_input_is_read_as_on_the_full_way(items: list[JsonValue], said: JsonValue, more: JsonObject) -> None:
    body = orjson.dumps({"input": items, "instructions": said, **more})
    found = outcome(body)
    assert written(found) == written(in_full(body))
    if isinstance(found, ResponsesRequest) and isinstance(found.prompt, ChatPrompt) and found.prompt.without_parts:
        assert not has_parts(found)


@given(st.lists(st.sampled_from([*COMMON, EASY]), min_size=1, max_size=8))
def test_a_conversation_of_common_items_is_known_to_have_parts_or_none(items: list[JsonObject]) -> None:
    found = common_input([HI, *items], instructed=False)
    assert found is not None
    assert found.without_parts is not has_parts(ask(input=[HI, *items]))


@looped("odd", [{}, [], 1, None, True])
def test_whatever_stands_in_place_of_a_type_or_a_role_is_read_as_on_the_full_way(odd: JsonValue) -> None:
    for item in (*COMMON, EASY):
        for name in ("type", "role"):
            changed: list[JsonObject] = [{**item, name: odd}]
            for held in ("content", "output", "summary"):
                parts = item.get(held) if isinstance(item.get(held), list) else [typed("input_text", text="x")]
                assert isinstance(parts, list)
                changed.append({**item, held: [{**part, name: odd} for part in parts if isinstance(part, dict)]})
            for each in changed:
                body = orjson.dumps({"input": [HI, each, RESULT]})
                assert written(outcome(body)) == written(in_full(body)), body
