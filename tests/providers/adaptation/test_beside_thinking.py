"""The fields that Claude excludes while it reasons, at each host, and hosts and models without such rules."""

from collections.abc import Mapping

import orjson
import pytest

from providers.failure import Refusal
from providers.json_types import JsonValue
from providers.unified_request import UnifiedRequest
from tests.providers.adaptation.kit import A_TOOL, found, planned, sent
from tests.providers.dialects.kit import chat_request
from tests.support.looped import looped

THINKS: Mapping[str, dict[str, object]] = {
    "anthropic": {"thinking": {"type": "enabled", "budget_tokens": 1024}},
    "anthropic ": {"extra": {"thinking": {"type": "enabled", "budget_tokens": 1024}}},
    "bedrock": {"reasoning_effort": "low"},
    "bedrock_anthropic": {"reasoning_effort": "low"},
    "vertex_anthropic": {"thinking": {"type": "enabled", "budget_tokens": 1024}},
    "openrouter": {"reasoning_effort": "low"},
    "openrouter ": {"thinking": {"type": "enabled", "budget_tokens": 1024}},
    "azure_v1": {"reasoning_effort": "high"},
    "openai": {"reasoning_effort": 2000},
    "fireworks": {"thinking": {"type": "enabled", "budget_tokens": 1024}},
    "databricks": {"extra": {"thinking": {"type": "enabled", "budget_tokens": 1024}}},
    "openai_compatible": {"extra": {"reasoning": {"effort": "high"}}},
    "openai_compatible ": {"extra": {"reasoning_effort": "low"}},
    "openai_compatible  ": {"extra": {"reasoning": {"max_tokens": 1024}}},
}
"""Fields that request reasoning from Claude, by host."""


def asking(how: dict[str, object], **params: object) -> UnifiedRequest:
    """Return a request for reasoning, by a unified field or by an extra field."""
    request = chat_request(max_tokens=9000, **{name: each for name, each in how.items() if name != "extra"}, **params)
    object.__setattr__(request, "extra_params", how.get("extra"))
    return request


@looped(("profile", "how"), THINKS.items())
@looped(
    ("model", "params", "expected"),
    [
        ("sonnet-4-5", {"temperature": 0.5}, "temperature"),
        ("opus-4-6", {"temperature": 0.5}, "temperature"),
        ("opus-4-1", {"top_p": 0.5}, "top_p"),
        ("opus-4-1", {"top_k": 5}, "top_k"),
        ("sonnet-4-5", {"temperature": 1}, None),
        ("sonnet-4-5", {"top_p": 0.97}, None),
        ("sonnet-4-5", {"top_p": 1}, None),
        ("sonnet-4-5", {"top_k": 0}, None),
        ("sonnet-4-5", {}, None),
    ],
)
def test_what_claude_samples_by_beside_thinking_holds_at_each_host(
    model: str, params: dict[str, object], expected: str | None, profile: str, how: dict[str, object]
) -> None:
    profile, request = profile.strip(), asking(how, **params)
    prefix = {"openrouter": "anthropic/claude-", "databricks": "databricks-claude-", "bedrock": "anthropic.claude-"}
    name = prefix.get(profile, "claude-") + model
    if expected is None:
        assert planned(request, profile, name).dropped == ()
        return
    with pytest.raises(Refusal, match=rf"'{expected}' is not supported") as caught:
        planned(request, profile, name)
    assert (caught.value.param, caught.value.code) == (expected, "unsupported_parameter")
    assert expected in planned(request, profile, name, "drop").dropped
    if expected != "top_k":  # not every host has the field
        off: dict[str, object] = {"reasoning_effort": "none"} if "reasoning_effort" in how else {}
        assert planned(chat_request(**params, **off), profile, name).dropped == ()


@looped(("profile", "how"), THINKS.items())
@looped("choice", ["required", {"type": "function", "function": {"name": "a"}}])
@looped(("model", "leaves_out"), [("sonnet-4-5", True), ("opus-4-6", True), ("opus-4-7", True), ("opus-4-8", False)])
def test_a_forced_call_rules_claudes_thinking_out_at_each_host(
    model: str, leaves_out: bool, choice: JsonValue, profile: str, how: dict[str, object]
) -> None:
    profile, request = profile.strip(), asking(how, tools=[A_TOOL], tool_choice=choice)
    plan = planned(request, profile, {"bedrock": "anthropic.claude-"}.get(profile, "claude-") + model)
    members = how.get("extra") or how
    assert isinstance(members, dict)
    assert plan.dropped == (tuple(members) if leaves_out else ())
    body = orjson.dumps(sent(plan)).decode()
    assert ("thinking" in body or "reasoning" in body) != leaves_out
    assert "tool_choice" in body or "toolChoice" in body


@looped(
    ("profile", "model", "params"),
    [
        ("openrouter", "anthropic/claude-sonnet-4.5", {"reasoning_effort": "none", "temperature": 0.5}),
        ("openrouter", "anthropic/claude-sonnet-4.5", {"thinking": {"type": "disabled"}, "top_k": 5}),
        ("openrouter", "anthropic/claude-3.5-haiku", {"temperature": 0.5}),
        ("openrouter", "openai/gpt-5.1", {"reasoning_effort": "none", "temperature": 0.5}),
        ("openrouter", "openai/gpt-5.1", {"temperature": 0.5, "presence_penalty": 1}),
        ("vllm", "claude-sonnet-4-5", {"reasoning_effort": "low", "temperature": 0.5}),
        ("openrouter", "qwen/qwen3-32b", {"reasoning_effort": "low", "top_k": 5}),
    ],
)
def test_models_that_do_not_think_and_other_models_sample_freely(
    profile: str, model: str, params: dict[str, object]
) -> None:
    assert planned(chat_request(**params), profile, model).dropped == ()


def test_a_default_of_the_surface_gives_way_to_thinking() -> None:
    request = chat_request(temperature=0.2, reasoning_effort="low")
    object.__setattr__(request, "injected", frozenset({"temperature"}))
    plan = planned(request, "openrouter", "anthropic/claude-sonnet-4.5")
    assert (found(sent(plan), "temperature"), plan.dropped) == (None, ())


@looped(
    ("model", "params", "refused"),
    [
        ("gpt-5.6", {"best_of": 2}, True),
        ("gpt-5.6", {"best_of": 2, "reasoning_effort": "none"}, False),
        ("gpt-5.1", {"best_of": 2}, False),
        ("gpt-5.1", {"best_of": 2, "reasoning_effort": "low"}, True),
    ],
)
def test_candidates_are_not_ranked_by_log_probabilities_that_reasoning_excludes(
    model: str, params: dict[str, object], refused: bool
) -> None:
    request = chat_request(max_tokens=9000, **params)
    if refused:
        with pytest.raises(Refusal, match="ranked by log probabilities") as caught:
            planned(request, "openai", model)
        assert caught.value.param == "best_of"
    else:
        planned(request, "openai", model)
