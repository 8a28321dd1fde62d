"""Results of tools stand directly behind their calls, whatever a client sent between them."""

from itertools import takewhile

from hypothesis import given
from hypothesis import strategies as st

from providers.adaptation.order_results import with_results_behind_calls
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


def test_a_result_without_a_call_before_it_and_a_call_without_a_result_stay() -> None:
    given: Messages = (USER, result("z"), called("a", "b"), USER, result("y"), SAID, called("z"))
    assert with_results_behind_calls(given) is given
    unnamed: JsonObject = {"role": "tool", "content": "ok"}
    odd: JsonObject = {"role": "assistant", "tool_calls": ["a", {"id": 1}]}
    given = (USER, called("a"), unnamed, odd)
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
"""Conversations of which each message is told apart by a number."""


def call_numbers(messages: Messages) -> dict[int, int]:
    """The number of the message with the call, by that of each result that has one before it."""
    found: dict[int, int] = {}
    latest: dict[str, int] = {}
    for message in messages:
        number = message["n"]
        assert isinstance(number, int)
        if message["role"] == "tool" and (call := latest.get(str(message["tool_call_id"]))) is not None:
            found[number] = call
        latest.update(dict.fromkeys(ids_of(message), number))
    return found


def numbers(messages: Messages) -> list[int]:
    return [number for message in messages if isinstance(number := message["n"], int)]


@given(MESSAGES)
def test_every_result_directly_follows_the_turn_that_calls_for_it(messages: Messages) -> None:
    calls = call_numbers(messages)
    ordered = numbers(with_results_behind_calls(messages))
    for turn in set(calls.values()):
        own = [number for number, call in calls.items() if call == turn]
        behind = [*takewhile(lambda number, turn=turn: calls.get(number) == turn, ordered[ordered.index(turn) + 1 :])]  # type: ignore[misc]
        assert behind == own


@given(MESSAGES)
def test_nothing_is_lost_and_all_else_keeps_its_order(messages: Messages) -> None:
    moved = call_numbers(messages)
    ordered = with_results_behind_calls(messages)
    assert sorted(numbers(ordered)) == numbers(messages)
    assert [number for number in numbers(ordered) if number not in moved] == [
        number for number in numbers(messages) if number not in moved
    ]
    assert all(message is messages[number] for message, number in zip(ordered, numbers(ordered), strict=True))


@given(MESSAGES)
def test_ordering_again_changes_nothing(messages: Messages) -> None:
    ordered = with_results_behind_calls(messages)
    assert with_results_behind_calls(ordered) is ordered


@given(MESSAGES)
def test_each_result_still_answers_the_same_call(messages: Messages) -> None:
    assert call_numbers(with_results_behind_calls(messages)) == call_numbers(messages)
