"""The unified request: the number of choices, the constraint, and messages that are built when they are first read."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier

import pytest

from providers.json_types import JsonObject
from providers.unified_request import (
    ChatPrompt,
    Guided,
    NativeApi,
    NativeRequest,
    Operation,
    Prompt,
    TextPrompt,
    TokenPrompt,
    UnifiedRequest,
    deferred_prompt,
)
from tests.support.looped import looped


@looped(
    ("prompt", "n", "prompts", "choices"),
    [
        (TextPrompt(("a",)), 1, 1, 1),
        (TextPrompt(("a", "b")), 3, 2, 6),
        (TokenPrompt(((1,), (2, 3))), 1, 2, 2),
        (ChatPrompt(({"role": "user", "content": "a"}, {"role": "user", "content": "b"})), 2, 1, 2),
    ],
)
def test_choices_are_prompts_times_n(prompt: Prompt, n: int, prompts: int, choices: int) -> None:
    request = UnifiedRequest(Operation.COMPLETIONS, "m", prompt, {"n": n})
    assert (request.prompt.count, request.choices) == (prompts, choices)


def test_without_n_there_is_one_choice_for_each_prompt() -> None:
    assert UnifiedRequest(Operation.COMPLETIONS, "m", TextPrompt(("a", "b")), {}).choices == 2


def test_a_constraint_knows_the_name_of_its_field() -> None:
    assert [Guided(kind, "").field for kind in ("json", "regex", "choice", "grammar")] == [
        "guided_json",
        "guided_regex",
        "guided_choice",
        "guided_grammar",
    ]


def test_only_a_textual_constraint_has_a_text() -> None:
    assert Guided("regex", "a+").value_text == "a+"
    with pytest.raises(TypeError, match="guided_choice"):
        _ = Guided("choice", ("a",)).value_text


def test_members_leave_a_client_s_own_body_without_changing_it() -> None:
    native = NativeRequest(NativeApi.MESSAGES, {"a": 1, "b": 2}, {"x": "y"})
    assert native.without({"a", "c"}) == NativeRequest(NativeApi.MESSAGES, {"b": 2}, {"x": "y"})
    assert native.body == {"a": 1, "b": 2}


# Deferred conversations -----------------------------------------------------------------------------------------------

MESSAGES: tuple[JsonObject, ...] = ({"role": "user", "content": "hi"},)


class _Maker:
    """A factory of messages that counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> tuple[JsonObject, ...]:
        self.calls += 1
        return tuple([dict(message) for message in MESSAGES])


def test_messages_of_a_deferred_conversation_are_made_once_when_they_are_read() -> None:
    make = _Maker()
    prompt = deferred_prompt(make, without_parts=True)
    assert (prompt.plain, prompt.without_parts, prompt.tokens, make.calls) == (False, True, None, 0)
    assert prompt.messages == MESSAGES
    assert prompt.messages is prompt.messages
    assert make.calls == 1


def test_a_deferred_conversation_equals_the_complete_one() -> None:
    complete = ChatPrompt(MESSAGES)
    assert deferred_prompt(_Maker()) == complete
    assert complete == deferred_prompt(_Maker())
    assert deferred_prompt(_Maker()) != ChatPrompt(())
    other: Prompt = TextPrompt(("a",))
    assert other != deferred_prompt(_Maker())
    assert replace(deferred_prompt(_Maker()), plain=True).messages == MESSAGES
    assert repr(MESSAGES) in repr(deferred_prompt(_Maker()))


def test_a_deferred_conversation_has_no_other_fields() -> None:
    with pytest.raises(AttributeError, match="texts"):
        _ = deferred_prompt(_Maker()).texts  # type: ignore[attr-defined]  # that is the point


def test_messages_of_a_deferred_conversation_that_were_let_go_are_not_made_again() -> None:
    make = _Maker()
    prompt = deferred_prompt(make)
    prompt.free_messages(7)
    assert (prompt.messages, prompt.tokens, make.calls) == ((), 7, 0)


def test_threads_that_read_a_deferred_conversation_at_once_see_the_same_messages() -> None:
    make, together = _Maker(), Barrier(4)
    prompt = deferred_prompt(make)

    def read() -> int:
        together.wait(timeout=5)
        return id(prompt.messages)

    with ThreadPoolExecutor(4) as threads:
        assert len({each.result() for each in [threads.submit(read) for _ in range(4)]}) == 1
