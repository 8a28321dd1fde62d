"""The conventions' words for operations and providers."""

from providers.profiles.load_profiles import load_profiles
from proxy.tracing.semantic_conventions import (
    PROVIDERS,
    UNKNOWN_DEPLOYMENT,
    CalledDeployments,
    called_deployments,
    operation_of,
)
from tests.proxy.kit.tables import snapshot
from tests.support.looped import looped

TABLE = """\
vendors:
  eu: {profile: azure, url_params: {resource: r}, api_key: k}
  local: {profile: vllm, base_url: "http://10.0.0.1:8000/v1", allow_private: true}
  mock: {}
models:
  eu/gpt: {deployments: {one: {upstream_model: prod}}}
  local/*: {}
  mock/echo: {}
"""


@looped(
    ("path", "method", "operation"),
    [
        ("/v1/chat/completions", "POST", "chat"),
        ("//v1//chat/completions/", "POST", "chat"),
        ("/v1/completions", "POST", "text_completion"),
        ("/v1/messages", "POST", "chat"),
        ("/v1/messages/count_tokens", "POST", "count_tokens"),
        ("/v1/embeddings", "POST", "embeddings"),
        ("/v1/audio/speech", "POST", "speech"),
        ("/v1/models", "GET", "request"),
        ("/v1/chat/completions", "GET", "request"),
        ("/nowhere", "POST", "request"),
    ],
)
def test_a_path_has_the_operation_of_its_action(path: str, method: str, operation: str) -> None:
    assert operation_of(path, method) == operation


def test_the_table_of_providers_names_profiles_that_there_are() -> None:
    assert PROVIDERS.keys() <= load_profiles().keys()


def test_deployments_are_told_with_their_address_and_the_vendors_name_of_the_model() -> None:
    called = CalledDeployments(called_deployments(snapshot(TABLE).targets()))
    azure, local, mock = called.of("eu/gpt/one"), called.of("local/*/default"), called.of("mock/echo/default")
    assert (azure.provider, azure.model, azure.port) == ("azure.ai.openai", "prod", 443)
    assert azure.address.endswith(".azure.com")
    assert (local.provider, local.model, local.address, local.port) == ("vllm", "", "10.0.0.1", 8000)
    assert (mock.address, mock.port) == ("", None)
    assert called.of("gone/m/one") is UNKNOWN_DEPLOYMENT
