"""Responses that are constrained to a call are returned as the call, streamed or not, however the text is cut."""

from providers.adaptation.forced_calls import ForcedCall
from providers.adaptation.tool_calls_of_text import CallReader
from providers.completion import Choice, Chunk, Completion, ToolCall, ToolCallDelta
from providers.emulation.collect_stream import Gatherer
from providers.emulation.post_processing import PostProcessing, PostProcessor
from tests.support.looped import looped

ONE, TWO = ForcedCall(("look",), b"1"), ForcedCall(("look", "käse"), b"2")
ARGUMENTS = '{"city": "Rome", "n": 123456789012345678901234567890}'


def streamed(forced: ForcedCall, pieces: list[str], reason: str) -> Choice:
    """Return the choice that a client accumulates from the chunks. The last chunk ends it."""
    processor, gatherer = PostProcessor(PostProcessing(forced=forced)), Gatherer(1)
    for number, piece in enumerate(pieces):
        ends = reason if number == len(pieces) - 1 else None
        for chunk in processor.feed(Chunk(text=piece, finish_reason=ends)):
            gatherer.add(chunk)
    return gatherer.completion().choices[0]


def whole(forced: ForcedCall, choice: Choice) -> Choice:
    (made,) = PostProcessor(PostProcessing(forced=forced)).whole(Completion((choice,), None)).choices
    return made


@looped(
    ("forced", "text", "reason", "name", "arguments", "finish"),
    [
        (ONE, ARGUMENTS, "stop", "look", ARGUMENTS, "tool_calls"),
        (ONE, '\n{"city"', "length", "look", '\n{"city"', "length"),
        (ONE, "", "stop", None, "", "stop"),
        (TWO, f'{{"name": "look", "arguments": {ARGUMENTS}}}\n', "stop", "look", ARGUMENTS, "tool_calls"),
        (TWO, '{"name":"käse","arguments":{}}', "stop", "käse", "{}", "tool_calls"),
        (TWO, '{"arguments":{"a":1},"name":"look"}', "stop", "look", '{"a":1}', "tool_calls"),
        (TWO, '{"name": "look", "arguments": {"city": "R}', "length", "look", '{"city": "R}', "length"),
        (TWO, '{"name": "lo', "length", None, "", "length"),
        (TWO, '{"name": "jump", "arguments": {}}', "content_filter", None, "", "content_filter"),
    ],
)
def test_the_call_is_that_of_the_text_whole_and_streamed(
    forced: ForcedCall, text: str, reason: str, name: str | None, arguments: str, finish: str
) -> None:
    expected = () if name is None else (ToolCall(forced.call_id(0), name, arguments),)
    made = whole(forced, Choice(0, text, reason))
    assert (made.text, made.tool_calls, made.finish_reason) == ("", expected, finish)
    for cut in range(len(text) + 1):
        assert streamed(forced, [text[:cut], text[cut:], ""], reason) == made


def test_each_choice_has_a_call_of_its_own() -> None:
    processor = PostProcessor(PostProcessing(forced=ONE))
    made = processor.whole(Completion((Choice(0, "{}", "stop"), Choice(1, "{}", "stop")), None)).choices
    assert [choice.tool_calls[0].id for choice in made] == [ONE.call_id(0), ONE.call_id(1)]


OWN = ToolCall("c1", "look", "{}")


@looped(
    "choice",
    [Choice(0, "No.", "stop", refusal="No."), Choice(0, "So:", "tool_calls", tool_calls=(OWN,))],
)
def test_a_refusal_and_a_call_of_the_vendor_s_own_are_left(choice: Choice) -> None:
    assert whole(ONE, choice) == choice
    deltas = tuple([ToolCallDelta(0, each.id, each.name, each.arguments) for each in choice.tool_calls])
    chunk = Chunk(0, choice.text, choice.finish_reason, refusal=choice.refusal, tool_calls=deltas)
    assert CallReader(ONE).feed(chunk) is chunk


@looped(
    "chunk",
    [
        Chunk(reasoning="I think."),
        Chunk(text='{"a":', finish_reason="stop", matched_stop=":"),
    ],
)
def test_only_a_text_that_ends_by_itself_finishes_as_a_call(chunk: Chunk) -> None:
    made = CallReader(ONE).feed(chunk)
    assert (made.text, made.reasoning, made.finish_reason) == ("", chunk.reasoning, chunk.finish_reason)
