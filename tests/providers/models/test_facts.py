"""Facts about models by name and host."""

from providers.models.facts import NO_FACTS, ModelFacts, model_facts
from providers.profile import ModelHost
from tests.support.looped import looped


@looped(
    ("host", "upstream", "model", "known"),
    [
        ("any", "gpt-4o", "x", True),
        ("any", "prod-1", "o3", True),  # a name at the vendor that hides the model
        ("any", "deepseek-chat", "claude-opus-4-6", False),  # a client-side name for another model
        ("weights", "claude-opus-4-6", "claude-opus-4-6", False),
        ("weights", "gpt-oss-20b", "x", True),
        ("any", "AIDC-AI/Marco-o1", "x", False),
        ("any", "openai/o3:floor", "x", True),
        ("any", "gpt-5-chat-latest", "x", True),
        ("any", "gpt-5.1-chat-latest", "x", True),
        ("any", "qwen3", "x", False),
        ("any", "kimi-k2.5", "x", False),
        ("makers", "kimi-k2.5", "x", True),
    ],
)
def test_a_model_is_known_by_its_name_where_its_rules_hold(
    host: ModelHost, upstream: str, model: str, known: bool
) -> None:
    assert (model_facts(host, upstream, model) is not NO_FACTS) == known


@looped(
    ("name", "fixed"),
    [
        ("o3", True),
        ("gpt-5", True),
        ("gpt-5-2025-08-07", True),
        ("ft:gpt-5-mini", True),
        ("databricks-gpt-5-1", False),
        ("gpt-5.4", False),
        ("gpt-5.6-sol", False),
        ("gpt-5.4-pro", True),
        ("gpt-5.1-chat-latest", True),
        ("gpt-5.2-codex", True),
        ("gpt-5.3-codex", False),
        ("gpt-6-astra", True),
        ("gpt-6.1-terra", False),
        ("gpt-5-chat-latest", False),
        ("gpt-4o", False),
    ],
)
def test_openais_first_reasoning_models_have_one_temperature(name: str, fixed: bool) -> None:
    assert ("temperature" in model_facts("any", name, name).bounds) == fixed


def test_facts_of_several_rows_are_joined() -> None:
    kimi = model_facts("makers", "kimi-k3", "kimi-k3")
    assert (kimi.bounds["temperature"], kimi.words["xhigh"]) == ((1, 1), "max")
    first, second = ModelFacts(bounds={"a": (1, 1)}, prefill=False), ModelFacts(bounds={"a": (2, 2), "b": (3, 3)})
    assert first.over(second).bounds == {"a": (1, 1), "b": (3, 3)}
    assert not second.over(first).prefill
