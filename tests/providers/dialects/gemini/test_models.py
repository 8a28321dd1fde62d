"""The reasoning settings that Gemini's models accept, by model name."""

from providers.dialects.gemini.models import BUDGETS, EFFORT_WORDS, reasoning_rule
from tests.support.looped import looped

LEVELS = {
    "gemini-3-pro-preview": ("LOW", "HIGH"),
    "gemini-3.1-pro-preview": ("LOW", "MEDIUM", "HIGH"),
    "gemini-3.7-flash": ("LOW", "MEDIUM", "HIGH"),
    "gemini-3.8-flash": ("LOW", "MEDIUM", "HIGH"),
    "gemini-4-argon": ("LOW", "MEDIUM", "HIGH"),
    "gemini-flash-latest": ("LOW", "MEDIUM", "HIGH"),
    "publishers/google/models/gemini-3-flash-preview": ("MINIMAL", "LOW", "MEDIUM", "HIGH"),
    "gemini-3.5-flash-lite": ("MINIMAL", "LOW", "MEDIUM", "HIGH"),
    "gemini-3.1-flash-image": ("MINIMAL", "HIGH"),
    "gemini-3.1-flash-lite-image": ("MINIMAL", "HIGH"),
}


@looped("model", LEVELS)
def test_models_from_gemini_3_on_have_levels(model: str) -> None:
    assert reasoning_rule(model).levels == LEVELS[model]
    assert reasoning_rule(model).reasons


@looped(
    ("model", "bounds"),
    [
        ("gemini-2.5-flash", (1, 24576, True)),
        ("gemini-2.5-flash-lite", (512, 24576, True)),
        ("gemini-2.5-pro", (128, 32768, False)),
    ],
)
def test_models_of_gemini_2_5_have_budgets(model: str, bounds: tuple[int, int, bool]) -> None:
    rule = reasoning_rule(model)
    assert (rule.least, rule.most, rule.can_switch_off, rule.levels) == (*bounds, ())


@looped("model", ["gemini-1.5-pro", "gemini-2.0-flash", "gemini-2.5-flash-image", "gemma-3-27b-it", "models/gemma-4"])
def test_some_models_do_not_think(model: str) -> None:
    assert not reasoning_rule(model).reasons


def test_the_first_name_that_says_something_decides() -> None:
    assert reasoning_rule("endpoints/123", "gemini-2.5-pro").least == 128


@looped("model", LEVELS)
def test_every_word_has_a_level_and_more_effort_never_a_lower_one(model: str) -> None:
    rule = reasoning_rule(model)
    order = ("MINIMAL", "LOW", "MEDIUM", "HIGH")
    found = [order.index(rule.level(word)[0]) for word in EFFORT_WORDS]
    assert found == sorted(found)
    assert {rule.level(word)[0] for word in EFFORT_WORDS} <= set(rule.levels)
    assert all(rule.level(level.lower()) == (level, True) for level in rule.levels)


def test_a_word_that_the_model_lacks_is_no_exact_one() -> None:
    assert reasoning_rule("gemini-3.1-pro-preview").level("minimal") == ("LOW", False)
    assert reasoning_rule("gemini-3-pro-preview").level("medium") == ("HIGH", False)
    assert reasoning_rule("gemini-3-flash-preview").level("none") == ("MINIMAL", False)
    assert reasoning_rule("gemini-3-flash-preview").level("max") == ("HIGH", False)


def test_a_budget_is_brought_within_the_models_bounds() -> None:
    pro, lite = reasoning_rule("gemini-2.5-pro"), reasoning_rule("gemini-2.5-flash-lite")
    assert [pro.budget(tokens) for tokens in (-1, 0, 64, 4096, 99_999)] == [-1, 128, 128, 4096, 32768]
    assert [lite.budget(tokens) for tokens in (-1, 0, 64, 99_999)] == [-1, 0, 512, 24576]
    assert set(BUDGETS) == set(EFFORT_WORDS)
