"""The unified request: how many answers are wanted, and what a constraint holds."""

import pytest

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
    assert (request.prompts, request.choices) == (prompts, choices)


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
