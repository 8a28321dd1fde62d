"""A client's own body of the Messages API, and the corrections for content that Claude would refuse."""

from copy import deepcopy

import orjson
from hypothesis import given
from hypothesis import strategies as st

from providers.dialects.anthropic.native_body import (
    MendedBody,
    instructions_as_users,
    mend_body,
    objects_in,
    remove_thinking,
    unscope_markers,
)
from providers.json_types import JsonObject, JsonValue
from tests.providers.dialects.anthropic.random_turns import ODD, USUAL
from tests.support.looped import looped

MARK: JsonValue = {"type": "ephemeral"}
SIGNED: JsonObject = {"type": "thinking", "thinking": "Hm.", "signature": "EqQBCgIYAhIM+/8="}
SAID: JsonObject = {"type": "text", "text": "Yes."}
SEALED = "dragoman.thinking.1:eyJkZXRhaWxzIjpbXX0="


def user(*blocks: JsonValue) -> JsonObject:
    return {"role": "user", "content": [*blocks]}


def model(*blocks: JsonValue) -> JsonObject:
    return {"role": "assistant", "content": [*blocks]}


def body(*turns: JsonObject, **members: JsonValue) -> JsonObject:
    return {"model": "m", "max_tokens": 9, "messages": [*turns], **members}


def turns_of(*turns: JsonObject) -> JsonValue:
    return mended(body(*turns)).body["messages"]


def mended(given: JsonObject) -> MendedBody:
    """The mended body, of one that must not have changed itself."""
    before = deepcopy(given)
    made = mend_body(given)
    assert given == before
    return made


EVERYTHING = body(
    user({**SAID, "cache_control": MARK}, {"type": "unheard_of", "a": [{"b": None}]}),
    model(SIGNED, {"type": "redacted_thinking", "data": "EmwKAhgB"}, SAID, {"type": "server_tool_use", "id": "s.1"}),
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "go on", "unheard_of": True},
    system=[{**SAID, "cache_control": {"type": "ephemeral", "ttl": "1h"}}],
    tools=[{"name": "look", "input_schema": {"x": None}}, {"type": "web_search_20250305", "name": "web_search"}],
    context_management={"edits": []},
    unheard_of={"deep": [1, {"er": None}]},
)


def test_what_the_vendor_takes_goes_as_it_came_known_or_not() -> None:
    made = mended(EVERYTHING)
    assert orjson.dumps(made.body) == orjson.dumps(EVERYTHING)
    assert (made.dropped, made.emulated) == ([], [])


def test_null_at_the_top_is_absent() -> None:
    made = mended(body(user(SAID), temperature=None, container=None))
    assert made.body == body(user(SAID))


def test_searches_and_citations_of_another_vendor_are_left_out_and_named() -> None:
    use: JsonObject = {"type": "server_tool_use", "id": "srvtoolu_dragoman_ws_1", "name": "web_search", "input": {}}
    found: JsonObject = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_dragoman_ws_1", "content": []}
    foreign: JsonObject = {"type": "web_search_result_location", "url": "https://x.example", "encrypted_index": ""}
    own: JsonObject = {**foreign, "encrypted_index": "e"}
    made = mended(body(user(SAID), model(use, found, {**SAID, "citations": [foreign, own]}), user(SAID)))
    assert made.body["messages"] == [user(SAID), model({**SAID, "citations": [own]}), user(SAID)]
    assert made.dropped == ["web_search_tool_result", "web_search_tool_result", "citations"]
    alone = mended(body(model({**SAID, "citations": [foreign]})))
    assert alone.body["messages"] == [model(SAID)]


@looped("signature", [None, "", SEALED, "dragoman.thinking.2:x", "call__thought__abc", 7, "a b"])
def test_thinking_that_no_claude_signed_is_left_out_and_named(signature: JsonValue) -> None:
    foreign: JsonObject = {"type": "thinking", "thinking": "Hm.", "signature": signature}
    made = mended(body(user(SAID), model(foreign, SIGNED, SAID), user(SAID)))
    assert made.body["messages"] == [user(SAID), model(SIGNED, SAID), user(SAID)]
    assert made.dropped == ["thinking"]


def test_thinking_without_a_signature_member_is_left_out_and_an_envelope_of_redacted_thinking_too() -> None:
    blocks: list[JsonValue] = [{"type": "thinking", "thinking": "Hm."}, {"type": "redacted_thinking", "data": SEALED}]
    assert turns_of(user(SAID), model(*blocks, SAID)) == [user(SAID), model(SAID)]


def test_a_turn_of_which_nothing_is_left_goes_too() -> None:
    empty: JsonObject = {"type": "text", "text": " \n"}
    blank: JsonObject = {"role": "assistant", "content": ""}
    assert turns_of(user(SAID), model({"type": "thinking", "thinking": "x"}, empty), blank) == [user(SAID)]


def test_blank_texts_are_left_out_of_turns_results_and_instructions() -> None:
    blank: JsonObject = {"type": "text", "text": ""}
    result: JsonObject = {"type": "tool_result", "tool_use_id": "t1", "content": [blank, SAID], "is_error": True}
    empty: JsonObject = {"type": "tool_result", "tool_use_id": "t2", "content": [blank]}
    made = mended(body(user(blank, result, empty), system=[blank, SAID]))
    kept: JsonObject = {**result, "content": [SAID]}
    assert made.body["messages"] == [user(kept, {"type": "tool_result", "tool_use_id": "t2"})]
    assert made.body["system"] == [SAID]
    assert "system" not in mended(body(user(SAID), system=[blank])).body


def test_a_marker_that_is_lost_with_a_blank_text_is_named() -> None:
    made = mended(body(user(SAID, {"type": "text", "text": "", "cache_control": MARK})))
    assert made.dropped == ["cache_control"]


def test_ids_that_other_vendors_made_are_fitted_alike_in_calls_and_results() -> None:
    call: JsonObject = {"type": "tool_use", "id": "functions.look:0", "name": "look", "input": {}}
    result: JsonObject = {"type": "tool_result", "tool_use_id": "functions.look:0", "content": "x"}
    made = mended(body(user(SAID), model(call), user(result)))
    turns = made.turns
    (fitted,), (answered,) = objects_in(turns[1]["content"]), objects_in(turns[2]["content"])
    assert fitted["id"] == answered["tool_use_id"]
    assert str(fitted["id"]).startswith("call_")


def test_ids_of_calls_that_repeat_are_replaced_in_calls_and_results() -> None:
    call: JsonObject = {"type": "tool_use", "id": "call_0", "name": "look", "input": {}}
    result: JsonObject = {"type": "tool_result", "tool_use_id": "call_0", "content": "x"}
    turns = mended(body(user(SAID), model(call), user(result), model(call, call), user(result, result))).turns
    calls = [str(block["id"]) for turn in turns[1::2] for block in objects_in(turn["content"])]
    assert [block["tool_use_id"] for turn in turns[2::2] for block in objects_in(turn["content"])] == calls
    assert len({*calls}) == 3
    assert calls[0] == "call_0"


def test_an_error_without_content_says_that_it_is_empty() -> None:
    failed: JsonObject = {"type": "tool_result", "tool_use_id": "t", "is_error": True}
    empty: list[JsonObject] = [{}, {"content": ""}, {"content": []}, {"content": [{"type": "text", "text": " "}]}]
    for content in empty:
        assert mended(body(user({**failed, **content}))).turns == [user({**failed, "content": "(empty)"})]


def test_markers_beyond_the_fourth_go_and_are_named() -> None:
    marked: JsonObject = {**SAID, "cache_control": MARK}
    made = mended(
        body(user(*[marked] * 3), user(marked), system=[marked], tools=[{"name": "f", "cache_control": MARK}])
    )
    assert orjson.dumps(made.body).count(b"cache_control") == 4
    assert made.dropped == ["cache_control"]


@looped("messages", ["x", None, [1, "x", None], [{"role": "user"}], [{"content": 1}], [[]]])
def test_what_has_no_form_of_a_turn_is_the_vendor_s_to_refuse(messages: JsonValue) -> None:
    given: JsonObject = {"messages": messages, "system": 5, "tools": {"a": 1}}
    made = mended(given)
    for mend in (remove_thinking, instructions_as_users, unscope_markers):
        mend(made)
    assert made.body == {name: value for name, value in given.items() if value is not None}


def test_all_thinking_is_taken_out_of_a_call_that_goes_without() -> None:
    made = mended(body(user(SAID), model(SIGNED), model(SIGNED, SAID), {"role": "user", "content": "x"}))
    remove_thinking(made)
    assert made.body["messages"] == [user(SAID), model(SAID), {"role": "user", "content": "x"}]


def test_instructions_in_the_middle_are_the_user_s_where_a_platform_has_none() -> None:
    made = mended(body(user(SAID), {"role": "system", "content": "Be brief."}))
    instructions_as_users(made)
    assert made.body["messages"] == [user(SAID), {"role": "user", "content": "Be brief."}]
    assert made.emulated == ["messages"]


def test_the_scope_of_markers_is_taken_out_wherever_it_stands() -> None:
    scoped: JsonValue = {"type": "ephemeral", "scope": "global"}
    marked: JsonObject = {**SAID, "cache_control": scoped}
    tool: JsonObject = {"name": "f", "cache_control": scoped}
    made = mended(body(user(marked, SAID), system=[marked], tools=[tool], cache_control=scoped))
    unscope_markers(made)
    assert b"scope" not in orjson.dumps(made.body)
    assert orjson.dumps(made.body).count(b"ephemeral") == 4
    assert made.dropped == ["cache_control.scope"]


def test_a_body_without_scopes_is_not_touched() -> None:
    made = mended(EVERYTHING)
    unscope_markers(made)
    assert made.body == EVERYTHING
    assert made.dropped == []


AGENTS: tuple[JsonObject, ...] = (
    {"role": "user", "content": "Look."},
    model(SIGNED, SAID, {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}),
    user({"type": "tool_result", "tool_use_id": "toolu_1", "content": [SAID], "is_error": True}),
    model({"type": "tool_use", "id": "toolu_2", "name": "look", "input": {"a": None}}),
    user({"type": "tool_result", "tool_use_id": "toolu_2", "content": ""}, SAID),
)


def test_turns_with_nothing_to_mend_are_not_copied() -> None:
    given = body(*AGENTS)
    assert mended(given).body["messages"] is given["messages"]
    blank = user({"type": "text", "text": " "}, {**SAID, "cache_control": MARK})
    given = body(*AGENTS, blank, *AGENTS[:1])
    found = mended(given).body["messages"]
    assert isinstance(found, list)
    assert isinstance(given["messages"], list)
    unchanged = [made is before for made, before in zip(found, given["messages"], strict=True)]
    assert unchanged == [True] * 5 + [False, True]
    assert found[5] == user({**SAID, "cache_control": MARK})


@given(st.lists(USUAL | USUAL | ODD, max_size=5), st.booleans())
def test_turns_are_mended_alike_whether_or_not_another_has_to_be(turns: list[JsonValue], marked: bool) -> None:
    # Two calls with the same id make the whole conversation be written anew.
    call: JsonObject = {"type": "tool_use", "id": "twice", "name": "look", "input": {}}
    tools: JsonValue = [{"name": "a", "cache_control": {"type": "ephemeral", "ttl": "5m"}}] * 2 if marked else []
    quick = mended({"messages": turns, "tools": tools})
    full = mended({"messages": [*turns, model(call), model(call)], "tools": tools})
    found = full.body["messages"]
    assert isinstance(found, list)
    assert found[-2:] != [model(call), model(call)]
    assert {**full.body, "messages": found[:-2]} == quick.body
    assert (full.dropped, full.emulated) == (quick.dropped, quick.emulated)
