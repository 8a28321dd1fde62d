"""The unified request: what asks for nothing, and how many answers are wanted."""

from typing import get_type_hints

import pytest

from providers.unified import (
    ChatPrompt,
    Guided,
    Operation,
    Params,
    Prompt,
    TextPrompt,
    TokenPrompt,
    UnifiedRequest,
    is_neutral,
)
from tests.providers.neutral import NEUTRAL

WISHES: dict[str, object] = {
    "n": 2,
    "best_of": 2,
    "echo": True,
    "echo_last": 1,
    "top_p": 0,
    "top_k": 1,
    "min_p": 0.1,
    "presence_penalty": -0.1,
    "repetition_penalty": 0,
    "suffix": " ",
    "logit_bias": {"1": 0.0},
    "stop": ("",),
    "tools": [{}],
    "images": (("data:image/png;base64,AA==",),),
    "response_format": {"type": "json_object"},
    "tool_choice": "auto",
    "modalities": ["text", "audio"],
    "temperature": 1,
    "seed": 0,
    "max_tokens": 16,
    "user": "",
    "parallel_tool_calls": False,
    "unheard_of": 0,
}


@pytest.mark.parametrize(("field", "value"), [(field, value) for field, values in NEUTRAL.items() for value in values])
def test_a_value_that_asks_for_nothing_is_neutral(field: str, value: object) -> None:
    assert is_neutral(field, value)


@pytest.mark.parametrize(("field", "value"), WISHES.items())
def test_any_other_value_is_a_wish(field: str, value: object) -> None:
    assert not is_neutral(field, value)


def test_every_field_with_a_neutral_value_is_a_field_of_the_request() -> None:
    assert NEUTRAL.keys() <= get_type_hints(Params).keys()


@pytest.mark.parametrize(
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
