"""Prompts on the wire: the four forms, the prompts that a chat can carry, and endpoints that take one raw prompt."""

from dataclasses import replace

import pytest

from providers.capabilities import Capabilities, compiled
from providers.dialects.shared.prompt import (
    ONE_RAW_PROMPT,
    failed_text,
    image_parts,
    joined_texts,
    native_prompt,
    prompt_text,
    required_limit,
)
from providers.dialects.shared.request_body import RequestBody
from providers.failure import Refusal
from providers.json_types import JsonValue
from providers.unified_request import Params, Prompt, TextPrompt, TokenPrompt, UnifiedRequest
from tests.providers.dialects.kit import target_of, text_request
from tests.providers.dialects.openai.kit import TALK, body_of, completion, refusal_of, target
from tests.support.looped import looped

FORMS: list[tuple[Prompt, JsonValue]] = [
    (TextPrompt(("a",)), "a"),
    (TextPrompt(("a", "b")), ["a", "b"]),
    (TokenPrompt(((1, 2),)), [1, 2]),
    (TokenPrompt(((1, 2), (3,))), [[1, 2], [3]]),
]


@looped(("prompt", "wire"), FORMS)
def test_each_form_of_a_prompt_goes_as_it_is(prompt: Prompt, wire: JsonValue) -> None:
    assert body_of(completion(prompt=prompt), target("vllm"))["prompt"] == wire


@looped(
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


# Endpoints with one raw prompt per call and no chat ----- -------------------------------------------------------------

TABLE = Capabilities(compiled((), ONE_RAW_PROMPT))


def draft(request: UnifiedRequest, limit: int | None = None) -> RequestBody:
    return RequestBody(request, target_of("triton", max_output_tokens=limit), TABLE, {})


def test_a_prompt_is_its_text() -> None:
    assert prompt_text(draft(text_request("The sky"))) == "The sky"
    assert prompt_text(draft(replace(text_request(), prompt=TextPrompt(("a",), listed=True)))) == "a"


@looped("prompt", [TextPrompt(("",)), TextPrompt(("a", "b")), TokenPrompt(((1, 2),))])
def test_other_prompts_are_refused(prompt: TextPrompt | TokenPrompt) -> None:
    with pytest.raises(Refusal) as caught:
        prompt_text(draft(replace(text_request(), prompt=prompt)))
    assert caught.value.param == "prompt"


def test_the_limit_is_the_clients_else_the_tables() -> None:
    assert required_limit(draft(text_request(max_tokens=5), 9)) == 5
    assert required_limit(draft(text_request(), 9)) == 9


@pytest.mark.parametrize("params", [{}, {"max_tokens": 0}])
def test_a_limit_that_is_missing_or_none_is_refused(params: dict[str, object]) -> None:
    with pytest.raises(Refusal) as caught:
        required_limit(draft(text_request(**params)))
    assert (caught.value.param, caught.value.code) == ("max_tokens", "invalid_value")


def test_the_texts_of_a_tool_s_result_stand_on_lines_of_their_own() -> None:
    assert joined_texts("tool", ["a", "b"]) == "a\nb"
    assert joined_texts("user", ["a", "b"]) == "ab"
    assert joined_texts("tool", []) == ""


def test_instructions_are_paragraphs_and_empty_ones_leave_no_gap() -> None:
    assert joined_texts("system", ["a", "", "b"]) == joined_texts("developer", ["a", "b"]) == "a\n\nb"
    assert joined_texts("system", ["Be ", "kind", "\nor quiet"]) == "Be kind\nor quiet"


def test_a_failed_result_says_so_whatever_it_holds() -> None:
    assert [failed_text(each) for each in ("x", "", " ")] == ["The call failed: x", *["The call failed."] * 2]
