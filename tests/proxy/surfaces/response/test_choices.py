"""The shared code of text and chat responses."""

import pytest

from providers.completion import Choice, Chunk, FinishReason, ToolCall, ToolCallDelta
from providers.unified_request import UnifiedRequest
from proxy.surfaces.response.choices import PendingCalls, delta_json, finish_fields
from tests.proxy.surfaces.kit import FACTS, ROWS, complete, converse, objects
from tests.support.looped import looped


@looped(
    ("ended", "tool_finish", "members"),
    [
        (Choice(0, "", "stop"), "stop", {"finish_reason": "stop"}),
        (Choice(0, "", "length"), "stop", {"finish_reason": "length"}),
        (Choice(0, "", "content_filter"), "stop", {"finish_reason": "content_filter"}),
        (Choice(0, "", "tool_calls"), "tool_calls", {"finish_reason": "tool_calls"}),
        (Choice(0, "", "tool_calls"), "stop", {"finish_reason": "stop", "native_finish_reason": "tool_calls"}),
        (Choice(0, "", "tool_calls", "call"), "stop", {"finish_reason": "stop", "native_finish_reason": "call"}),
        (Choice(0, "", "stop", "refusal"), "stop", {"finish_reason": "stop", "native_finish_reason": "refusal"}),
        (Chunk(finish_reason="stop", matched_stop="\n"), "stop", {"finish_reason": "stop", "stop_reason": "\n"}),
        (Chunk(finish_reason="stop", matched_stop=0), "stop", {"finish_reason": "stop", "stop_reason": 0}),
    ],
)
def test_a_finish_is_said_in_the_surfaces_words(
    ended: Choice | Chunk, tool_finish: FinishReason, members: dict[str, object]
) -> None:
    assert finish_fields(ended, tool_finish) == members


def test_a_calls_first_piece_names_it_and_the_others_do_not() -> None:
    assert delta_json(ToolCallDelta(0, "c1", "f", "")) == {
        "index": 0,
        "id": "c1",
        "type": "function",
        "function": {"name": "f", "arguments": ""},
    }
    assert delta_json(ToolCallDelta(1, arguments='{"a"')) == {"index": 1, "function": {"arguments": '{"a"'}}


def test_calls_are_gathered_by_index() -> None:
    calls = PendingCalls()
    calls.add([ToolCallDelta(1, "c2", "g", "{"), ToolCallDelta(0, "c1", "f")])
    calls.add([ToolCallDelta(1, arguments="}")])
    assert calls.whole() == [ToolCall("c1", "f", ""), ToolCall("c2", "g", "{}")]


@pytest.mark.parametrize("asked", [complete(stream=True), converse(stream=True)], ids=["text", "chat"])
def test_a_fingerprint_is_carried_by_every_later_frame(asked: UnifiedRequest) -> None:
    renderer = ROWS["openai"].renderer(asked, FACTS)
    chunks = (
        Chunk(text="a"),
        Chunk(text="b", system_fingerprint="f1"),
        Chunk(text="c", system_fingerprint="f1"),
        Chunk(text="d", system_fingerprint="f2"),
    )
    stream = b"".join(map(renderer.chunk, chunks))
    assert [frame.get("system_fingerprint") for frame in objects(stream)] == [None, "f1", "f1", "f2"]
