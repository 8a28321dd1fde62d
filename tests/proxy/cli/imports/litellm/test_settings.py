"""LiteLLM's documented sample configurations: each becomes a valid one with the same routing and remarks on its
gaps.
"""

from pathlib import Path

from proxy.cli.imports.litellm.settings import variable_of
from tests.proxy.cli.imports.kit import FIXTURES, fixture, imported
from tests.support.looped import looped

EVERY = sorted(path.name for path in (FIXTURES / "litellm").iterdir())
AZURE = "azure/chatgpt-v-2/openai-gpt-4-test-v-1"
RAILWAY = "exampleopenaiendpoint-production-up-railway"


@looped("name", EVERY)
def test_every_documented_configuration_is_a_table_that_can_be_served(name: str) -> None:
    made = fixture(f"litellm/{name}")
    assert made.table.snapshot.models
    assert made.text.startswith(f"# From {name}, a configuration of litellm")


@looped("name", EVERY)
def test_no_credential_that_is_written_out_is_copied_or_told(name: str) -> None:
    made = fixture(f"litellm/{name}")
    told = made.text + "\n".join(map(str, made.losses))
    for secret in ("sk-123", "73g", "9kj", "eyJ0eXAiOiJ", "fake-key", "my-openai-key", "redis password"):
        assert secret not in told


def test_overview() -> None:
    made = fixture("litellm/overview.yaml")
    assert made.reached("vllm-models") == ["local-4000/facebook/opt-125m/default"]
    assert set(made.reached("gpt-4o")) == {"azure/gpt-4o-eu/default", "azure/gpt-4o-ca/default"}
    assert made.reached("anthropic-claude") == ["bedrock/anthropic.claude-instant-v1/us-east-1"]
    assert made.reached("bedrock-claude-v1") == ["bedrock/anthropic.claude-instant-v1/default"]
    assert made.table.snapshot.routes["gpt-4o"].policy == "weighted"
    target = made.table.snapshot.models["local-4000/facebook/opt-125m"].targets[0]
    assert target.base_url == "http://127.0.0.1:4000/v1"
    assert list(made.table.snapshot.teams) == ["master"]
    assert made.table.loaded.config.defaults.on_unsupported == "drop"
    assert set(made.lost) >= {
        "model_list.5",
        "litellm_settings.success_callback",
        "general_settings.master_key",
        "general_settings.alerting",
    }


def test_load_balancing() -> None:
    made = fixture("litellm/load_balancing.yaml")
    model = made.table.snapshot.models["tgi/HuggingFaceH4/zephyr-7b-beta"]
    assert (model.policy, [target.weight for target in model.targets]) == ("weighted", [60, 600, 60000])
    assert made.reached("zephyr-beta")[-1] == "openai/gpt-4o/default"
    assert len(made.reached("zephyr-beta")) == 4
    assert made.reached("gpt-4") == made.reached("gpt-4o") == ["openai/gpt-4o/default"]
    config = made.table.loaded.config
    assert config.routes["zephyr-beta"].fallbacks.context_window == ["openai/gpt-3.5-turbo-16k"]
    assert (config.defaults.timeouts.total, config.defaults.retries.attempts) == (30.0, 3)
    shared = config.server.shared
    assert shared is not None
    assert shared.redis.get_secret_value() == "redis://:sample-REDIS_PASSWORD@sample:1992"
    assert made.lost["litellm_settings.request_timeout"] == "another setting of the file comes first: not taken"
    assert config.defaults.circuit_breaker.failures == 4


def test_the_projects_own_test_configuration() -> None:
    made = fixture("litellm/proxy_server_config.yaml")
    assert set(made.reached("gpt-3.5-turbo-end-user-test")) == {"openai/gpt-3.5-turbo/default", AZURE}
    assert made.reached("gpt-3.5-turbo") == [AZURE]
    assert made.reached("gpt-4") == [f"{AZURE}-2"]
    assert set(made.reached("my-special-fake-model-alias-name")) == {
        f"{RAILWAY}/my-fake-model/{RAILWAY.removesuffix('-up-railway')}-2",
        f"{RAILWAY}/my-fake-model-2/default",
    }
    assert made.reached("some-model-of-openai") == ["openai/some-model-of-openai/default"]
    assert made.reached("anthropic/claude-x") == ["anthropic/claude-x/default"]
    assert made.table.loaded.config.routes["gpt-3.5-turbo"].fallbacks.context_window == ["openai/gpt-3.5-turbo-1106"]
    assert made.table.snapshot.routes["fake-openai-endpoint-3"].policy == "least_busy"
    assert set(made.lost) >= {
        "model_list.7",
        "model_list.0.litellm_params.region_name",
        "model_list.5.litellm_params.input_cost_per_second",
        "model_list.13.litellm_params.mock_timeout",
        "router_settings.routing_strategy",
        "general_settings.pass_through_endpoints",
        "general_settings.store_model_in_db",
        "litellm_settings.default_team_settings",
        "finetune_settings",
    }


def test_groups_that_fall_back_to_each_other() -> None:
    made = fixture("litellm/mutual_fallbacks.yaml")
    small, large = "siliconflow/deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", "siliconflow/Qwen/Qwen2.5-72B-Instruct"
    flash = ["zhipu/glm-4-flash/default", "zhipu/glm-4.7-flash/default"]
    assert made.reached("sf-deepseek-r1") == [f"{small}/default", f"{large}/default", *flash]
    assert made.reached("glm-4.7-flash") == [*flash[::-1], f"{large}/default", f"{small}/default"]
    assert (made.table.loaded.config.server.host, made.table.loaded.config.server.port) == ("127.0.0.1", 4000)
    cache = made.table.loaded.config.defaults.cache
    assert cache is not None
    assert (cache.ttl, cache.where) == (300.0, "memory")
    assert "temperature 0" in made.lost["litellm_settings.cache"]


def test_model_params() -> None:
    made = fixture("litellm/model_params.yaml")
    assert made.reached("gpt-4-team1") == ["azure/chatgpt-v-2/default"]
    assert made.table.loaded.config.models["azure/chatgpt-v-2"].credentials is not None
    assert made.reached("mistral-7b") == ["ollama/mistral/default"]
    assert set(made.lost) >= {
        "model_list.0.litellm_params.azure_ad_token",
        "model_list.0.litellm_params.seed",
        "model_list.2.litellm_params.extra_headers.AI-Resource Group",
        "model_list.3.litellm_params.api_base",
    }


def test_a_credential_that_is_named_is_used_where_it_is_named() -> None:
    made = fixture("litellm/credential_list.yaml")
    (target,) = made.table.snapshot.models["azure/gpt-4o"].targets
    assert (target.base_url, target.api_version) == ("https://sample.example.com", "2023-05-15")
    assert made.reached("gpt-4o") == ["azure/gpt-4o/default"]
    assert set(made.lost) == {"credential_list.0.credential_info"}


def test_regions_and_weights_by_tokens() -> None:
    made = fixture("litellm/regions.yaml")
    assert {it.rpartition("/")[2] for it in made.reached("bedrock-cohere")} == {"us-west-2", "us-east-2", "us-east-1"}
    assert made.losses == []
    made = fixture("litellm/azure_with_tpm.yaml")
    assert set(made.reached("gpt-3.5-turbo")) == {"azure/gpt-35-1/default", "azure/gpt-35-2/default"}
    assert made.draft.samples.keys() == {"AZURE_API_KEY", "AZURE_API_KEY_2"}


def test_what_the_file_includes_and_sets_is_named(tmp_path: object) -> None:
    path = FIXTURES.parent / "imports" / "litellm" / "regions.yaml"
    text = f"{path.read_text(encoding='utf-8')}include: [a.yaml]\nenvironment_variables: {{A: sk-canary, B: x}}\n"
    written = tmp_path / "c.yaml"  # type: ignore[operator]
    written.write_text(text, encoding="utf-8")
    made = imported("litellm", written)
    assert made.lost["environment_variables"].endswith("set them in the environment (A, B)")
    assert "include" in made.lost
    assert "canary" not in made.text


def test_a_variable_is_the_whole_value() -> None:
    assert variable_of("os.environ/A") == "A"
    assert variable_of("x os.environ/A") is None


def test_an_address_of_redis_may_hold_a_password_and_is_a_variable(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    models = "model_list:\n- {model_name: a, litellm_params: {model: openai/x}}\n"
    path.write_text(f"{models}router_settings: {{redis_url: 'redis://:canary@r:6379'}}\n", encoding="utf-8")
    made = imported("litellm", path)
    assert 'shared: {redis: "${REDIS_URL}"}' in made.text.replace("\n    ", " ")
    assert "canary" not in made.text
    assert set(made.lost) == {"router_settings.redis_url"}


@looped(
    ("router", "told"),
    [
        ("{}", True),
        ("{routing_strategy: simple-shuffle}", True),
        ("{routing_strategy: usage-based-routing-v2}", False),
        ("{optional_pre_call_checks: [enforce_model_rate_limits]}", False),
        ("{optional_pre_call_checks: [prompt_caching]}", True),
    ],
)
def test_rates_that_litellm_only_weighs_by_are_told_to_be_limits_here(router: str, told: bool, tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    lines = "- {model_name: m, litellm_params: {model: openai/x, api_key: os.environ/A, rpm: 10}}"
    path.write_text(f"model_list:\n{lines}\nrouter_settings: {router}\n", encoding="utf-8")
    made = imported("litellm", path)
    assert "limits: {requests_per_minute: 10}" in made.text
    assert any(hint.startswith("rpm and tpm of a deployment are limits here") for hint in made.remarks.hints) is told
    assert ("rpm and tpm of a deployment are limits here" in made.text) is told
