"""The rules of models, at any host, for unified fields and in clients' own bodies."""

from collections.abc import Mapping

import orjson
import pytest

from providers.adaptation.fit_model import fit_to_model
from providers.emulation.plan_calls import plan_calls
from providers.failure import Refusal
from providers.json_types import JsonObject, JsonValue
from providers.unified_request import UnifiedRequest
from tests.providers.adaptation.kit import A_TOOL, found, planned, sent
from tests.providers.dialects.anthropic.native_kit import own_request
from tests.providers.dialects.kit import chat_request, target_of, user
from tests.support.looped import looped

PREFILL: JsonObject = {"role": "assistant", "content": "Sure"}
BOTH = {"temperature": 0.5, "top_p": 0.9}
OLD, NEW = {"temperature": 0.5, "top_p": None}, {"temperature": None, "top_p": 0.9}

CLAUDE_HOSTS: Mapping[str, str] = {
    "anthropic": "claude-sonnet-4-5",
    "vertex_anthropic": "claude-opus-4-1@20250805",
    "bedrock": "us.anthropic.claude-haiku-4-5-20251001-v1:0",
    "bedrock_anthropic": "anthropic.claude-sonnet-4-6",
    "openrouter": "anthropic/claude-opus-4.6",
    "databricks": "databricks-claude-opus-4-5",
    "openai_compatible": "bedrock/anthropic.claude-sonnet-4-5",
    "azure_v1": "claude-sonnet-4-5",
}


@looped(("profile", "model"), CLAUDE_HOSTS.items())
@looped(
    ("params", "expected"),
    [
        (BOTH, "top_p"),
        ({"temperature": 0.5, "top_p": 1}, OLD),
        ({"temperature": 1, "top_p": 0.9}, NEW),
        ({"temperature": 0.5}, OLD),
        ({"top_p": 0.9}, NEW),
    ],
)
def test_claude_has_one_sampler_at_each_host(
    profile: str, model: str, params: dict[str, JsonValue], expected: str | dict[str, JsonValue]
) -> None:
    requests = [chat_request(**params)]
    if profile in ("anthropic", "vertex_anthropic", "bedrock_anthropic"):
        requests.append(own_request(**params))  # type: ignore[arg-type]  # fields of the body
    for request in requests:
        if isinstance(expected, dict):
            plan = planned(request, profile, model)
            assert {name: found(sent(plan), name) for name in expected} == expected
            assert plan.dropped == ()
            continue
        with pytest.raises(Refusal, match="'top_p' is not supported") as caught:
            planned(request, profile, model)
        assert (caught.value.param, caught.value.code) == (expected, "unsupported_parameter")
        dropping = planned(request, profile, model, "drop")
        assert (found(sent(dropping), "top_p"), found(sent(dropping), "temperature")) == (None, 0.5)
        assert dropping.dropped == ("top_p",)


def test_a_default_of_the_surface_gives_way_to_the_clients_own_sampler() -> None:
    request = chat_request(temperature=0.5, top_p=0.9)
    object.__setattr__(request, "injected", frozenset({"temperature"}))
    assert {name: found(sent(planned(request, "openrouter", "anthropic/claude-opus-4.1")), name) for name in NEW} == NEW


@looped(
    ("profile", "model"),
    [
        ("anthropic", "claude-sonnet-4-0"),
        ("openai", "gpt-4o"),
        ("vllm", "claude-sonnet-4-5"),  # open weights that their operator gave this name
        ("deepseek", "deepseek-chat"),
    ],
)
def test_other_models_take_both_samplers(profile: str, model: str) -> None:
    body = sent(planned(chat_request(**BOTH), profile, model))
    assert {name: found(body, name) for name in BOTH} == BOTH


PREFILLS: Mapping[str, tuple[UnifiedRequest, bool]] = {
    "text": (chat_request(user("hi"), PREFILL), True),
    "parts": (chat_request(user("hi"), {**PREFILL, "content": [{"type": "text", "text": "a"}]}), True),
    "instructed": (chat_request(user("hi"), PREFILL, {"role": "system", "content": "Be brief"}), True),
    "blank": (chat_request(user("hi"), {**PREFILL, "content": " "}), False),
    "user": (chat_request(user("hi"), PREFILL, user("go on")), False),
    "own text": (own_request(messages=[user("hi"), PREFILL]), True),
    "own blocks": (own_request(messages=[user("hi"), {**PREFILL, "content": [{"type": "text", "text": "a"}]}]), True),
    "paused": (
        own_request(
            messages=[
                user("hi"),
                {
                    "role": "assistant",
                    "content": [
                        {"type": "text", "text": "a"},
                        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
                    ],
                },
            ]
        ),
        False,
    ),
}


@looped(("request_", "ends"), PREFILLS.values(), ids=PREFILLS)
@looped(
    ("profile", "model", "takes"),
    [
        ("anthropic", "claude-opus-4-6", False),
        ("vertex_anthropic", "claude-sonnet-4-6", False),
        ("bedrock", "anthropic.claude-opus-4-7", False),
        ("bedrock_anthropic", "anthropic.claude-sonnet-5-5", False),
        ("openrouter", "anthropic/claude-opus-4.6", False),
        ("openai_compatible", "claude-fable-5", False),
        ("anthropic", "claude-sonnet-4-5", True),
        ("openrouter", "anthropic/claude-opus-4.5", True),
        ("vllm", "qwen3", True),
    ],
)
def test_a_conversation_may_end_in_a_text_of_the_model_only_where_it_is_continued(
    profile: str, model: str, takes: bool, request_: UnifiedRequest, ends: bool
) -> None:
    to = target_of(profile, model)
    if takes or not ends:
        assert fit_to_model(request_, to) is None
        return
    with pytest.raises(Refusal, match="must end with a message of the user") as caught:
        plan_calls(request_, to, "drop")
    assert (caught.value.param, caught.value.code) == ("messages", "unsupported_parameter")


@looped(
    ("profile", "model", "params", "expected"),
    [
        ("moonshot", "kimi-k2.5", {"temperature": 1, "top_p": 0.95}, {"temperature": 1, "top_p": 0.95}),
        ("moonshot", "kimi-k2-thinking", {"temperature": 1}, {"temperature": 1}),
        ("moonshot", "kimi-k2.6", {"temperature": 0.6}, "temperature"),
        ("moonshot", "kimi-k3", {"top_p": 0.9}, "top_p"),
        ("moonshot", "kimi-k2.5", {"presence_penalty": 0}, {"presence_penalty": None}),
        ("moonshot", "kimi-k2.5", {"temperature": 0.6, "reasoning_effort": "none"}, {"temperature": None}),
        ("moonshot", "kimi-k2.5", {"temperature": 1, "thinking": {"type": "disabled"}}, "temperature"),
        ("moonshot", "kimi-k2-0905-preview", {"temperature": 0.5}, {"temperature": 0.5}),
        ("openrouter", "moonshotai/kimi-k2.5", {"temperature": 1}, {"temperature": None}),
        ("openrouter", "moonshotai/kimi-k2.5", {"temperature": 0.5}, "temperature"),
        ("fireworks", "accounts/fireworks/models/kimi-k2.5", {"temperature": 0.5}, {"temperature": 0.5}),
        ("vllm", "moonshotai/Kimi-K2.5", {"temperature": 0.5}, {"temperature": 0.5}),
        ("openai", "o3", {"temperature": 1}, {"temperature": None}),
        ("openai", "o3", {"temperature": 0.5}, "temperature"),
        ("openrouter", "openai/o3", {"temperature": 0.5}, "temperature"),
        ("openrouter", "openai/o3-mini", {"top_p": 0.5}, "top_p"),
        ("openrouter", "openai/gpt-5-mini", {"temperature": 1}, {"temperature": None}),
        ("openrouter", "openai/gpt-4o", {"reasoning_effort": "low"}, "reasoning_effort"),
        ("openrouter", "openai/gpt-5.1", {"temperature": 0.5}, {"temperature": 0.5}),
        ("azure", "o4-mini", {"presence_penalty": 1}, "presence_penalty"),
        ("databricks", "databricks-gpt-5-mini", {"temperature": 0.5}, "temperature"),
        ("github_models", "openai/o3", {"temperature": 0.5}, "temperature"),
        ("openrouter", "anthropic/claude-opus-4.7", {"temperature": 1}, {"temperature": None}),
        ("openrouter", "anthropic/claude-opus-4.7", {"top_k": 5}, "top_k"),
        ("openai", "gpt-5-codex", {"temperature": 0.5}, "temperature"),
        ("bedrock", "anthropic.claude-opus-4-7", {"temperature": 0.5}, "temperature"),
        ("openrouter", "google/gemini-3.8-flash", {"top_p": 0.5}, "top_p"),
        ("vertex", "gemini-3.8-flash", {"temperature": 0.5}, "temperature"),
        ("openrouter", "x-ai/grok-4", {"presence_penalty": 1}, "presence_penalty"),
        ("xai", "grok-4", {"presence_penalty": 1}, "presence_penalty"),
        ("openai_compatible", "deepseek/deepseek-reasoner", {"temperature": 0.5}, "temperature"),
        ("openrouter", "deepseek/deepseek-r1", {"temperature": 0.5}, {"temperature": 0.5}),
        ("vllm", "openai/gpt-oss-120b", {"reasoning_effort": "none"}, {"reasoning_effort": "low"}),
        ("fireworks", "gpt-oss-20b", {"reasoning_effort": "none"}, {"reasoning_effort": "low"}),
    ],
)
def test_what_a_model_samples_by_holds_where_its_maker_is_called(
    profile: str, model: str, params: dict[str, object], expected: str | dict[str, object]
) -> None:
    request = chat_request(**params)
    if isinstance(expected, dict):
        body = sent(planned(request, profile, model))
        assert {name: found(body, name) for name in expected} == expected
        return
    with pytest.raises(Refusal) as caught:
        planned(request, profile, model)
    assert (caught.value.param, caught.value.code) == (expected, "unsupported_parameter")
    assert planned(request, profile, model, "drop").dropped[:1] == (expected,)


@looped(
    ("profile", "model", "params", "expected"),
    [
        ("azure_v1", "grok-4", {"reasoning_effort": "low"}, "reasoning_effort"),
        ("xai", "grok-3", {"reasoning_effort": "low"}, "reasoning_effort"),
        ("azure_v1", "grok-4-fast-reasoning", {"reasoning_effort": "low"}, "reasoning_effort"),
        ("azure_v1", "grok-3-mini", {"reasoning_effort": "medium"}, "high"),
        ("xai", "grok-3-mini", {"reasoning_effort": "medium"}, "high"),
        ("xai", "grok-4.7", {"reasoning_effort": "max"}, "xhigh"),
        ("azure_v1", "grok-4.6", {"reasoning_effort": "none"}, "low"),
        ("openrouter", "x-ai/grok-4", {"reasoning_effort": "medium"}, "medium"),
        ("openrouter", "x-ai/grok-3-mini", {"reasoning_effort": "medium"}, "medium"),
    ],
)
def test_groks_words_of_effort_hold_where_the_field_is_passed_on(
    profile: str, model: str, params: dict[str, object], expected: str
) -> None:
    if expected == "reasoning_effort":
        with pytest.raises(Refusal) as caught:
            planned(chat_request(**params), profile, model)
        assert caught.value.param == expected
        return
    body = sent(planned(chat_request(**params), profile, model))
    assert expected in (found(body, "reasoning_effort"), found(body, "effort"))


@looped("profile", ["deepseek", "openai_compatible", "azure_v1"])
def test_deepseeks_reasoner_is_not_forced_by_a_choice_at_any_host(profile: str) -> None:
    plan = planned(chat_request(tools=[A_TOOL], tool_choice="required"), profile, "deepseek-reasoner")
    assert (found(sent(plan), "tool_choice"), "tool_choice" in plan.emulated) == (None, True)


def test_stops_of_a_model_without_them_are_looked_for_by_the_gateway_at_each_host() -> None:
    for profile, model in [("openai", "o3"), ("openrouter", "openai/o3"), ("openrouter", "x-ai/grok-4")]:
        plan = planned(chat_request(stop=("END",)), profile, model)
        assert ("stop" in plan.emulated, found(sent(plan), "stop")) == (True, None)


def test_blank_stops_of_claude_are_looked_for_by_the_gateway_at_each_host() -> None:
    for profile, model in CLAUDE_HOSTS.items():
        plan = planned(chat_request(stop=("\n\n", "END")), profile, model)
        assert ("stop" in plan.emulated, "\\n" in orjson.dumps(sent(plan)).decode()) == (True, False), profile
    assert planned(chat_request(stop=("\n\n",)), "openrouter", "openai/gpt-4o").emulated == ()


CALLED: list[JsonObject] = [
    user("hi"),
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "call_abc_1", "type": "function", "function": {"name": "a", "arguments": "{}"}}],
    },
    {"role": "tool", "tool_call_id": "call_abc_1", "content": "r"},
]


def ids_in(body: JsonValue) -> set[str]:
    """Return the ids of calls and results in a body, at any depth."""
    if isinstance(body, list):
        return set[str]().union(*map(ids_in, body))
    if not isinstance(body, dict):
        return set()
    own: set[str] = {str(value) for name, value in body.items() if name in ("id", "tool_call_id", "toolUseId")}
    return own.union(*map(ids_in, body.values()))


@looped(
    ("profile", "model"),
    [
        ("mistral", "mistral-large-2512"),
        ("openrouter", "mistralai/devstral-medium"),
        ("azure", "Mistral-Large-3"),
        ("bedrock", "mistral.mistral-large-2407-v1:0"),
        ("bedrock", "mistral.pixtral-large-2502-v1:0"),
        ("vllm", "mistralai/Ministral-8B"),
        ("sagemaker", "my-mixtral"),
        ("watsonx", "mistralai/mistral-large"),
        ("github_models", "mistral-ai/codestral-2501"),
        ("openai_compatible", "magistral-small"),
    ],
)
def test_a_model_of_mistrals_gets_ids_of_nine_letters_and_digits_at_each_host(profile: str, model: str) -> None:
    ids = ids_in(sent(planned(chat_request(*CALLED, tools=[A_TOOL]), profile, model)))
    assert len(ids) == 1
    assert all(len(each) == 9 and each.isalnum() for each in map(str, ids))


def test_ids_for_other_models_stay() -> None:
    for profile, model in [("openrouter", "openai/gpt-4o"), ("vllm", "qwen3"), ("bedrock", "amazon.nova-pro-v1:0")]:
        assert ids_in(sent(planned(chat_request(*CALLED, tools=[A_TOOL]), profile, model))) == {"call_abc_1"}


BUDGET: JsonObject = {"type": "enabled", "budget_tokens": 20_000}


@looped(
    ("profile", "model", "most", "asked", "limit"),
    [
        ("openai", "gpt-4o", 16_384, 32_000, 16_384),
        ("openai", "gpt-4o", 16_384, 100, None),
        ("openai", "gpt-4o", None, 32_000, None),
        ("anthropic", "claude-sonnet-4-5", 8_192, 32_000, 8_192),
        ("anthropic", "claude-haiku-4-5", None, 100_000, 64_000),
        ("openrouter", "anthropic/claude-haiku-4.5", None, 100_000, 64_000),
        ("anthropic", "claude-3-7-sonnet-latest", 128_000, 100_000, None),  # a beta raises the limit
        ("bedrock", "amazon.nova-pro-v1:0", 10_000, 32_000, 10_000),
        ("gemini", "gemini-2.5-flash", 8_192, 32_000, 8_192),
        ("cohere", "command-a-03-2025", 4_096, 32_000, 4_096),
        ("vllm", "qwen3", 4_096, 32_000, 4_096),
        ("cohere", "command-a-03-2025", None, 32_000, 8_000),
        ("cohere_compat", "command-a-reasoning-08-2025", None, 64_000, 32_000),
        ("azure_v1", "cohere-command-r-plus", None, 32_000, 4_096),
        ("openrouter", "cohere/command-a", None, 32_000, 8_000),
        ("vllm", "CohereForAI/c4ai-command-r-v01", None, 32_000, None),
        ("bedrock", "amazon.nova-lite-v1:0", None, 32_000, 10_000),
        ("openrouter", "amazon/nova-pro-v1", None, 32_000, 10_000),
        ("openrouter", "amazon/nova-2-lite-v1", None, 32_000, None),
        ("vllm", "claude-haiku-4-5", None, 100_000, None),
    ],
)
def test_a_limit_above_the_deployments_is_lowered_to_it_and_named(
    profile: str, model: str, most: int | None, asked: int, limit: int | None
) -> None:
    plan = planned(chat_request(max_tokens=asked), profile, model, max_output_tokens=most)
    assert (plan.max_tokens, "max_tokens" in plan.emulated) == (limit, limit is not None)
    assert str(limit or asked) in orjson.dumps(sent(plan)).decode()
    assert plan.request.params["max_tokens"] == (limit or asked)


MEMBERS: Mapping[str, JsonObject] = {
    "openai": {"max_completion_tokens": 4000},
    "openai ": {"max_output_tokens": 4000, "reasoning": {"max_tokens": 4000}},
    "openai_compatible": {"max_tokens": 4000, "extra_body": {"max_new_tokens": 4000}, "options": {"num_predict": -1}},
    "vllm": {"max_tokens": "4000", "min_tokens": 4000},
    "openrouter": {"reasoning": {"max_tokens": 4000}},
    "azure_v1": {"max_output_tokens": 4000},
    "anthropic": {"max_tokens": 4000, "thinking": {"type": "enabled", "budget_tokens": 3000}},
    "bedrock_anthropic": {"max_tokens": 4000},
    "bedrock": {"inferenceConfig": {"maxTokens": 4000}, "additionalModelRequestFields": {"max_tokens": 4000}},
    "gemini": {"generationConfig": {"maxOutputTokens": 4000, "thinkingConfig": {"thinkingBudget": 4000}}},
    "cohere": {"max_tokens": 4000},
    "ollama_native": {"options": {"num_predict": 4000}},
    "watsonx": {"parameters": {"max_new_tokens": 4000}, "max_tokens": 4000},
    "sagemaker": {"max_tokens": 4000},
}
"""Fields that let a vendor generate more than the operator's limit, by profile."""


@looped(("profile", "members"), MEMBERS.items())
@looped("asked", [None, 100, 9000])
@looped("way", ["extra_params", "unknown"])
def test_members_that_reach_the_vendor_are_held_to_the_operators_limit_and_named(
    way: str, asked: int | None, profile: str, members: JsonObject
) -> None:
    request = chat_request() if asked is None else chat_request(max_tokens=asked)
    if way == "unknown":
        members = {name: value for name, value in members.items() if name != "max_tokens"}
    object.__setattr__(request, way, members)
    model = {"openai": "gpt-4o", "azure_v1": "gpt-4o", "openai ": "gpt-5.1-codex"}.get(
        profile, "claude-opus-4-0" if "anthropic" in profile else "m"
    )
    profile = profile.strip()
    if way == "unknown" and profile not in ("openai_compatible", "vllm", "openrouter"):
        return  # these are no fields of the body, or are written from another field
    plan = planned(request, profile, model, max_output_tokens=1500)
    body = orjson.dumps(sent(plan)).decode()
    assert not {"4000", "3000", "9000"} & set(body.replace('"', " ").replace(":", " ").replace(",", " ").split()), body
    assert "4000" not in body
    assert (plan.max_tokens, "max_tokens" in plan.emulated) == (1500, True)
    assert planned(request, profile, model).max_tokens is None


@looped(("members", "limit"), [({"max_tokens": 4000}, 1500), ({"max_tokens": 500, "max_tokens_to_sample": 4000}, 1500)])
def test_a_clients_own_body_is_held_to_the_operators_limit(members: JsonObject, limit: int) -> None:
    plan = planned(own_request(more=members), "anthropic", "claude-opus-4-5", max_output_tokens=1500)
    assert (plan.max_tokens, "4000" in orjson.dumps(sent(plan)).decode()) == (limit, False)


def test_a_budget_of_thinking_without_a_limit_stays_below_the_operators() -> None:
    plan = planned(chat_request(thinking=BUDGET), "anthropic", "claude-sonnet-4-5", max_output_tokens=8192)
    assert (found(sent(plan), "budget_tokens"), found(sent(plan), "max_tokens"), plan.max_tokens) == (7168, 8192, 8192)


@looped("own", [True, False])
@looped(
    ("most", "budget", "dropped"),
    [(24_000, 20_000, ()), (20_000, 18_976, ()), (8_192, 7_168, ()), (1_500, 1_024, ()), (1_024, None, ("thinking",))],
)
def test_a_budget_of_thinking_stays_below_a_lowered_limit(
    own: bool, most: int, budget: int | None, dropped: tuple[str, ...]
) -> None:
    asking = own_request if own else chat_request
    for profile, model in [("anthropic", "claude-sonnet-4-5"), ("bedrock", "anthropic.claude-sonnet-4-5-v1:0")]:
        if own and profile == "bedrock":
            continue
        plan = planned(asking(max_tokens=32_000, thinking=BUDGET), profile, model, max_output_tokens=most)
        body = sent(plan)
        assert (found(body, "budget_tokens"), plan.dropped) == (budget, dropped)
        assert most in (found(body, "max_tokens"), found(body, "maxTokens"))
        assert (plan.max_tokens, "max_tokens" in plan.emulated) == (most, True)


def test_a_request_that_fits_stays_the_same_object_and_is_planned_at_once() -> None:
    request = chat_request(temperature=0.5, max_tokens=10)
    for profile, model in [("openai", "gpt-4o"), ("anthropic", "claude-opus-4-6"), ("moonshot", "kimi-k2.5")]:
        assert fit_to_model(request, target_of(profile, model, max_output_tokens=100)) is None
