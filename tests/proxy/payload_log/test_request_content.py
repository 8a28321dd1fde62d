"""A stream is joined in bounded memory, and the memory that was taken is given back."""

import orjson
import pytest

from providers.completion import Chunk, TextRun, ToolCallDelta
from proxy.payload_log.payload_entry import SLACK
from proxy.payload_log.request_content import ALLOWANCE_STEP, HOLDER_BYTES, Allowance, LoggedContent


def content(left: int = 10**6, most: int = 1024) -> LoggedContent:
    allowance = Allowance(left)
    assert allowance.take(7)
    return LoggedContent(allowance, b"request", most, held=7)


def streamed(made: LoggedContent) -> list[dict[str, object]]:
    found: list[dict[str, object]] = orjson.loads(made.streamed() or b"[]")
    return found


def test_pieces_of_choices_and_calls_are_put_together() -> None:
    made = content()
    made.add_run(TextRun(0, [b"Hel", b"lo"], {}, 5, 5))
    made.add_run(TextRun(0, [b" ", b"?"], {1: "\u017e"}, 2, 3))
    made.add_chunk(Chunk(1, "other", reasoning="why", refusal="no"))
    for delta in (ToolCallDelta(0, "id", "f", '{"a"'), ToolCallDelta(1, "id", "g"), ToolCallDelta(0, arguments=":1}")):
        made.add_chunk(Chunk(0, tool_calls=(delta,)))
    made.add_run(TextRun(0, [b"]", b""], {1: '"'}, 0, 0, part="arguments", call=1))
    made.add_run(TextRun(1, [b", ", b"so"], {}, 0, 0, part="reasoning"))
    made.add_chunk(Chunk(0, finish_reason="tool_calls"))
    calls = [{"name": "f", "arguments": '{"a":1}'}, {"name": "g", "arguments": ']"'}]
    assert streamed(made) == [
        {"index": 0, "text": "Hello \u017e", "tool_calls": calls, "finish_reason": "tool_calls"},
        {"index": 1, "text": "other", "reasoning": "why, so", "refusal": "no"},
    ]


def test_without_a_stream_there_is_none() -> None:
    assert content().streamed() is None


def test_of_a_long_stream_the_beginning_is_kept_and_the_texts_that_go_on_are_named() -> None:
    made = content(most=1024)
    made.add_chunk(Chunk(0, reasoning="r"))
    for _ in range(1000):
        made.add_run(TextRun(0, [b"0123456789"], {}, 10, 10))
    made.add_chunk(Chunk(0, tool_calls=(ToolCallDelta(0, "id", "f", "{}"),)))
    (choice,) = streamed(made)
    assert (len(str(choice["text"])), choice["clipped"]) == (1024 + SLACK - 1, ["text", 0])
    assert made.held <= 7 + 1024 + SLACK + 2 * HOLDER_BYTES + ALLOWANCE_STEP


@pytest.mark.parametrize("left", [7, 7 + ALLOWANCE_STEP])
def test_without_room_a_stream_is_clipped_or_missing(left: int) -> None:
    made = content(left, most=10**6)
    made.add_run(TextRun(0, [b"x" * 9000], {}, 9000, 9000))
    made.add_chunk(Chunk(1, "y" * 9000))
    assert [choice.get("clipped") for choice in streamed(made)] == ([] if left == 7 else [["text"], ["text"]])
    assert made.allowance.left == 0


def test_what_is_held_is_given_back() -> None:
    made = content()
    made.add_chunk(Chunk(0, "x" * 3000))
    assert made.allowance.left < 10**6 - 3000
    made.release()
    assert (made.allowance.left, made.held) == (10**6, 0)


def test_many_choices_are_bounded_too() -> None:
    made = content(7 + ALLOWANCE_STEP)
    for index in range(1000):
        made.add_chunk(Chunk(index, tool_calls=tuple(ToolCallDelta(place) for place in range(9))))
    assert len(streamed(made)) <= ALLOWANCE_STEP // HOLDER_BYTES
