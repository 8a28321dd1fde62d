"""Single entries of LiteLLM's `model_list`: provider, account, prices, and settings that cannot be imported."""

from pathlib import Path

import pytest

from config.sections.price_section import PriceSection
from providers.profiles.load_profiles import load_profiles
from proxy.cli.imports.litellm.deployments import KEYLESS, NAMES, PROFILES
from tests.proxy.cli.imports.kit import Imported, imported
from tests.support.looped import looped


def entry(tmp_path: Path, params: str, rest: str = "") -> Imported:
    """Return the configuration that is imported from one entry named `m`."""
    path = tmp_path / "config.yaml"
    path.write_text(f"model_list:\n- model_name: m\n  litellm_params: {{{params}}}\n{rest}", encoding="utf-8")
    return imported("litellm", path)


def test_every_provider_has_a_profile_that_there_is() -> None:
    assert {*PROFILES.values(), *KEYLESS, *NAMES} <= load_profiles().keys()


@pytest.mark.parametrize("provider", PROFILES)
def test_an_entry_with_nothing_but_its_model_can_be_served(provider: str, tmp_path: Path) -> None:
    made = entry(tmp_path, f"model: {provider}/some-model")
    assert len(made.reached("m")) == 1


@pytest.mark.parametrize(
    ("params", "name", "upstream"),
    [
        ("model: openai/gpt-4o", "openai/gpt-4o", "gpt-4o"),
        ("model: gpt-4o", "openai/gpt-4o", "gpt-4o"),
        ("model: claude-x", "anthropic/claude-x", "claude-x"),
        ("model: x, custom_llm_provider: groq", "groq/x", "x"),
        ("model: vertex_ai/claude-sonnet-4-5@20250929", "vertex_anthropic/claude-sonnet-4-5@20250929", None),
        ("model: bedrock/converse/us.amazon.nova", "bedrock/us.amazon.nova", None),
        ("model: azure/o_series/prod, api_base: 'https://x.openai.azure.com'", "azure/prod", "prod"),
        ("model: openai/m, api_base: 'https://api.openai.com/v1'", "openai/m", None),
        ("model: openai/m, api_base: 'https://llm.example.com/v1'", "llm-example/m", None),
        ("model: openai/m, api_base: os.environ/MY_API_BASE", "my/m", None),
        ("model: openai/m, base_url: 'https://llm.example.com/v1'", "llm-example/m", None),
        ("model: 'openai/my model'", "openai/my-model", "my model"),
        ("model: ollama/llama3", "ollama/llama3", None),
    ],
)
def test_an_entry_becomes_a_model(params: str, name: str, upstream: str | None, tmp_path: Path) -> None:
    made = entry(tmp_path, params)
    (model,) = made.table.snapshot.models.values()
    assert model.name == name
    assert model.targets[0].upstream_model == (upstream or name.partition("/")[2])
    assert made.reached("m") == [f"{name}/default"]


@pytest.mark.parametrize(
    ("model", "base", "written"),
    [
        ("anthropic/m", "https://llm.example.com/v1/messages", "https://llm.example.com"),
        ("azure/d", "https://x.openai.azure.com/openai/deployments/d/", "https://x.openai.azure.com"),
        ("huggingface/org/m", "https://tgi.example.com", "https://tgi.example.com/v1"),
    ],
)
def test_an_address_ends_where_the_profiles_ends(model: str, base: str, written: str, tmp_path: Path) -> None:
    made = entry(tmp_path, f"model: {model}, api_base: '{base}'")
    (found,) = made.table.snapshot.models.values()
    assert found.targets[0].base_url == written


def test_all_settings_of_an_entry(tmp_path: Path) -> None:
    made = entry(
        tmp_path,
        "model: openai/gpt-4o, api_key: os.environ/K, timeout: 30, stream_timeout: 5, num_retries: 2, "
        "drop_params: true, input_cost_per_token: 0.00000015, output_cost_per_token: 6e-7, organization: org-1, "
        "cache_read_input_token_cost: 7.5e-8, cache_creation_input_token_cost: 1e-6, "
        "extra_headers: {User-Agent: a, X-Api-Token: os.environ/T}",
        "  model_info: {max_input_tokens: 128000, max_tokens: 16384}\n",
    )
    section = made.table.loaded.config.models["openai/gpt-4o"]
    assert isinstance(section.price, PriceSection)
    assert (section.price.input, section.price.output, section.price.cached_input) == (0.15, 0.6, 0.075)
    assert section.price.cache_write == 1
    assert (section.context_window, section.max_output_tokens) == (128000, 16384)
    vendor = made.table.loaded.config.vendors["openai"]
    assert (vendor.timeouts.total, vendor.timeouts.first_event, vendor.retries.attempts) == (30.0, 5.0, 3)
    assert section.on_unsupported == "drop"
    assert {name: value.get_secret_value() for name, value in vendor.headers.items()} == {
        "OpenAI-Organization": "org-1",
        "User-Agent": "a",
        "X-Api-Token": "sample",
    }
    assert made.losses == []


def test_clouds(tmp_path: Path) -> None:
    made = entry(
        tmp_path,
        "model: bedrock/m, aws_region_name: eu-west-1, aws_role_name: 'arn:aws:iam::123456789012:role/r', "
        "aws_access_key_id: AKIACANARY",
    )
    vendor = made.table.loaded.config.vendors["bedrock"]
    assert vendor.url_params == {"region": "eu-west-1"}
    assert vendor.credentials is not None
    assert vendor.credentials.aws is not None
    assert vendor.credentials.aws.role_arn == "arn:aws:iam::123456789012:role/r"
    assert "AKIACANARY" not in made.text
    made = entry(tmp_path, "model: vertex_ai/gemini-x, vertex_project: p, vertex_credentials: '{\"private_key\": 1}'")
    assert made.table.loaded.config.vendors["vertex"].url_params["project"] == "p"
    assert "private_key" not in made.text
    made = entry(
        tmp_path,
        "model: azure/d, api_base: 'https://x.openai.azure.com', tenant_id: t-1, client_id: c, client_secret: s-canary",
    )
    credentials = made.table.loaded.config.vendors["azure"].credentials
    assert credentials is not None
    assert credentials.oidc is not None
    assert credentials.oidc.token_url == "https://login.microsoftonline.com/t-1/oauth2/v2.0/token"
    assert "s-canary" not in made.text


@pytest.mark.parametrize(
    ("params", "path"),
    [
        ("model: mistralai/mistral-7b", "model_list.0"),
        ("model: azure/", "model_list.0"),
        ("model: '*'", "model_list.0"),
        ("model: openai/*", "model_list.0"),
        ("model: [x]", "model_list.0.litellm_params.model"),
        ("api_key: x", "model_list.0"),
    ],
)
def test_an_entry_that_cannot_be_taken_is_told_in_summary_and_table(params: str, path: str, tmp_path: Path) -> None:
    rest = "- {model_name: good, litellm_params: {model: openai/x}}\n"
    made = entry(tmp_path, params, rest)
    assert path in made.lost
    assert f"# {path}: " in made.text
    assert list(made.table.snapshot.models) == ["openai/x"]


@pytest.mark.parametrize(
    ("params", "info", "profile", "base"),
    [
        ("model: voyage/voyage-3.5, api_base: 'https://v.example.com/v1/embeddings'", "", "voyage", "/v1"),
        ("model: jina_ai/jina-reranker-m0, api_base: 'https://v.example.com/v1/rerank'", "mode: rerank", "jina", "/v1"),
        ("model: huggingface/BAAI/bge-m3, api_base: 'https://v.example.com/embed'", "mode: embedding", "tei", ""),
        ("model: huggingface/BAAI/r, api_base: 'https://v.example.com'", "mode: rerank", "tei", ""),
        ("model: huggingface/org/m, api_base: 'https://v.example.com'", "mode: chat", "tgi", "/v1"),
        ("model: infinity/m, api_base: 'https://v.example.com'", "", "openai_compatible", ""),
    ],
)
def test_what_does_not_chat_has_a_profile(params: str, info: str, profile: str, base: str, tmp_path: Path) -> None:
    made = entry(tmp_path, params, f"  model_info: {{{info}}}\n")
    (model,) = made.table.snapshot.models.values()
    assert (model.targets[0].profile.name, model.targets[0].base_url) == (profile, f"https://v.example.com{base}")
    assert made.losses == []


def test_what_embedded_texts_are_for_is_written_at_the_model(tmp_path: Path) -> None:
    made = entry(tmp_path, "model: cohere/embed-v4.0, input_type: search_document")
    assert made.table.loaded.config.models["cohere/embed-v4.0"].input_type == "search_document"
    assert made.losses == []
    assert "model_list.0.litellm_params.input_type" in entry(tmp_path, "model: cohere/embed-v4.0, input_type: [a]").lost


@pytest.mark.parametrize(
    ("params", "info", "path"),
    [
        ("model: deepgram/nova-2, api_base: 'https://v.example.com'", "", "model_list.0"),
        ("model: anthropic/m", "mode: embedding", "model_list.0"),
        ("model: azure_ai/m, api_base: 'https://v.example.com'", "", "model_list.0"),
        ("model: openai/m", "mode: realtime", "model_list.0.model_info.mode"),
    ],
)
def test_a_guess_and_what_a_vendor_does_not_have_are_told(params: str, info: str, path: str, tmp_path: Path) -> None:
    assert set(entry(tmp_path, params, f"  model_info: {{{info}}}\n").lost) == {path}


@looped(
    ("base", "written"),
    [("gpt-4o", "gpt-4o"), ("azure/gpt-4o", "azure/gpt-4o"), ("gemini/gemini-3-pro", "gemini/gemini-3-pro")],
)
def test_a_base_model_is_the_deployment_s(base: str, written: str, tmp_path: Path) -> None:
    made = entry(
        tmp_path,
        "model: azure/prod, api_base: 'https://acme.openai.azure.com', api_key: os.environ/K",
        f"  model_info: {{base_model: {base}}}\n",
    )
    assert made.table.loaded.config.models["azure/prod"].base_model == written
    assert made.losses == []


def test_what_generates_nothing_needs_no_price_of_what_is_generated(tmp_path: Path) -> None:
    made = entry(tmp_path, "model: openai/text-embedding-3-small, input_cost_per_token: 2e-8")
    price = made.table.loaded.config.models["openai/text-embedding-3-small"].price
    assert isinstance(price, PriceSection)
    assert (price.input, price.output) == (0.02, 0.0)
    assert made.losses == []


def test_half_a_price_is_none(tmp_path: Path) -> None:
    made = entry(tmp_path, "model: openai/x, input_cost_per_token: 0.1, cache_read_input_token_cost: 5")
    assert "price" not in made.text.replace("a price needs", "")
    assert made.lost["model_list.0.litellm_params.input_cost_per_token"].startswith("a price needs both")


@pytest.mark.parametrize(
    ("params", "base"),
    [
        ("api_base: 'https://w.example.com', project_id: p", "https://w.example.com/projects/p"),
        ("api_base: os.environ/W, space_id: os.environ/S", "https://sample.example.com/spaces/sample"),
        ("api_key: os.environ/K", "https://us-south.ml.cloud.ibm.com/projects/sample"),
    ],
)
def test_the_project_of_watsonx_ends_its_address(params: str, base: str, tmp_path: Path) -> None:
    made = entry(tmp_path, f"model: watsonx/ibm/granite, {params}")
    (model,) = made.table.snapshot.models.values()
    assert model.targets[0].base_url == base
    assert made.losses == []


def test_limits_of_a_deployment_and_its_weight(tmp_path: Path) -> None:
    more = "- {model_name: m, rpm: 20, litellm_params: {model: openai/x, api_key: os.environ/B, tpm: 9000}}\n"
    made = entry(tmp_path, "model: openai/x, api_key: os.environ/A, rpm: 10, tpm: 4000, max_parallel_requests: 2", more)
    model = made.table.loaded.config.models["openai/x"]
    limits = [each.limits for each in model.deployments.values()]
    assert [(each.requests_per_minute, each.tokens_per_minute, each.concurrent) for each in limits] == [
        (10, 4000, 2),
        (20, 9000, None),
    ]
    assert [each.weight for each in model.deployments.values()] == [10, 20]
    assert made.losses == []
    same = "- {model_name: m, litellm_params: {model: openai/x, api_key: os.environ/B, rpm: 10}}\n"
    made = entry(tmp_path, "model: openai/x, api_key: os.environ/A, rpm: 10", same)
    model = made.table.loaded.config.models["openai/x"]
    assert model.limits.requests_per_minute is None
    assert [each.limits.requests_per_minute for each in model.deployments.values()] == [10, 10]
    made = entry(tmp_path, "model: openai/x, rpm: 0, cooldown_time: 9, aws_region_name: eu")
    assert set(made.lost) == {"model_list.0.litellm_params.rpm", "model_list.0.litellm_params.aws_region_name"}
    assert made.table.loaded.config.models["openai/x"].circuit_breaker.cooldown == 9
