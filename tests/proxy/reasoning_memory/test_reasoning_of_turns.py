"""The reasoning that is stored for turns with tool calls, and its return into the messages of a client that left it
out.
"""

from dataclasses import replace
from functools import partial

import orjson
from hypothesis import given
from hypothesis import strategies as st

from providers.completion import Choice, Chunk, Extras, ToolCall, ToolCallDelta, Usage
from providers.json_types import JsonObject, JsonValue
from proxy.reasoning_memory.reasoning_of_turns import (
    MOST_BYTES,
    MOST_TURNS,
    GatheredTurns,
    TurnThinking,
    key_of_answer,
    missing_turns,
    pack_turn,
    thinking_to_keep,
    turn_key,
    unpack_turn,
    with_thinking,
)
from proxy.reasoning_memory.signed_texts import marks_of
from tests.providers.dialects.openai.kit import target
from tests.support.cpu_growth import excess
from tests.support.looped import looped
from tests.support.not_none import not_none

CLAUDE, DEEPSEEK = target("anthropic"), replace(target("deepseek"), upstream_model="deepseek-v4")
SIGNED: JsonObject = {
    "type": "reasoning.text",
    "text": "hm",
    "signature": "s",
    "format": "anthropic-claude-v1",
    "index": 0,
}
ID = "toolu_01A09q90qw90lq917835lq9"
USER: JsonObject = {"role": "user", "content": "go"}
CALL: JsonObject = {"id": ID, "type": "function", "function": {"name": "f", "arguments": "{}"}}
ASKED: JsonObject = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT: JsonObject = {"role": "tool", "tool_call_id": ID, "content": "42"}
KEPT = TurnThinking((SIGNED,), "hm")


def choice(**members: object) -> Choice:
    base = Choice(0, "", "tool_calls", tool_calls=(ToolCall(ID, "f", "{}"),), reasoning="hm")
    made = {"extras": Extras(reasoning_details=(SIGNED,)), **members}
    return replace(base, **made)  # type: ignore[arg-type]


def restored(*messages: JsonObject, kept: TurnThinking = KEPT) -> tuple[JsonObject, ...] | None:
    missing = missing_turns(messages)
    return with_thinking(messages, missing, {turn.key: kept for turn in missing})


def test_signed_thinking_before_calls_is_kept() -> None:
    assert thinking_to_keep(choice(), CLAUDE) == KEPT
    redacted: JsonObject = {"type": "reasoning.encrypted", "data": "QQ==", "format": "anthropic-claude-v1"}
    hidden = choice(reasoning=None, extras=Extras(reasoning_details=(redacted,)))
    assert thinking_to_keep(hidden, CLAUDE) == TurnThinking((redacted,))
    extra: JsonObject = {"extra_content": {"google": {"thought_signature": "s"}}}
    called = choice(reasoning=None, extras=None, signature="t", tool_calls=(ToolCall("c", "f", "{}", extra=extra),))
    assert thinking_to_keep(called, target("gemini")) == TurnThinking(signature="t", calls={"c": extra})


def test_the_text_alone_is_kept_where_the_model_wants_it() -> None:
    assert thinking_to_keep(choice(), DEEPSEEK) == TurnThinking(text="hm")


@looped(
    "changed",
    [
        {"tool_calls": ()},
        {"extras": None},
        {"extras": Extras(reasoning_details=({"type": "reasoning.text", "text": "hm", "format": "unknown"},))},
    ],
)
def test_what_no_vendor_checks_is_not_kept(changed: dict[str, object]) -> None:
    assert thinking_to_keep(choice(**changed), CLAUDE) is None
    assert thinking_to_keep(choice(), target("openai")) is None


def test_a_unique_id_alone_tells_a_turn() -> None:
    assert turn_key(ID, "f", USER) == turn_key(ID, "g", None)
    assert turn_key("call_abcdef0123456789abcdef01", "f", USER) == turn_key("call_abcdef0123456789abcdef01", "f", None)
    assert turn_key("D681PevKs", "f", USER) == turn_key("D681PevKs", "f", None)
    assert turn_key(ID, "f", None) != turn_key(ID + "x", "f", None)


@looped("call_id", ["functions.search_web2024:0", "call_0", "0", "chatcmpl-tool", "search_web2024"])
def test_an_id_that_others_may_have_tells_a_turn_only_after_the_same_message(call_id: str) -> None:
    asked: JsonObject = {"role": "user", "content": "where"}
    listed: JsonObject = {"role": "user", "content": [{"type": "text", "text": "where", "cache_control": {}}]}
    key = turn_key(call_id, "search_web2024", asked)
    assert key == turn_key(call_id, "search_web2024", listed)
    assert key != turn_key(call_id, "search_web2024", USER)
    assert key != turn_key(call_id, "search_web2024", None)


def test_the_key_of_an_answer_is_that_of_the_client_s_next_request() -> None:
    for call_id in (ID, "functions.f:0"):
        answered = choice(tool_calls=(ToolCall(call_id, "f", "{}"), ToolCall("other", "g", "{}")))
        asked: JsonObject = {**ASKED, "tool_calls": [{**CALL, "id": call_id}]}
        (missing,) = missing_turns([USER, asked, RESULT])
        assert missing.key == key_of_answer(answered, marks_of(USER))
        assert missing.position == 1


def test_a_turn_is_stored_as_json_and_read_back() -> None:
    extra: JsonObject = {"extra_content": {"google": {}}}
    for kept in (KEPT, TurnThinking(text="hm"), TurnThinking((SIGNED,), "other", "t", {"c": extra})):
        assert unpack_turn(not_none(pack_turn(kept))) == kept


def test_the_text_is_stored_once_and_a_turn_that_is_too_long_is_not() -> None:
    long = "x" * 1000
    assert len(not_none(pack_turn(TurnThinking(({**SIGNED, "text": long},), long)))) < 1200
    assert pack_turn(TurnThinking(text="x" * (MOST_BYTES - 100))) is not None
    assert pack_turn(TurnThinking(text="x" * MOST_BYTES)) is None
    assert pack_turn(TurnThinking(({"nested": [["x" * 1000] * 1000]},))) is None
    assert pack_turn(TurnThinking(text="\ud800")) is None


@looped(
    "data",
    [
        b"",
        b"\xff",
        b"[]",
        b"{}",
        b'{"details":{}}',
        b'{"details":[1]}',
        b'{"details":[],"text":1}',
        b'{"details":[],"signature":1}',
        b'{"details":[],"calls":[]}',
        b'{"details":[],"calls":{"c":1}}',
        b'{"details":[{"a":' + b"[" * 70 + b"]" * 70 + b"}]}",
        b'{"details":[],"text":"' + b"x" * MOST_BYTES + b'"}',
    ],
)
def test_what_others_wrote_is_not_taken_for_a_turn(data: bytes) -> None:
    assert unpack_turn(data) is None


@given(st.binary(max_size=50) | st.text(max_size=50).map(str.encode))
def test_any_bytes_are_a_turn_or_none(data: bytes) -> None:
    assert unpack_turn(data) is None or orjson.loads(data)


def test_thinking_goes_back_into_the_message_that_lacks_it_or_has_its_text_unchanged() -> None:
    messages = not_none(restored(USER, ASKED, RESULT))
    assert messages == (USER, {**ASKED, "reasoning_details": [SIGNED], "reasoning_content": "hm"}, RESULT)
    assert messages[0] is USER
    assert "reasoning_details" not in ASKED
    said: JsonObject = {**ASKED, "reasoning_content": "hm\n"}
    assert not_none(restored(USER, said, RESULT))[1] == {**said, "reasoning_details": [SIGNED]}
    assert restored(USER, {**ASKED, "reasoning": "of my own"}, RESULT) is None


@looped(
    "message",
    [
        {**ASKED, "reasoning_details": [{"type": "reasoning.text", "text": "x"}]},
        {**ASKED, "thinking_blocks": [{"type": "thinking", "thinking": "x"}]},
        {**ASKED, "reasoning_signature": "s"},
        {**ASKED, "content": [{"type": "thinking", "thinking": "x", "signature": "s"}]},
        {**ASKED, "content": [{"type": "redacted_thinking", "data": "x"}]},
        {**ASKED, "role": "user"},
        {**ASKED, "tool_calls": []},
        {**ASKED, "tool_calls": ["c"]},
        {**ASKED, "tool_calls": [{"id": 7}]},
        {"role": "assistant", "content": "x"},
    ],
)
def test_the_client_s_own_thinking_stays_and_plain_turns_are_not_looked_up(message: JsonObject) -> None:
    assert missing_turns([USER, message, RESULT]) == []


def test_signatures_go_back_to_the_calls_and_the_text_that_lack_them() -> None:
    extra: JsonObject = {"extra_content": {"google": {"thought_signature": "s"}}}
    kept = TurnThinking(signature="t", calls={ID: extra})
    messages = not_none(restored(USER, ASKED, kept=kept))
    assert messages[1]["tool_calls"] == [{**CALL, **extra}]
    assert messages[1]["extra_content"] == {"google": {"thought_signature": "t"}}
    own: JsonObject = {"extra_content": {"google": {"thought_signature": "own"}}}
    calls: list[JsonValue] = [{**CALL, **own}, "odd"]
    messages = not_none(restored(USER, {**ASKED, **own, "tool_calls": calls}, kept=kept))
    assert messages[1] == {**ASKED, **own, "tool_calls": calls}


def test_the_latest_turns_are_looked_up_first_and_no_more_than_so_many() -> None:
    called: list[JsonObject] = [{**ASKED, "tool_calls": [{**CALL, "id": str(turn)}]} for turn in range(MOST_TURNS + 5)]
    messages = [USER, *called]
    positions = [turn.position for turn in missing_turns(messages)]
    assert positions == list(range(MOST_TURNS + 5, 5, -1))


def chunks() -> list[Chunk]:
    signature: JsonObject = {"type": "reasoning.text", "index": 0, "signature": "s"}
    opened: JsonObject = {"type": "reasoning.text", "index": 0, "format": "anthropic-claude-v1", "text": "h"}
    return [
        Chunk(reasoning="h", extras=Extras(reasoning_details=(opened,))),
        Chunk(reasoning="m", extras=Extras(reasoning_details=({"type": "reasoning.text", "index": 0, "text": "m"},))),
        Chunk(extras=Extras(reasoning_details=(signature,))),
        Chunk(text="so"),
        Chunk(tool_calls=(ToolCallDelta(0, ID, "f"),)),
        Chunk(tool_calls=(ToolCallDelta(0, arguments="{}"),)),
    ]


def test_a_stream_s_turn_is_gathered_until_it_ends() -> None:
    gathered = GatheredTurns()
    assert [gathered.add(chunk) for chunk in chunks()] == [None] * 6
    assert gathered.add(Usage(1, 1)) is None
    ended = not_none(gathered.add(Chunk(finish_reason="tool_calls")))
    assert thinking_to_keep(ended, CLAUDE) == KEPT
    assert key_of_answer(ended, marks_of(USER)) == turn_key(ID, "f", USER)


def test_a_turn_without_calls_or_with_a_call_without_a_name_is_none() -> None:
    assert [GatheredTurns().add(Chunk(text="x", finish_reason="stop"))] == [None]
    gathered = GatheredTurns()
    gathered.add(Chunk(tool_calls=(ToolCallDelta(0, "c"),)))
    assert gathered.add(Chunk(finish_reason="tool_calls")) is None


def test_choices_are_gathered_apart() -> None:
    gathered = GatheredTurns()
    for index in (0, 1):
        for chunk in chunks():
            gathered.add(replace(chunk, index=index))
    for index in (1, 0):
        assert not_none(gathered.add(Chunk(index, finish_reason="tool_calls"))).reasoning == "hm"


@looped(
    "piece",
    [
        Chunk(reasoning="x" * 10_000),
        Chunk(extras=Extras(reasoning_details=({"type": "reasoning.text", "text": "x" * 10_000},))),
        Chunk(extras=Extras(reasoning_details=({"type": "odd", "nested": [["x" * 100] * 100]},))),
        Chunk(tool_calls=(ToolCallDelta(0, "c", "f", extra={"x": "y" * 10_000}),)),
    ],
)
def test_above_the_cap_nothing_is_gathered_and_nothing_kept(piece: Chunk) -> None:
    gathered = GatheredTurns()
    for _ in range(MOST_BYTES // 10_000 + 1):
        gathered.add(piece)
    assert not gathered._gatherers
    for chunk in chunks():
        gathered.add(chunk)
    assert gathered.add(Chunk(finish_reason="tool_calls")) is None


def test_arguments_and_texts_take_no_room() -> None:
    gathered = GatheredTurns()
    for chunk in chunks():
        gathered.add(chunk)
    for _ in range(1000):
        gathered.add(Chunk(text="x" * 10_000))
        gathered.add(Chunk(tool_calls=(ToolCallDelta(0, arguments="x" * 10_000),)))
    assert gathered.add(Chunk(finish_reason="tool_calls")) is not None


def test_a_long_hostile_conversation_is_searched_at_once() -> None:
    message: JsonObject = {"role": "assistant", "content": None, "tool_calls": [{**CALL, "id": "a" * 100_000}]}
    assert len(missing_turns([message] * 4096)) == MOST_TURNS
    assert excess(partial(missing_turns, [message] * 4096), 20) == ""
