"""Reasoning settings on Gemini's API."""

from dataclasses import replace

import pytest

from providers.dialects.gemini.models import EFFORT_WORDS
from providers.dialects.gemini.thinking import rule_of
from providers.failure import Refusal
from providers.json_types import JsonObject
from providers.target import Target
from tests.providers.dialects.gemini.kit import DIALECT, NEWEST, OLD, TARGET, VERTEX, body_of, config_of
from tests.providers.dialects.kit import chat_request, refusal_for
from tests.support.looped import looped


def named(model: str, target: Target = TARGET) -> Target:
    return replace(target, model=model, upstream_model=model)


PRO, LITE, FLASH = named("gemini-2.5-pro"), named("gemini-2.5-flash-lite"), named("gemini-3-flash-preview")
SILENT = named("gemini-2.0-flash")


@looped(
    ("target", "effort", "thinking"),
    [
        (TARGET, "low", {"thinkingLevel": "LOW"}),
        (TARGET, "medium", {"thinkingLevel": "MEDIUM"}),
        (FLASH, "minimal", {"thinkingLevel": "MINIMAL"}),
        (TARGET, 2048, {"thinkingBudget": 2048}),
        (OLD, "low", {"thinkingBudget": 1024}),
        (OLD, "medium", {"thinkingBudget": 8192}),
        (OLD, "high", {"thinkingBudget": 24576}),
        (OLD, "none", {"thinkingBudget": 0}),
        (OLD, False, {"thinkingBudget": 0}),
        (OLD, -1, {"thinkingBudget": -1}),
        (PRO, "max", {"thinkingBudget": 32768}),
        (named("gemini-3.1-pro-preview", VERTEX), "none", {"thinkingBudget": 0}),
    ],
)
def test_effort_is_a_level_or_a_budget(target: Target, effort: object, thinking: JsonObject) -> None:
    request = chat_request(reasoning_effort=effort)
    shown: JsonObject = {} if effort in ("none", False, 0) else {"includeThoughts": True}
    assert config_of(request, target) == {"thinkingConfig": {**thinking, **shown}}
    assert DIALECT.encode(request, target).emulated == ()


@looped(
    ("target", "effort", "thinking"),
    [
        (TARGET, "minimal", {"thinkingLevel": "LOW"}),
        (TARGET, "none", {"thinkingLevel": "LOW"}),
        (TARGET, False, {"thinkingLevel": "LOW"}),
        (NEWEST, "minimal", {"thinkingLevel": "LOW"}),
        (TARGET, "xhigh", {"thinkingLevel": "HIGH"}),
        (TARGET, "max", {"thinkingLevel": "HIGH"}),
        (named("gemini-3-pro-preview"), "medium", {"thinkingLevel": "HIGH"}),
        (PRO, "none", {"thinkingBudget": 128}),
        (PRO, 0, {"thinkingBudget": 128}),
        (LITE, 100, {"thinkingBudget": 512}),
        (OLD, "max", {"thinkingBudget": 24576}),
    ],
)
def test_what_the_model_lacks_becomes_the_nearest_and_is_named(
    target: Target, effort: object, thinking: JsonObject
) -> None:
    request = chat_request(reasoning_effort=effort)
    shown: JsonObject = {} if effort in ("none", False, 0) else {"includeThoughts": True}
    assert config_of(request, target) == {"thinkingConfig": {**thinking, **shown}}
    assert DIALECT.encode(request, target).emulated == ("reasoning_effort",)


@looped(
    ("target", "effort", "limit", "budget", "emulated"),
    [
        (OLD, "medium", 1000, 500, ()),
        (OLD, "medium", 100_000, 8192, ()),
        (OLD, "low", 1, 1, ()),
        (LITE, "high", 600, 512, ()),
        (PRO, "high", 200, 128, ()),
        (OLD, "none", 100, 0, ()),
        (OLD, -1, 100, -1, ()),
        (OLD, 900, 1000, 900, ()),
        (OLD, 1000, 1000, 500, ("reasoning_effort",)),
        (TARGET, 4096, 1000, 500, ("reasoning_effort",)),
    ],
)
def test_a_budget_leaves_room_for_the_answer(
    target: Target, effort: object, limit: int, budget: int, emulated: tuple[str, ...]
) -> None:
    request = chat_request(reasoning_effort=effort, max_tokens=limit)
    config = config_of(request, target)
    assert isinstance(config, dict)
    assert isinstance(thinking := config["thinkingConfig"], dict)
    assert (config["maxOutputTokens"], thinking["thinkingBudget"]) == (limit, budget)
    assert DIALECT.encode(request, target).emulated == emulated


def test_effort_as_a_switch_that_is_on_is_what_models_do() -> None:
    assert config_of(chat_request(reasoning_effort=True)) is None


@looped("effort", ["enormous", "", 1.5])
def test_an_effort_that_nobody_knows_is_refused(effort: object) -> None:
    refusal = refusal_for(chat_request(reasoning_effort=effort), TARGET)
    assert (refusal.param, refusal.code) == ("reasoning_effort", "invalid_value")


@looped(
    ("target", "asked", "thinking"),
    [
        (TARGET, {"type": "enabled", "budget_tokens": 1024}, {"thinkingBudget": 1024, "includeThoughts": True}),
        (TARGET, {"type": "adaptive"}, {"includeThoughts": True}),
        (LITE, {"type": "enabled", "budget_tokens": 64}, {"thinkingBudget": 512, "includeThoughts": True}),
        (OLD, {"type": "disabled"}, {"thinkingBudget": 0}),
        (TARGET, {"type": "disabled"}, {"thinkingLevel": "LOW"}),
    ],
)
def test_thinking_is_shown_to_whoever_asks_for_it(target: Target, asked: JsonObject, thinking: JsonObject) -> None:
    assert config_of(chat_request(thinking=asked), target) == {"thinkingConfig": thinking}


@pytest.mark.parametrize("asked", [{"type": "deep"}, {}])
def test_thinking_of_an_unknown_type_is_refused(asked: JsonObject) -> None:
    with pytest.raises(Refusal, match="thinking"):
        DIALECT.encode(chat_request(thinking=asked), TARGET)


@looped("model", ["gemini-2.0-flash", "gemini-2.5-flash-image", "gemma-3-27b-it"])
def test_a_model_that_does_not_think_is_only_refused_an_effort(model: str) -> None:
    target = named(model)
    plain = body_of(chat_request(), target)
    for nothing in ({"reasoning_effort": "none"}, {"reasoning_effort": False}, {"thinking": {"type": "disabled"}}):
        assert body_of(chat_request(**nothing), target) == plain
    for asked in ({"reasoning_effort": "low"}, {"reasoning_effort": 512}, {"thinking": {"type": "enabled"}}):
        with pytest.raises(Refusal, match="the model does not reason") as caught:
            DIALECT.encode(chat_request(**asked), target)
        assert caught.value.code == "unsupported_parameter"
    assert DIALECT.capabilities(chat_request(), target)["reasoning_effort"].refused


@looped("target", [TARGET, OLD, PRO, LITE, FLASH, NEWEST, VERTEX])
def test_every_word_of_effort_can_be_said_to_a_model_that_thinks(target: Target) -> None:
    assert rule_of(target).reasons
    for word in EFFORT_WORDS:
        assert config_of(chat_request(reasoning_effort=word), target) is not None


def test_a_silent_model_has_no_rule() -> None:
    assert not rule_of(SILENT).reasons
