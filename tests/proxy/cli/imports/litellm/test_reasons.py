"""Every key of LiteLLM's documented schema is imported, or has a remark that names this gateway's counterpart."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from proxy.cli.imports.foreign_section import NO_COUNTERPART
from proxy.cli.imports.litellm.database_files import Exports
from proxy.cli.imports.litellm.reasons import KNOWN_VERSION, reason_in
from proxy.cli.imports.litellm.row_remarks import METADATA, ROWS
from tests.proxy.cli.imports.kit import FIXTURES, Imported, imported
from tests.proxy.cli.imports.litellm.kit import written
from tests.support.looped import looped

SCHEMA: Final[Mapping[str, Any]] = json.loads((FIXTURES / "litellm_schema.json").read_text(encoding="utf-8"))
UNKNOWN: Final = reason_in("general_settings")("no-such-key").text

ENTRY: Final = {"model_name": "a", "litellm_params": {"model": "openai/x"}}
VALUES: Final[Mapping[str, object]] = {
    **dict.fromkeys(("model", "base_model"), "openai/x"),
    **{"model_info": {}, "litellm_params": {"model": "openai/x"}, "model_name": "a", "custom_llm_provider": "openai"},
    **{"fallbacks": [{"a": ["b"]}], "context_window_fallbacks": [{"a": ["b"]}], "cache": True, "mode": "default_off"},
    **{"content_policy_fallbacks": [{"a": ["b"]}], "default_fallbacks": ["b"], "model_group_alias": {"c": "a"}},
    **{"routing_strategy": "least-busy", "completion_model": "a", "timezone": "Europe/Berlin", "type": "redis"},
    **{"host": "redis.internal", "redis_host": "redis.internal", "litellm_credential_name": "none", "port": 1},
    **{"redis_url": "os.environ/R", "api_base": "https://a.example.com", "extra_headers": {"User-Agent": "a"}},
    **{"cache_params": {"ttl": 60}, "input_cost_per_token": 1e-6, "output_cost_per_token": 1e-6, "tags": ["a"]},
}
"""Sample values; every other key has 3."""

SILENT: Final[Mapping[str, frozenset[str]]] = {
    "config": frozenset({"general_settings", "litellm_settings", "router_settings", "credential_list", "model_list"}),
    # These keys only have an effect together with another key, whose remark or value covers them.
    "router_settings": frozenset({"redis_password", "redis_port", "max_fallbacks"}),
    "cache_params": frozenset({"port", "password", "type"}),
    "litellm_params": frozenset({"custom_llm_provider", "model"}),
    "model_info": frozenset({"access_groups", "blocked", "team_id", "team_public_model_name", "mode", "id"}),
}


WITHOUT: Final[dict[str, list[str]]] = {}
"""The lines of the imported configuration without the tested key, by section."""


def lines(made: Imported) -> list[str]:
    """Return the lines of a configuration without its comments."""
    return [line for line in made.text.splitlines() if not line.lstrip().startswith("#")]


def document(section: str, key: str, value: object) -> dict[str, Any]:
    """Return a configuration that has only three models, two of them with one name, and one key of one section."""
    first = {**ENTRY, "model_info": {}}
    others = [{"model_name": name, "litellm_params": {"model": f"openai/{name}2"}} for name in "ab"]
    tree: dict[str, Any] = {"model_list": [first, *others]}
    if section == "config":
        tree.setdefault(key, {"x": "y"} if key == "environment_variables" else [{"x": "y"}])
    elif section == "litellm_params":
        first["litellm_params"] = {"model": "openai/x", key: value}
    elif section == "model_info":
        first["model_info"] = {key: value}
    elif section == "cache_params":
        tree["litellm_settings"] = {"cache": True, "cache_params": {"type": "redis", key: value}}
    else:
        tree[section] = {key: value, **({"cache": True} if key == "cache_params" else {})}
    return tree


ROWS_OF_SCHEMA = [
    (section, key)
    for section in ("config", "general_settings", "router_settings", "litellm_settings", "cache_params")
    for key in SCHEMA[section]
] + [(section, key) for section in ("litellm_params", "model_info") for key in SCHEMA[section]]


@pytest.mark.thorough
@looped(("section", "key"), ROWS_OF_SCHEMA)
def test_each_key_is_in_the_table_or_in_a_remark(section: str, key: str, tmp_path: Path) -> None:
    if key in SILENT.get(section, ()):
        return
    path = tmp_path / "config.json"
    if section not in WITHOUT:
        WITHOUT[section] = lines(imported("litellm", written(path, document(section, "nothing", None))))
    made = imported("litellm", written(path, document(section, key, VALUES.get(key, 3))))
    told = [reason for place, reason in made.lost.items() if place.endswith(key) or f".{key}." in f".{place}."]
    assert told or lines(made) != WITHOUT[section], "neither in the table nor in a remark"
    assert not [reason for reason in told if reason in (NO_COUNTERPART, UNKNOWN)], told


@pytest.mark.thorough
@looped(("section", "key"), [(section, key) for section in ("key", "key_view", "team") for key in SCHEMA[section]])
def test_each_field_of_a_key_and_team_is_read_or_in_a_remark(section: str, key: str, tmp_path: Path) -> None:
    config = written(tmp_path / "config.json", {"model_list": [ENTRY]})
    field = {"metadata": {"k": "v"}, "expires": "2099-01-01T00:00:00Z", "models": ["a"], "blocked": True}.get(key, "3")
    team = {"team_id": "t", "team_alias": "t", **({key: field} if section == "team" else {})}
    one = {"token": "0" * 64, "key_alias": "k", "team_id": "t", **({key: field} if section != "team" else {})}
    files = written(tmp_path / "keys.json", {"keys": [one]}), written(tmp_path / "teams.json", [team])
    made = imported("litellm", config, exports=Exports(*((file,) for file in files)))
    told = [
        problem for problem in made.losses if key in problem.message.partition(":")[0] or problem.path.endswith(key)
    ]
    read = {"models", "metadata", "blocked", "expires", "team_id", "team_alias", "key_alias", "token", "keys"}
    read |= {
        "rpm_limit",
        "tpm_limit",
        "tpd_limit",
        "max_parallel_requests",
        "max_budget",
        "soft_budget",
        "budget_limits",
    }
    read |= {"budget_duration", "aliases", "litellm_model_table", "litellm_budget_table"}
    assert told or key in read, made.losses
    assert not [problem for problem in told if UNKNOWN in problem.message], [*map(str, told)]


def test_the_list_is_of_the_version_that_reasons_are_for() -> None:
    assert SCHEMA["version"] == KNOWN_VERSION
    assert ROWS
    assert METADATA


def test_a_limit_of_the_response_names_the_setting_that_is_like_it() -> None:
    for key in ("max_tokens", "max_completion_tokens"):
        assert "max_output_tokens" in reason_in("litellm_params")(key).text
