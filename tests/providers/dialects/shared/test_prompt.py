"""Prompts on the wire: the four forms, and what a chat can carry."""

import pytest

from providers.capabilities import Capabilities
from providers.dialects.shared.prompt import image_parts, native_prompt
from providers.json_types import JsonValue
from providers.unified_request import Params, Prompt, TextPrompt, TokenPrompt
from tests.providers.dialects.openai.kit import TALK, body_of, completion, refusal_of, target

FORMS: list[tuple[Prompt, JsonValue]] = [
    (TextPrompt(("a",)), "a"),
    (TextPrompt(("a", "b")), ["a", "b"]),
    (TokenPrompt(((1, 2),)), [1, 2]),
    (TokenPrompt(((1, 2), (3,))), [[1, 2], [3]]),
]


@pytest.mark.parametrize(("prompt", "wire"), FORMS)
def test_each_form_of_a_prompt_goes_as_it_is(prompt: Prompt, wire: JsonValue) -> None:
    assert body_of(completion(prompt=prompt), target("vllm"))["prompt"] == wire


@pytest.mark.parametrize(
    ("row", "taken"),
    [
        ("together", [True, False, False, False]),
        ("llamacpp", [True, False, True, False]),
        ("scale_genai", [True, True, False, False]),
        ("fireworks", [True, True, True, True]),
    ],
)
def test_a_form_that_the_vendor_does_not_take_is_refused(row: str, taken: list[bool]) -> None:
    for (prompt, wire), takes in zip(FORMS, taken, strict=True):
        if takes:
            assert body_of(completion(prompt=prompt), target(row))["prompt"] == wire
        else:
            assert refusal_of(completion(prompt=prompt), target(row)).param == "prompt"


def test_a_conversation_is_no_prompt() -> None:
    with pytest.raises(TypeError):
        native_prompt(target("vllm"), Capabilities({}), TALK)


def test_a_wrapped_prompt_is_one_user_message() -> None:
    assert body_of(completion(), target("groq"))["messages"] == [{"role": "user", "content": "hello"}]


def test_images_take_the_places_of_their_markers() -> None:
    params: Params = {"images": (("data:x", "data:y"),)}
    prompt = TextPrompt(("<image>a<image>b",))
    expected: list[JsonValue] = [
        {"type": "image_url", "image_url": {"url": "data:x"}},
        {"type": "text", "text": "a"},
        {"type": "image_url", "image_url": {"url": "data:y"}},
        {"type": "text", "text": "b"},
    ]
    assert body_of(completion(params, prompt), target("openai"))["messages"] == [{"role": "user", "content": expected}]
    assert image_parts("a", ()) == [{"type": "text", "text": "a"}]


def test_a_repeated_prompt_is_no_answer_of_a_chat() -> None:
    assert refusal_of(completion({"echo": True}), target("groq")).param == "echo"
