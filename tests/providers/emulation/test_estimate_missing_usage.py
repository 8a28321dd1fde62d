"""Usage estimated from the sizes of prompt and response."""

import pytest

from providers.completion import Choice, Chunk, Completion, Extras, ToolCall, Usage
from providers.emulation.collect_stream import to_chunks
from providers.emulation.estimate_missing_usage import (
    early_usage,
    estimate_usage,
    let_conversation_go,
    size_of,
    size_written,
    with_usage,
)
from providers.framing.text_frames import part_run
from providers.json_types import JsonObject
from providers.unified_request import ChatPrompt, Params, TextPrompt, TokenPrompt
from tests.providers.dialects.openai.kit import chat, completion
from tests.support.looped import looped


def test_a_usage_that_the_vendor_gave_is_kept() -> None:
    answer = Completion((Choice(0, "abcd", "stop"),), Usage(7, 7))
    assert with_usage(completion(), answer) is answer


def test_a_usage_that_nobody_gave_is_guessed_from_the_bytes_and_says_so() -> None:
    answer = Completion((Choice(0, "abcde", "stop"), Choice(1, "é", "stop")), None)
    assert with_usage(completion(prompt=TextPrompt(("hello", "hi"))), answer).usage == Usage(3, 2, estimated=True)


@looped(
    ("reported", "usage"),
    [
        (None, Usage(9, 5, estimated=True)),
        (Usage(70, 3, {"cached_tokens": 60}), Usage(70, 3, {"cached_tokens": 60})),
        (Usage(70, 3, {"cached_tokens": 60}, estimated=True), Usage(70, 5, {"cached_tokens": 60}, estimated=True)),
        (Usage(70, 8, estimated=True), Usage(70, 8, estimated=True)),
        (Usage(0, 0, estimated=True), Usage(9, 5, estimated=True)),
    ],
)
def test_what_was_reported_of_an_early_end_is_never_replaced(reported: Usage | None, usage: Usage) -> None:
    assert early_usage(reported, Usage(9, 5, estimated=True)) == usage


def test_token_ids_are_counted_and_conversations_by_their_json() -> None:
    assert estimate_usage(completion(prompt=TokenPrompt(((1, 2, 3), (4,)))), 0) == Usage(4, 0, estimated=True)
    message: JsonObject = {"role": "user", "content": "hello"}
    assert estimate_usage(chat(prompt=ChatPrompt((message, message))), 8) == Usage(18, 2, estimated=True)


@pytest.mark.parametrize("n", [1, 2])
def test_a_prompt_that_was_repeated_is_not_generated(n: int) -> None:
    params: Params = {"echo": True, "n": n}
    request = completion(params, TextPrompt(("abcd",)))
    texts = tuple(Choice(index, "abcdefgh", "stop") for index in range(n))
    assert with_usage(request, Completion(texts, None)).usage == Usage(1, n, estimated=True)


def test_sizes_are_bytes() -> None:
    assert [size_of(text) for text in ("", "ab", "é", "\ud800")] == [0, 2, 2, 1]


DETAILS = Extras(reasoning_details=({"type": "reasoning.text", "text": "abcd"}, {"type": "x", "summary": "é"}))


@looped(
    ("choice", "size"),
    [
        (Choice(0, "abc", "stop", reasoning="défg"), 8),
        (Choice(0, "no", "stop", refusal="no"), 2),
        (Choice(0, "abc", "stop", refusal="no"), 5),
        (Choice(0, "", "tool_calls", tool_calls=(ToolCall("t", "fn", '{"é":1}'), ToolCall("u", "g", "{}"))), 13),
        (Choice(0, "", "tool_calls", tool_calls=(ToolCall("t", "fn", "abc", "custom"),)), 5),
        (Choice(0, "a", "stop", extras=DETAILS), 7),
        (Choice(0, "a", "stop", reasoning="abcdé", extras=DETAILS), 7),
        (Choice(0, "a", "stop", extras=Extras(message={"x": "y"})), 1),
    ],
)
def test_all_that_was_written_counts_whole_as_in_a_stream(choice: Choice, size: int) -> None:
    answer = Completion((choice,), None)
    (chunk,) = to_chunks(answer)
    assert isinstance(chunk, Chunk)
    assert (size_written(choice), size_written(chunk)) == (size, size)
    assert with_usage(completion(), answer).usage == Usage(2, -(-size // 4), estimated=True)


def test_the_pieces_of_a_run_count_without_their_escapes() -> None:
    run = part_run(0, [b"ab", b'\\"', b"\\u00e9"], None, "arguments", 0)
    assert run is not None
    assert (run.odd, run.characters, run.size) == ({1: '"', 2: "é"}, 0, 5)
    assert sum(map(size_written, run.chunks())) == 5


def test_tools_and_the_form_of_the_answer_are_read_too() -> None:
    tool: JsonObject = {"type": "function", "function": {"name": "f", "description": "x" * 4000}}
    form: JsonObject = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"title": "x" * 400}}}
    hello = ChatPrompt(({"role": "user", "content": "hello"},))
    both = chat(Params(tools=[tool], response_format=form), hello)
    plain, tools = chat(None, hello), chat(Params(tools=[tool]), hello)
    sizes = [estimate_usage(request, 0).prompt_tokens for request in (plain, tools, both)]
    assert 1000 < sizes[1] - sizes[0] < 1100
    assert 100 < sizes[2] - sizes[1] < 200
    let_conversation_go(both)
    assert estimate_usage(both, 0).prompt_tokens == sizes[2]
    assert (
        sizes[0]
        == estimate_usage(chat(Params(tools=[]), ChatPrompt(({"role": "user", "content": "hello"},))), 0).prompt_tokens
    )
