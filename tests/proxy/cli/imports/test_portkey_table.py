"""Portkey's documented sample configurations: each becomes a valid one with the same routing and remarks on its
gaps.
"""

import json
from pathlib import Path

import pytest

from providers.profiles.load_profiles import load_profiles
from proxy.cli.imports.portkey_table import KEYLESS, PROFILES
from tests.proxy.cli.imports.kit import FIXTURES, Imported, fixture, imported
from tests.support.looped import looped

EVERY = sorted(path.name for path in (FIXTURES / "portkey").iterdir())
CLAUDE = "claude-sonnet-4-20250514"


def table(tmp_path: Path, config: object) -> Imported:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    return imported("portkey", path, "main")


def target(provider: str, model: str, **more: object) -> dict[str, object]:
    return {"provider": provider, "override_params": {"model": model}, **more}


def test_every_provider_has_a_profile_that_there_is() -> None:
    assert {*PROFILES.values(), *KEYLESS} <= load_profiles().keys()


@pytest.mark.parametrize("provider", [*PROFILES, "some-other"])
def test_a_target_with_nothing_but_its_provider_can_be_served(provider: str, tmp_path: Path) -> None:
    assert len(table(tmp_path, target(provider, "m")).reached("main")) == 1
    assert len(table(tmp_path, {"provider": provider}).reached("m")) == 1


@looped("name", EVERY)
def test_every_documented_config_is_a_table_that_can_be_served(name: str) -> None:
    made = fixture(f"portkey/{name}")
    assert made.table.snapshot.models or made.table.snapshot.wildcards


def test_fallback() -> None:
    made = fixture("portkey/fallback.json")
    assert made.reached("name") == ["openai-prod/gpt-4o/default", f"anthropic-prod/{CLAUDE}/default"]
    assert made.draft.samples.keys() == {"OPENAI_PROD_API_KEY", "ANTHROPIC_PROD_API_KEY"}
    assert made.losses == []


def test_load_balance_between_two_accounts_of_one_vendor() -> None:
    made = fixture("portkey/load_balance.json")
    model = made.table.snapshot.wildcards["name"]
    assert (model.policy, [(each.deployment, each.weight) for each in model.targets]) == (
        "weighted",
        [("openai-prod", 3), ("openai-backup", 1)],
    )
    assert set(made.reached("gpt-4o")) == {"name/gpt-4o/openai-prod", "name/gpt-4o/openai-backup"}


def test_nested() -> None:
    made = fixture("portkey/nested.json")
    assert made.table.snapshot.routes["name"].policy == "weighted"
    assert [member.name for member in made.table.snapshot.routes["name"].members] == ["openai-prod/gpt-4o", "name.2"]
    assert made.reached("name.2") == ["openai-backup/gpt-4o/default", f"anthropic-prod/{CLAUDE}/default"]
    assert set(made.lost) == {"targets.1.strategy.on_status_codes"}


def test_single_model() -> None:
    made = fixture("portkey/single_model.json")
    assert made.reached("name") == [f"anthropic-prod/{CLAUDE}/default"]
    assert set(made.lost) == {"override_params.max_tokens", "override_params.temperature"}


def test_targets_without_a_model_are_vendors() -> None:
    made = fixture("portkey/complete.json")
    assert made.reached("openai/gpt-4o") == ["openai/gpt-4o/default"]
    assert made.reached(f"anthropic/{CLAUDE}") == [f"anthropic/{CLAUDE}/default"]
    assert made.table.loaded.config.vendors["openai"].timeouts.total == 30.0
    assert made.table.loaded.config.vendors["openai"].retries.attempts == 4
    assert set(made.lost) == {
        "strategy.on_status_codes",
        "targets.0",
        "targets.0.api_key",
        "targets.0.cache",
        "targets.0.input_guardrails",
        "targets.0.retry.on_status_codes",
        "targets.1",
        "targets.1.api_key",
    }
    assert "# targets.1: leaves the model to the client" in made.text
    assert "sk-ant" not in made.text


def test_both_spellings_of_keys(tmp_path: Path) -> None:
    config = {"strategy": {"mode": "single"}, "targets": [{"virtualKey": "groq-1", "overrideParams": {"model": "m"}}]}
    made = table(tmp_path, {**config, "requestTimeout": 5000})
    assert made.reached("main") == ["groq-1/m/default"]
    assert made.table.snapshot.models["groq-1/m"].targets[0].profile.name == "groq"
    assert made.table.loaded.config.vendors["groq-1"].timeouts.total == 5.0
    twice = table(tmp_path, {"provider": "openai", "apiKey": "a-canary", "api_key": "b-canary"})
    assert twice.lost["api_key"].startswith(("is written in both", "a credential"))
    assert "canary" not in twice.text


def test_clouds(tmp_path: Path) -> None:
    azure = target("azure-openai", "gpt-4o", azureResourceName="r", azureDeploymentId="d", azureApiVersion="2025-01-01")
    bedrock = target("bedrock", "m", aws_region="eu-west-1", aws_secret_access_key="canary", aws_access_key_id="canary")
    vertex = target("vertex-ai", "claude-x", vertex_region="eu", vertex_service_account_json={"private_key": "canary"})
    own = target("openai", "m", custom_host="http://10.0.0.1:8000/v1")
    slug = {"override_params": {"model": "@prod-anthropic/claude-y"}}
    made = table(tmp_path, {"strategy": {"mode": "fallback"}, "targets": [azure, bedrock, vertex, own, slug]})
    models = made.table.snapshot.models
    assert (models["azure/gpt-4o"].targets[0].upstream_model, models["azure/gpt-4o"].targets[0].api_version) == (
        "d",
        "2025-01-01",
    )
    assert "eu-west-1" in models["bedrock/m"].targets[0].base_url
    assert models["vertex_anthropic/claude-x"].targets[0].profile.name == "vertex_anthropic"
    assert models["openai/m"].targets[0].base_url == "http://10.0.0.1:8000/v1"
    assert models["prod-anthropic/claude-y"].targets[0].profile.name == "anthropic"
    assert len(made.reached("main")) == 5
    assert "canary" not in made.text + "".join(map(str, made.losses))


def test_conditions_have_no_counterpart(tmp_path: Path) -> None:
    strategy = {"mode": "conditional", "conditions": [{"query": {}, "then": "a"}], "default": "b"}
    targets = [target("openai", "x", name="a"), target("groq", "y", name="b")]
    made = table(tmp_path, {"strategy": strategy, "targets": targets})
    assert made.reached("main") == ["groq/y/default", "openai/x/default"]
    assert set(made.lost) == {"strategy.mode", "strategy.conditions"}


@pytest.mark.parametrize("config", [{}, {"targets": [{"prompt_id": "x"}]}, {"targets": "x"}])
def test_a_config_that_calls_nobody_is_told(config: object, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**config, "cache": {"mode": "simple"}}), encoding="utf-8")  # type: ignore[dict-item]
    made = imported("portkey", path)
    assert made.losses
    assert not made.table.snapshot.models


def test_embedding_models_share_a_space_only_under_one_name(tmp_path: Path) -> None:
    same = [target("openai", "text-embedding-3-small"), target("azure-openai", "text-embedding-3-small")]
    other = target("voyage", "voyage-3.5")
    made = table(tmp_path, {"strategy": {"mode": "fallback"}, "targets": [*same, other]})
    assert made.reached("main") == [f"{name}/text-embedding-3-small/default" for name in ("openai", "azure")]
    assert made.table.loaded.config.routes["main"].same_space
    assert set(made.lost) == {"targets.0", "targets.2"}


def test_an_account_at_cloudflare(tmp_path: Path) -> None:
    made = table(tmp_path, target("workers-ai", "@cf/baai/bge-m3", workers_ai_account_id="a1"))
    assert made.table.loaded.config.vendors["cloudflare"].url_params == {"account_id": "a1"}
    (model,) = made.table.snapshot.models.values()
    assert model.targets[0].upstream_model == "@cf/baai/bge-m3"
    assert made.losses == []
