"""The calls of a response have ids that are new to the client, streamed or not."""

from dataclasses import replace

from providers.adaptation.unique_calls import UniqueCalls, may_call, unique_calls, with_unique_calls
from providers.completion import Choice, Chunk, Completion, NativeEvent, ToolCall, ToolCallDelta
from providers.json_types import JsonObject
from tests.providers.dialects.kit import chat_request, tool, user
from tests.support.looped import looped

HISTORY: tuple[JsonObject, ...] = (
    {"role": "assistant", "content": None, "tool_calls": [{"id": "call_0", "type": "function", "function": {}}]},
    {"role": "tool", "tool_call_id": "call_0", "content": "r"},
)


def calls_of(*ids: str) -> Completion:
    return Completion((Choice(0, "", "tool_calls", tool_calls=tuple(ToolCall(each, "f", "{}") for each in ids)),), None)


def streamed(calls: UniqueCalls, *ids: str) -> list[str]:
    found = []
    for number, identity in enumerate(ids):
        begun = calls.chunk(Chunk(tool_calls=(ToolCallDelta(number, identity, "f"),)))
        piece = Chunk(tool_calls=(ToolCallDelta(number, arguments="{}"),))
        assert calls.chunk(piece) is piece
        found.append(str(begun.tool_calls[0].id))
    return found


@looped("ids", [("call_0",), ("x", "x"), ("call_0", "call_0", "y"), ("", "x"), ("functions.f:0", "functions.f:0")])
def test_an_id_that_is_known_or_comes_twice_is_replaced(ids: tuple[str, ...]) -> None:
    whole = UniqueCalls(HISTORY).whole(calls_of(*ids)).choices[0].tool_calls
    made = [call.id for call in whole if call.id]
    assert len({*made, "call_0"}) == len(made) + 1
    assert streamed(UniqueCalls(HISTORY), *[each for each in ids if each]) == made


def test_what_is_unique_or_native_is_the_same_object() -> None:
    calls = UniqueCalls(HISTORY)
    native, event = replace(calls_of("call_0"), native=b"{}"), NativeEvent("content_block_start", b"{}")
    request = chat_request(*HISTORY, tools=[tool("f")])
    assert calls.whole(calls_of("x")) == calls_of("x")
    for given in (calls_of("x"), calls_of(), native):
        assert with_unique_calls(request, given) is given
    assert with_unique_calls(request, calls_of("call_0")).choices[0].tool_calls[0].id != "call_0"
    for chunk in (Chunk(text="a"), Chunk(tool_calls=(ToolCallDelta(0, "call_0", "f"),), native=event)):
        assert calls.chunk(chunk) is chunk


def test_an_id_that_is_repeated_in_each_piece_of_a_call_is_one_id() -> None:
    calls = UniqueCalls(HISTORY)
    pieces = [calls.chunk(Chunk(tool_calls=(ToolCallDelta(0, "call_0", "f", "{"),))) for _ in range(3)]
    assert len({piece.tool_calls[0].id for piece in pieces}) == 1


def test_only_responses_that_may_hold_calls_are_looked_at() -> None:
    assert unique_calls(chat_request(user("go"))) is None
    assert unique_calls(chat_request(user("go"), tools=[tool("f")])) is not None
    assert may_call(replace(chat_request(user("go")), unknown={"functions_of_mine": []}))
