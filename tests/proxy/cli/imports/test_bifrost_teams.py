"""Virtual keys become teams: digests, allow lists, providers' keys, and names without a provider."""

import hashlib
import json
from pathlib import Path

import pytest

from config.problem import ConfigError
from proxy.cli.imports import bifrost_teams
from tests.proxy.cli.imports.kit import Imported, fixture, imported

US, EU = "prod-assistant-us-key-01-configurations", "prod-assistant-eu-key-01-configurations"


def table(tmp_path: Path, *virtual_keys: object) -> Imported:
    def key(name: str, *models: str) -> dict[str, object]:
        return {"id": f"id-{name}", "name": name, "value": f"env.{name.upper()}", "models": [*models], "weight": 1}

    providers = {
        "openai": {"keys": [key("one", "gpt-4o", "gpt-4o-mini"), key("two", "gpt-4o")]},
        "groq": {"keys": [key("g", "*")]},
        "mistral": {"keys": [key("m", "gpt-4o")]},
    }
    path = tmp_path / "config.json"
    config = {"providers": providers, "governance": {"virtual_keys": [*virtual_keys]}}
    path.write_text(json.dumps(config), encoding="utf-8")
    return imported("bifrost", path)


def grant(provider: str, models: list[str], keys: list[str] | None = None, **more: object) -> dict[str, object]:
    return {"provider": provider, "allowed_models": models, "key_ids": ["*"] if keys is None else keys, **more}


def virtual_key(*grants: object, **more: object) -> dict[str, object]:
    return {"name": "search", "value": "sk-bf-1", "provider_configs": [*grants], **more}


def test_the_documented_virtual_keys() -> None:
    made = fixture("bifrost/virtual_keys.json")
    assert list(made.table.snapshot.teams) == [US, EU]
    assert made.reached("azure/gpt-4.1", US) == made.reached("gpt-4.1", US) == ["azure/gpt-4.1/azure-us-key-1-prod"]
    assert made.reached("gpt-4.1", EU) == ["azure/gpt-4.1/azure-eu-key-1-prod"]
    assert made.reached("openai/gpt-x", US) == ["openai/gpt-x/default"]
    assert made.reached("google/gemini-2.5-pro", EU) == ["vertex/google/gemini-2.5-pro/vertex-europe-west1-prod"]
    assert made.table.snapshot.teams[EU].allow == ("bedrock/*",)
    assert "governance.virtual_keys.0.value" in made.lost
    assert "governance.virtual_keys.1.provider_configs.1.key_ids" in made.lost


def test_a_key_that_is_written_out_becomes_its_digest(tmp_path: Path) -> None:
    made = table(tmp_path, virtual_key(grant("groq", ["*"])))
    digest = hashlib.sha256(b"sk-bf-1").hexdigest()
    assert made.table.snapshot.keys[digest].team.name == "search"
    assert "sk-bf-1" not in made.text


def test_a_team_may_ask_for_what_its_key_might(tmp_path: Path) -> None:
    made = table(tmp_path, virtual_key(grant("openai", ["gpt-4o"]), grant("groq", ["llama"])))
    assert made.table.snapshot.teams["search"].allow == ("openai/gpt-4o", "groq/llama")
    assert made.table.snapshot.teams["search"].routes.keys() == {"gpt-4o"}


def test_weights_between_providers_are_a_route_of_the_bare_name(tmp_path: Path) -> None:
    made = table(
        tmp_path, virtual_key(grant("openai", ["gpt-4o"], weight=0.75), grant("mistral", ["gpt-4o"], weight=0.25))
    )
    route = made.table.snapshot.teams["search"].routes["gpt-4o"]
    assert route.policy == "weighted"
    assert [(member.name, member.weight) for member in route.members] == [("openai/gpt-4o", 3), ("mistral/gpt-4o", 1)]


def test_keys_of_a_provider_are_held_by_deployment(tmp_path: Path) -> None:
    made = table(tmp_path, virtual_key(grant("openai", ["gpt-4o"], ["id-two"]), grant("groq", ["*"], ["gone"])))
    assert made.reached("openai/gpt-4o", "search") == made.reached("gpt-4o", "search") == ["openai/gpt-4o/two"]
    assert made.lost["governance.virtual_keys.0.provider_configs.1.key_ids"].startswith(
        "cannot be held for models of groq/*"
    )


def test_there_is_a_most_of_models_of_teams(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bifrost_teams, "MAX_GRANTS", 2)
    keys = [virtual_key(grant("openai", ["gpt-4o"])) for _ in range(3)]
    with pytest.raises(ConfigError, match="more than 2 models of teams"):
        table(tmp_path, *keys)


def test_what_grants_nothing_is_told(tmp_path: Path) -> None:
    made = table(
        tmp_path,
        virtual_key(grant("openai", ["gpt-4o"]), grant("gone", ["*"]), grant("groq", []), grant("mistral", ["other"])),
        virtual_key(grant("groq", ["*"]), is_active=False),
        {"name": "none"},
        virtual_key(grant("groq", ["*"]), value="env.V K", rate_limit_id="r"),
    )
    path = "governance.virtual_keys"
    assert set(made.lost) == {
        *(f"{path}.0.provider_configs.{each}" for each in (1, 2)),
        f"{path}.0.provider_configs.3.allowed_models",
        f"{path}.1",
        f"{path}.2",
        f"{path}.3.value",
        f"{path}.3.rate_limit_id",
    }
    assert list(made.table.snapshot.teams) == ["search", "search-2"]


def limited_table(tmp_path: Path, governance: dict[str, object]) -> Imported:
    path = tmp_path / "config.json"
    providers = {"openai": {"keys": [{"name": "one", "value": "env.ONE", "models": ["gpt-4o"], "weight": 1}]}}
    path.write_text(json.dumps({"providers": providers, "governance": governance}), encoding="utf-8")
    return imported("bifrost", path)


def test_a_keys_rate_limit_and_budget_are_those_of_its_team(tmp_path: Path) -> None:
    rate = {"token_max_limit": 50000, "token_reset_duration": "1h", "request_max_limit": 60}
    made = limited_table(
        tmp_path,
        {
            "budgets": [{"id": "b", "max_limit": 12.5, "reset_duration": "1M", "current_usage": 3}],
            "rate_limits": [{"id": "r", **rate, "request_reset_duration": "1m"}],
            "virtual_keys": [virtual_key(grant("openai", ["gpt-4o"]), budget_id="b", rate_limit_id="r")],
        },
    )
    team = made.table.loaded.config.teams["search"]
    assert [(each.key, each.amount) for each in team.limits.amounts()] == [
        ("requests_per_minute", 60),
        ("tokens_per_hour", 50000),
    ]
    assert [(each.usd, each.per) for each in team.budget] == [(12.5, "month")]
    assert "begins anew" in made.lost["governance.budgets.0.current_usage"]


def test_limits_and_budgets_of_other_periods_and_of_nobody_are_told(tmp_path: Path) -> None:
    made = limited_table(
        tmp_path,
        {
            "budgets": [{"id": "b", "max_limit": 5, "reset_duration": "1Y"}, {"id": "free", "max_limit": 5}],
            "rate_limits": [{"id": "r", "request_max_limit": 9, "request_reset_duration": "5m"}],
            "virtual_keys": [
                virtual_key(grant("openai", ["gpt-4o"]), budget_id="b", rate_limit_id="r"),
                virtual_key(grant("openai", ["gpt-4o"]), value="sk-bf-2", budget_id="gone", rate_limit_id="gone"),
            ],
        },
    )
    assert {
        "governance.budgets.0.max_limit",
        "governance.budgets.1",
        "governance.rate_limits.0.request_max_limit",
        "governance.virtual_keys.1.budget_id",
        "governance.virtual_keys.1.rate_limit_id",
    } <= set(made.lost)
    assert not made.table.loaded.config.teams["search"].limits.any


def test_one_embedding_model_of_two_providers_is_one_space(tmp_path: Path) -> None:
    name = "text-embedding-3-small"
    providers = {each: {"keys": [{"value": "env.K", "models": [name]}]} for each in ("openai", "vllm")}
    path = tmp_path / "config.json"
    keys = [virtual_key(grant("openai", [name]), grant("vllm", [name]))]
    path.write_text(json.dumps({"providers": providers, "governance": {"virtual_keys": keys}}), encoding="utf-8")
    made = imported("bifrost", path)
    assert made.table.loaded.config.teams["search"].routes[name].same_space
    assert "same_space" in made.lost["governance.virtual_keys.0"]
