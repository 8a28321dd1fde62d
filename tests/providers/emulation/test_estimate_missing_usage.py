"""Usage estimated from the sizes of prompt and answer."""

import pytest

from providers.completion import Choice, Completion, Usage
from providers.emulation.estimate_missing_usage import counted_prompt, estimate_usage, size_of, with_usage
from providers.json_types import JsonObject
from providers.unified_request import ChatPrompt, Params, TextPrompt, TokenPrompt
from tests.providers.dialects.openai.kit import chat, completion


def test_a_usage_that_the_vendor_gave_is_kept() -> None:
    answer = Completion((Choice(0, "abcd", "stop"),), Usage(7, 7))
    assert with_usage(completion(), answer) is answer


def test_a_usage_that_nobody_gave_is_guessed_from_the_bytes_and_says_so() -> None:
    answer = Completion((Choice(0, "abcde", "stop"), Choice(1, "é", "stop")), None)
    assert with_usage(completion(prompt=TextPrompt(("hello", "hi"))), answer).usage == Usage(3, 2, estimated=True)


def test_token_ids_are_counted_and_conversations_by_their_json() -> None:
    assert estimate_usage(completion(prompt=TokenPrompt(((1, 2, 3), (4,)))), 0) == Usage(4, 0, estimated=True)
    message: JsonObject = {"role": "user", "content": "hello"}
    assert estimate_usage(chat(prompt=ChatPrompt((message, message))), 8) == Usage(18, 2, estimated=True)


def test_a_conversation_that_has_been_counted_may_go() -> None:
    asked = chat(prompt=ChatPrompt(({"role": "user", "content": "hello"},)))
    expected, counted = estimate_usage(asked, 8), counted_prompt(asked)
    assert isinstance(asked.prompt, ChatPrompt)
    asked.prompt.let_messages_go()
    assert asked.prompt.messages == ()
    assert counted(8) == expected == Usage(9, 2, estimated=True)


@pytest.mark.parametrize("n", [1, 2])
def test_a_prompt_that_was_repeated_is_not_generated(n: int) -> None:
    params: Params = {"echo": True, "n": n}
    request = completion(params, TextPrompt(("abcd",)))
    texts = tuple(Choice(index, "abcdefgh", "stop") for index in range(n))
    assert with_usage(request, Completion(texts, None)).usage == Usage(1, n, estimated=True)


def test_sizes_are_bytes() -> None:
    assert [size_of(text) for text in ("", "ab", "é", "\ud800")] == [0, 2, 2, 1]
