"""The four prompt forms, and images matched to their prompts."""

import pytest

from providers.json_types import JsonValue
from providers.unified_request import ChatPrompt, Prompt, TextPrompt, TokenPrompt
from proxy.surfaces.request.prompt import images, match_images, prompt
from proxy.surfaces.request.rule_kinds import Invalid
from tests.support.looped import looped

URI = "data:image/jpeg;base64,/9j/4AAQ"


@looped(
    ("value", "parsed"),
    [
        ("hi", TextPrompt(("hi",))),
        ("", TextPrompt(("",))),
        (["a", "b"], TextPrompt(("a", "b"))),
        ([""], TextPrompt(("",))),
        ([1, 2, 3], TokenPrompt(((1, 2, 3),))),
        ([[1, 2], [0]], TokenPrompt(((1, 2), (0,)))),
    ],
)
def test_each_form_is_read(value: JsonValue, parsed: Prompt) -> None:
    assert prompt(value) == parsed


@looped(
    ("value", "loc"),
    [
        ([], ()),
        ([[]], (0,)),
        ([[1], []], (1,)),
        ([1, "a"], ()),
        (["a", 1], ()),
        ([True, False], ()),
        ([1.5], ()),
        ([1.0], ()),
        ([-1], ()),
        ([1, True], ()),
        ([[1], [2, -3]], (1,)),
        ([[[1]]], (0,)),
        ([["a"]], (0,)),
        ([[1], 2], ()),
        ([None], ()),
        ([{}], ()),
        ({}, ()),
        (7, ()),
        (False, ()),
    ],
)
def test_other_forms_are_refused_at_their_place(value: JsonValue, loc: tuple[int, ...]) -> None:
    with pytest.raises(Invalid) as caught:
        prompt(value)
    assert caught.value.loc == loc


@looped(
    ("value", "parsed"), [([], ((),)), ([URI], ((URI,),)), ([[URI], []], ((URI,), ())), ([URI, URI], ((URI, URI),))]
)
def test_image_lists_are_one_for_each_prompt(value: JsonValue, parsed: tuple[tuple[str, ...], ...]) -> None:
    assert images(value) == parsed


@looped(
    ("value", "loc"),
    [
        (URI, ()),
        ({}, ()),
        (["https://example.com/a.png"], (0,)),
        (["data:text/plain;base64,aGk="], (0,)),
        (["data:image/png;base64,"], (0,)),
        ([URI, 1], (1,)),
        ([[URI], URI], (1,)),
        ([[URI], [1]], (1, 0)),
    ],
)
def test_other_images_are_refused_at_their_place(value: JsonValue, loc: tuple[int, ...]) -> None:
    with pytest.raises(Invalid) as caught:
        images(value)
    assert caught.value.loc == loc


def test_images_match_when_each_prompt_has_as_many_markers() -> None:
    match_images(((URI, URI), ()), TextPrompt(("<image> and <image>", "none")))


@looped(
    ("given", "asked", "reason"),
    [
        (((URI, URI),), TextPrompt(("one <image>",)), "as many images"),
        (((URI,),), TextPrompt(("none",)), "as many images"),
        (((URI,),), TextPrompt(("<image>", "<image>")), "one for each prompt"),
        (((URI,),), TokenPrompt(((1,),)), "not token ids"),
        (((URI,),), ChatPrompt(({"role": "user"},)), "into the messages"),
    ],
)
def test_images_that_do_not_match_are_refused(given: tuple[tuple[str, ...], ...], asked: Prompt, reason: str) -> None:
    with pytest.raises(Invalid, match=reason):
        match_images(given, asked)
