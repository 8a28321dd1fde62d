"""Deployments that refuse a request without `max_tokens`, or guess its limit, are reported where the setting is
missing."""

from pathlib import Path

import pytest

from config.load_config import load_text
from providers.profiles.load_profiles import load_profiles
from proxy.process.load_table import Source
from proxy.process.table_checks.check_max_tokens import needed_limits
from proxy.routing.snapshot import build_snapshot
from tests.support.looped import looped

ROOT = Path(__file__).resolve().parents[4]
EXAMPLES = sorted((ROOT / "config" / "examples").glob("*.yaml"))
ENVIRONMENT = {f"{name}_API_KEY": "x" for name in ("OPENAI", "ANTHROPIC", "FIREWORKS", "COHERE", "VOYAGE")} | {
    "AZURE_KEY": "y"
}


def warnings_of(text: str) -> list[str]:
    """Return the warnings of a configuration as `LINE:COL path`."""
    loaded = load_text(text, "t", {"K": "x"})
    found = needed_limits(loaded, build_snapshot(loaded))
    return [f"{problem.line}:{problem.column} {problem.path}" for problem in found]


HEAD = """\
version: 1
vendors:
  anthropic: {api_key: "${K}"}
  openai: {api_key: "${K}"}
models:
"""


@looped(
    ("model", "expected"),
    [
        ("anthropic/c:", ["6:3 models.anthropic/c.max_output_tokens"]),
        ("anthropic/claude-haiku-4-5: ", []),
        ("anthropic/*: {}", []),
        ("anthropic/c: {upstream_model: claude-opus-4-5-20251101}", []),
        ("anthropic/claude-opus-4-5: {upstream_model: ours}", []),
        ("anthropic/c: {max_output_tokens: 8k}", []),
        ("openai/m: {}", []),
        ("anthropic/c: {deployments: {a: , b: }}", ["6:3 models.anthropic/c.max_output_tokens"]),
        (
            "anthropic/c: {deployments: {a: {max_output_tokens: 1}, b: }}",
            ["6:58 models.anthropic/c.deployments.b.max_output_tokens"],
        ),
    ],
)
def test_the_number_is_missed_where_it_would_be_written(model: str, expected: list[str]) -> None:
    assert warnings_of(f"{HEAD}  {model}\n") == expected


@pytest.mark.parametrize("level", ["defaults: {max_output_tokens: 4k}", ""])
def test_a_number_that_is_inherited_counts(level: str) -> None:
    assert (warnings_of(f"{HEAD}  anthropic/c:\n{level}\n") == []) == bool(level)
    assert warnings_of(HEAD.replace('"${K}"}', '"${K}", max_output_tokens: 4k}', 1) + "  anthropic/c:\n") == []


def test_the_profiles_whose_vendors_must_be_told_are_known_by_what_they_do() -> None:
    told_numbers = ("anthropic", "anthropic_vertex", "bedrock_anthropic", "triton", "llm_engine")
    hosts = {name: profile for name, profile in load_profiles().items() if profile.dialect in told_numbers}
    vendors = "".join(f"  {name}: {{base_url: 'https://h.example/v1', api_key: '${{K}}'}}\n" for name in hosts)
    models = "".join(f"  {name}/m:\n" for name in hosts)
    assert len(warnings_of(f"version: 1\nvendors:\n{vendors}models:\n{models}")) == len(hosts) > 1


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_no_example_refuses_a_client_without_max_tokens(path: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("x")
    text = path.read_text(encoding="utf-8").replace("/run/secrets/anthropic", str(secret))
    loaded = load_text(text, str(path), {**ENVIRONMENT, "PAIS_CLIENT_SECRET": "z"})
    assert needed_limits(loaded, build_snapshot(loaded)) == ()


def test_check_and_serve_warn_with_what_to_write(tmp_path: Path) -> None:
    table = tmp_path / "t.yaml"
    table.write_text(f"{HEAD}  anthropic/c:\n", encoding="utf-8")
    (warning,) = Source(table, {"K": "x"}).load_to_serve().warnings
    assert str(warning) == (
        f"{table}:6:3 models.anthropic/c.max_output_tokens: requests without max_tokens get 16384 tokens at most here: "
        "the profile 'anthropic' requires a number, and the limit of the model 'c' is unknown; set max_output_tokens"
    )


def test_a_vendor_whose_every_model_needs_a_number_is_said_to_refuse() -> None:
    text = "version: 1\nvendors:\n  t: {profile: triton, base_url: 'https://h.example'}\nmodels:\n  t/m:\n"
    loaded = load_text(text, "t", {})
    (warning,) = needed_limits(loaded, build_snapshot(loaded))
    assert str(warning) == (
        "t:5:3 models.t/m.max_output_tokens: requests without max_tokens are refused here: the profile 'triton' "
        "requires a limit on the tokens of a response; set max_output_tokens"
    )


def test_deployments_of_known_and_unknown_models_are_told_apart() -> None:
    both = "anthropic/ours: {deployments: {a: {upstream_model: claude-sonnet-4-5}, b: {upstream_model: new}}}"
    assert warnings_of(f"{HEAD}  {both}\n") == ["6:74 models.anthropic/ours.deployments.b.max_output_tokens"]
