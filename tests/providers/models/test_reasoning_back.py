"""Which deployments want the reasoning of earlier turns back."""

from dataclasses import replace

from providers.models.reasoning_back import signs_texts, wants_reasoning_back, wants_signatures, wants_text
from tests.providers.dialects.openai.kit import target
from tests.support.looped import looped

DEEPSEEK = replace(target("deepseek"), upstream_model="deepseek-v4")


@looped("profile", ["anthropic", "vertex_anthropic", "bedrock", "gemini", "vertex", "openrouter"])
def test_vendors_that_sign_want_their_reasoning_back(profile: str) -> None:
    assert wants_signatures(target(profile))
    assert wants_reasoning_back(target(profile))


@looped(
    ("profile", "model", "wanted"),
    [
        ("deepseek", "deepseek-v4", True),
        ("deepseek", "deepseek-reasoner", True),
        ("deepseek", "deepseek-r1", False),
        ("moonshot", "kimi-k2.5", True),
        ("fireworks", "accounts/fireworks/models/kimi-k2-thinking", True),
        ("fireworks", "accounts/fireworks/models/llama", False),
        ("groq", "moonshotai/kimi-k2", True),
        ("xai", "moonshotai/kimi-k2", False),
        ("openai", "gpt-4o", False),
        ("vllm", "qwen3", False),
    ],
)
def test_the_text_goes_back_to_models_that_refuse_a_turn_without_it(profile: str, model: str, wanted: bool) -> None:
    each = replace(target(profile), upstream_model=model, model=model)
    assert wants_text(each) is wanted
    assert wants_reasoning_back(each) is wanted


@looped(("model", "wanted"), [("gpt-5.6", True), ("gpt-5.5", True), ("o3-pro", True), ("o3", False)])
def test_models_that_are_called_by_the_responses_api_want_their_reasoning_back(model: str, wanted: bool) -> None:
    for row in ("openai", "azure"):
        assert wants_signatures(replace(target(row), upstream_model=model, model="house")) is wanted


def test_a_vendor_that_takes_no_reasoning_back_gets_none() -> None:
    silent = replace(DEEPSEEK.profile, reasoning_members=(), overrides=())
    assert not wants_text(replace(DEEPSEEK, profile=silent))


@looped(
    ("profile", "model", "signs"),
    [
        ("gemini", "house", True),
        ("gemini", "gemini-3.1-pro-preview", True),
        ("gemini", "gemini-2.5-flash", False),
        ("openrouter", "google/gemini-2.5-pro", False),
        ("vertex", "house", True),
        ("gemini_compat", "house", True),
        ("openrouter", "google/gemini-3-pro", True),
        ("openrouter", "openai/gpt-5", False),
        ("anthropic", "claude-opus-4-6", False),
        ("vllm", "gemini-clone", False),
    ],
)
def test_vendors_of_gemini_sign_texts(profile: str, model: str, signs: bool) -> None:
    assert signs_texts(replace(target(profile), upstream_model=model)) is signs
