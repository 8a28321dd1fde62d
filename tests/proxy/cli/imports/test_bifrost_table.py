"""Bifrost's documented sample configurations: each becomes a valid one with the same routing and remarks on its
gaps.
"""

import json
from pathlib import Path

import pytest

from providers.profiles.load_profiles import load_profiles
from proxy.cli.imports.bifrost_table import KEYLESS, OWN_PATHS, PROFILES, variable_of, without_wrappers
from proxy.cli.imports.foreign_section import ForeignSection
from proxy.cli.imports.remarks import Remarks
from tests.proxy.cli.imports.kit import FIXTURES, Imported, fixture, imported, section
from tests.support.looped import looped

EVERY = sorted(path.name for path in (FIXTURES / "bifrost").iterdir())


def table(tmp_path: Path, config: object) -> Imported:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config, indent="\t"), encoding="utf-8")
    return imported("bifrost", path)


def test_every_provider_has_a_profile_that_there_is() -> None:
    assert {*PROFILES.values(), *KEYLESS, *OWN_PATHS} <= load_profiles().keys()


@pytest.mark.parametrize("provider", PROFILES)
def test_a_provider_with_nothing_but_a_key_can_be_served(provider: str, tmp_path: Path) -> None:
    made = table(tmp_path, {"providers": {provider: {"keys": [{"value": "env.K", "models": ["*"]}]}}})
    assert made.reached(f"{provider}/m") == [f"{provider}/m/key-1"] or made.reached(f"{provider}/m") == [
        f"{provider}/m/default"
    ]


@looped("name", EVERY)
def test_every_documented_configuration_is_a_table_that_can_be_served(name: str) -> None:
    made = fixture(f"bifrost/{name}")
    assert made.table.snapshot.models or made.table.snapshot.wildcards
    told = made.text + "\n".join(map(str, made.losses))
    assert "sk-123" not in told
    assert "sk-bf-vk-prod-assistant-eu-01" not in told


def test_quick_start() -> None:
    made = fixture("bifrost/quick_start.json")
    assert made.reached("openai/gpt-4o") == ["openai/gpt-4o/default"]
    config = made.table.loaded.config
    assert (config.vendors["openai"].timeouts.total, config.vendors["openai"].retries.attempts) == (120.0, 4)
    assert config.server.cors.origins == ["https://app.yourcompany.com"]
    assert made.draft.samples.keys() == {"OPENAI_API_KEY", "ANTHROPIC_API_KEY"}
    assert set(made.lost) >= {"encryption_key", "config_store", "client.initial_pool_size", "client.allow_direct_keys"}


def test_weighted_keys() -> None:
    made = fixture("bifrost/weighted_keys.json")
    mini = made.table.snapshot.models["openai/gpt-4o-mini"]
    assert {target.deployment: target.weight for target in mini.targets} == {
        "openai-primary": 2,
        "openai-secondary": 1,
        "openai-batch": 1,
    }
    assert {target.deployment for target in made.table.snapshot.wildcards["openai"].targets} == {
        "openai-primary",
        "openai-batch",
    }
    assert "providers.openai.keys.2.use_for_batch_api" in made.lost
    assert "# providers.openai.network_config.retry_backoff_initial: the waits" in made.text


def test_self_hosted() -> None:
    made = fixture("bifrost/self_hosted.json")
    vllm = made.table.snapshot.models["vllm/llama-3-70b"].targets[0]
    assert (vllm.base_url, vllm.upstream_model) == (
        "http://vllm-server:8000/v1",
        "meta-llama/Meta-Llama-3-70B-Instruct",
    )
    assert made.table.snapshot.wildcards["ollama"].targets[0].base_url == "http://localhost:11434"
    assert made.table.snapshot.wildcards["sgl"].targets[0].profile.name == "sglang"
    assert made.table.snapshot.models["huggingface/mixtral"].targets[0].upstream_model.startswith("mistralai/")
    assert made.losses == []


def test_load_test() -> None:
    made = fixture("bifrost/load_test.json")
    assert made.table.snapshot.wildcards["openai"].targets[0].base_url == "http://localhost:8000/v1"
    assert made.table.snapshot.wildcards["anthropic"].targets[0].base_url == "http://localhost:8000"
    assert set(made.lost) == {"providers.elevenlabs"} | {
        f"providers.{vendor}.keys.0.value" for vendor in ("openai", "anthropic", "bedrock")
    }


@pytest.mark.parametrize(("version", "served"), [({}, False), ({"version": 2}, False), ({"version": 1}, True)])
def test_an_empty_list_of_models_is_as_in_its_version(version: dict[str, int], served: bool, tmp_path: Path) -> None:
    keys = [{"name": "a", "value": "env.A", "models": []}, {"name": "b", "value": "env.B", "models": ["gpt-4o"]}]
    made = table(tmp_path, {**version, "providers": {"openai": {"keys": keys}}})
    assert ("openai" in made.table.snapshot.wildcards) == served
    assert ("providers.openai.keys.0" in made.lost) != served


def test_a_key_that_is_not_enabled_is_not_used(tmp_path: Path) -> None:
    keys = [{"name": str(on), "value": f"env.{on}", "models": ["*"], "enabled": on} for on in (True, False)]
    made = table(tmp_path, {"providers": {"openai": {"keys": keys}}})
    assert made.draft.samples.keys() == {"True"}
    assert made.lost == {"providers.openai.keys.1": "is not enabled: not taken"}


def test_an_account_of_vertex_calls_claude_by_its_own_api(tmp_path: Path) -> None:
    key = {
        "value": "",
        "models": ["claude-sonnet-5", "google/gemini-2.5-pro"],
        "vertex_key_config": {"project_id": "p", "region": "global"},
    }
    made = table(tmp_path, {"providers": {"vertex": {"keys": [key]}}})
    assert made.table.snapshot.models["vertex-anthropic/claude-sonnet-5"].targets[0].profile.name == "vertex_anthropic"
    assert made.table.snapshot.models["vertex/google/gemini-2.5-pro"].targets[0].upstream_model == "gemini-2.5-pro"


def test_a_custom_provider_has_its_base_providers_api(tmp_path: Path) -> None:
    custom = {"base_provider_type": "openai", "allowed_requests": {"chat_completion": True}}
    provider = {
        "custom_provider_config": custom,
        "network_config": {
            "base_url": "https://llm.example.com",
            "extra_headers": {"X-Team": "a", "X-Key": "canary", "Host": "x"},
        },
        "keys": [{"value": {"value": "canary"}, "models": ["m"]}],
        "concurrency_and_buffer_size": {"concurrency": 5},
    }
    made = table(tmp_path, {"providers": {"mine": provider}})
    target = made.table.snapshot.models["mine/m"].targets[0]
    assert (target.profile.name, target.base_url) == ("openai", "https://llm.example.com/v1")
    assert "canary" not in made.text
    assert set(made.lost) == {
        "providers.mine.custom_provider_config.allowed_requests",
        *(f"providers.mine.network_config.extra_headers.{name}" for name in ("X-Team", "X-Key", "Host")),
        "providers.mine.concurrency_and_buffer_size",
        "providers.mine.keys.0.value",
    }


def test_the_clients_settings(tmp_path: Path) -> None:
    client = {
        "compat": {"should_drop_params": True, "other": 1},
        "max_request_body_size_mb": 5,
        "allowed_origins": ["*"],
    }
    made = table(tmp_path, {"client": client, "providers": {"openai": {"keys": [{"value": "env.K", "models": ["*"]}]}}})
    assert made.table.loaded.config.defaults.on_unsupported == "drop"
    assert made.table.loaded.config.server.max_body == 5_000_000
    assert set(made.lost) == {"client.compat.other", "client.allowed_origins"}


def test_values_that_bifrost_wrapped_are_what_they_stand_for(tmp_path: Path) -> None:
    key = {"value": {"value": "", "env_var": "env.MY_KEY", "from_env": True}, "models": ["*"]}
    url = {"value": "https://llm.example.com", "env_var": "", "from_env": False}
    made = table(tmp_path, {"providers": {"openai": {"keys": [key], "network_config": {"base_url": url}}}})
    assert made.draft.samples.keys() == {"MY_KEY"}
    assert made.table.snapshot.wildcards["openai"].targets[0].base_url == "https://llm.example.com/v1"
    assert made.losses == []
    root = section("a: {env_var: X}\nb: [{value: v, env_var: ''}, {value: v}]\n").node
    plain = ForeignSection(without_wrappers(root), (), Remarks(), [])  # type: ignore[arg-type]
    assert (plain.text("a"), plain.texts("b")) == ("env.X", ["v"])


def test_a_variable_is_the_whole_value() -> None:
    assert (variable_of("env.A"), variable_of("environment")) == ("A", None)


def test_names_of_deployments_are_taken_and_what_stands_beside_them_is_told(tmp_path: Path) -> None:
    azure = {"endpoint": "https://x.openai.azure.com", "deployments": {"gpt-4o": "prod"}}
    other = {"deployments": {"m": "n"}, "use_deployments_endpoint": True}
    keys = {"value": "env.K", "models": ["gpt-4o", "m"], "azure_key_config": azure, "replicate_key_config": other}
    made = table(tmp_path, {"providers": {"azure": {"keys": [keys]}}})
    assert [made.table.snapshot.models[f"azure/{name}"].targets[0].upstream_model for name in ("gpt-4o", "m")] == [
        "prod",
        "n",
    ]
    assert set(made.lost) == {"providers.azure.keys.0.replicate_key_config.use_deployments_endpoint"}


def test_a_provider_without_keys_serves_every_model_where_it_needs_none(tmp_path: Path) -> None:
    own = {"base_provider_type": "openai", "is_key_less": True}
    network = {"base_url": "http://llm:8000"}
    made = table(tmp_path, {"providers": {"mine": {"custom_provider_config": own, "network_config": network}}})
    assert made.reached("mine/m") == ["mine/m/default"]
    assert made.losses == []


def test_a_provider_without_keys_that_needs_one_is_told(tmp_path: Path) -> None:
    keys = {"keys": [{"value": "env.K", "models": ["m"]}]}
    assert set(table(tmp_path, {"providers": {"openai": keys, "groq": {"keys": []}}}).lost) == {"providers.groq"}
