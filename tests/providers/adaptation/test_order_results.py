"""Tool results are placed directly behind their calls, whatever the client sent between them or left out."""

from hypothesis import given
from hypothesis import strategies as st

from providers.adaptation.order_results import NO_RESULT, ORPHAN, with_results_behind_calls
from providers.json_types import JsonObject

Messages = tuple[JsonObject, ...]

USER: JsonObject = {"role": "user", "content": "go"}
NOTE: JsonObject = {"role": "developer", "content": "note"}
SAID: JsonObject = {"role": "assistant", "content": "so"}


def called(*identities: str) -> JsonObject:
    calls: list[JsonObject] = [
        {"id": identity, "type": "function", "function": {"name": "f", "arguments": "{}"}} for identity in identities
    ]
    return {"role": "assistant", "content": None, "tool_calls": [*calls]}


def result(identity: str, text: str = "ok") -> JsonObject:
    return {"role": "tool", "tool_call_id": identity, "content": text}


def ids_of(message: JsonObject) -> list[str]:
    calls = message.get("tool_calls")
    return [str(call["id"]) for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []


def test_what_stands_between_two_results_comes_behind_them() -> None:
    given = (USER, called("a", "b"), result("a"), NOTE, result("b"))
    assert with_results_behind_calls(given) == (USER, called("a", "b"), result("a"), result("b"), NOTE)


def test_what_stands_between_a_call_and_its_result_comes_behind_it() -> None:
    given = (USER, called("a"), NOTE, USER, SAID, result("a"), SAID)
    assert with_results_behind_calls(given) == (USER, called("a"), result("a"), NOTE, USER, SAID, SAID)


def test_results_of_several_turns_go_behind_their_own_turn_in_their_own_order() -> None:
    given = (USER, called("a", "b"), called("c"), result("c"), result("b"), NOTE, result("a"))
    ordered = (USER, called("a", "b"), result("b"), result("a"), called("c"), result("c"), NOTE)
    assert with_results_behind_calls(given) == ordered


def test_a_result_answers_the_latest_call_of_its_id() -> None:
    given = (USER, called("call_0"), result("call_0", "1"), called("call_0"), NOTE, result("call_0", "2"))
    ordered = (USER, called("call_0"), result("call_0", "1"), called("call_0"), result("call_0", "2"), NOTE)
    assert with_results_behind_calls(given) == ordered


def test_a_result_without_a_call_becomes_a_text_of_the_user() -> None:
    parts: JsonObject = {**result("y"), "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}
    given: Messages = (USER, result("z", "12"), called("a"), result("a"), result("a", "again"), parts, result("x", ""))
    made = with_results_behind_calls(given)
    assert made[:1] + made[2:4] == (USER, called("a"), result("a"))
    assert [message["content"] for message in made[1:2] + made[4:]] == [
        f"{ORPHAN}\n12",
        f"{ORPHAN}\nagain",
        [{"type": "text", "text": ORPHAN}, {"type": "image_url", "image_url": {"url": "data:,"}}],
        ORPHAN,
    ]
    assert {message["role"] for message in made[4:]} == {"user"}


def test_a_call_without_a_result_gets_one() -> None:
    given: Messages = (USER, called("a", "b"), result("b"), USER, called("c", "d"))
    none = [result(identity, NO_RESULT) for identity in "acd"]
    assert with_results_behind_calls(given) == (*given[:3], none[0], *given[3:], *none[1:])


def test_calls_and_results_without_ids_are_left_to_the_vendor() -> None:
    odd: JsonObject = {"role": "assistant", "tool_calls": ["a", {"id": 1}]}
    given: Messages = (USER, odd, USER)
    assert with_results_behind_calls(given) is given


def test_members_that_are_null_mean_nothing() -> None:
    blank: JsonObject = {**result("b"), "tool_calls": None}
    given: Messages = (called("a", "b"), {**result("a"), "tool_calls": None}, blank, {**USER, "tool_calls": None})
    assert with_results_behind_calls(given) is given
    assert with_results_behind_calls((called("a", "b"), result("a"), USER, blank))[2] is blank


def test_a_conversation_in_order_is_the_very_same() -> None:
    given = (USER, called("a", "b"), result("b"), result("a"), NOTE, called("c"), result("c"), SAID, USER)
    assert with_results_behind_calls(given) is given


IDS = st.sampled_from("abcd")
MESSAGES = st.lists(
    st.one_of(
        st.sampled_from([USER, NOTE, SAID]),
        st.lists(IDS, min_size=1, max_size=3, unique=True).map(lambda ids: called(*ids)),
        IDS.map(result),
    ),
    max_size=14,
).map(lambda listed: tuple([{**message, "n": number} for number, message in enumerate(listed)]))
"""Conversations whose messages are distinguished by a number."""


@given(MESSAGES)
def test_each_call_has_one_result_directly_behind_its_turn_and_no_result_stands_alone(messages: Messages) -> None:
    expected: list[str] = []
    for message in with_results_behind_calls(messages):
        if message["role"] == "tool":
            expected.remove(str(message["tool_call_id"]))
        else:
            assert expected == []
            expected = ids_of(message)
    assert expected == []


@given(MESSAGES)
def test_no_text_is_lost_and_all_but_results_keeps_its_order(messages: Messages) -> None:
    ordered = with_results_behind_calls(messages)
    others = [message for message in messages if message["role"] != "tool"]
    assert [message for message in ordered if "n" in message and message["role"] != "tool"] == others
    results = [message for message in messages if message["role"] == "tool"]
    kept = [message for message in ordered if message["role"] == "tool" and "n" in message]
    alone = [message for message in ordered if str(message["content"]).startswith(ORPHAN)]
    assert len(kept) + len(alone) == len(results)


@given(MESSAGES)
def test_ordering_again_changes_nothing(messages: Messages) -> None:
    ordered = with_results_behind_calls(messages)
    assert with_results_behind_calls(ordered) is ordered
