"""The values of OpenTelemetry's conventions for generative AI: operations by their paths, providers by their profiles.

Source: the registry of semantic-conventions-genai (`gen_ai.operation.name`, `gen_ai.provider.name`), November 2026. A
name that the registry lacks stays unchanged.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from providers.target import Target
from providers.unified_request import Operation, Task
from proxy.surfaces.registry import PATHS
from proxy.surfaces.surface import Action, CountAction

OPERATIONS: Final[Mapping[Action, str]] = {
    Operation.CHAT: "chat",
    Operation.COMPLETIONS: "text_completion",
    Task.EMBEDDINGS: "embeddings",
    CountAction.TOKENS: "count_tokens",
    **{task: task.value for task in Task if task is not Task.EMBEDDINGS},
}

GENERATING: Final = frozenset({OPERATIONS[Operation.CHAT], OPERATIONS[Operation.COMPLETIONS]})
"""The operations that the conventions count as inference."""

OTHER_OPERATION: Final = "request"
"""The operation of requests that call no model: lists of models, stored responses, usage."""

PROVIDERS: Final[Mapping[str, str]] = {
    "azure": "azure.ai.openai",
    "azure_v1": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "bedrock_invoke": "aws.bedrock",
    "bedrock_anthropic": "aws.bedrock",
    "sagemaker": "aws.sagemaker",
    "sagemaker_tgi": "aws.sagemaker",
    "gemini": "gcp.gemini",
    "gemini_compat": "gcp.gemini",
    "vertex": "gcp.vertex_ai",
    "vertex_anthropic": "gcp.vertex_ai",
    "mistral": "mistral_ai",
    "xai": "x_ai",
    "watsonx": "ibm.watsonx.ai",
    "cohere_compat": "cohere",
    "moonshot": "moonshot_ai",
    "ollama_native": "ollama",
    "llamacpp_native": "llamacpp",
    "tgi_native": "tgi",
    "sglang_native": "sglang",
}
"""The names of providers by the name of the profile. For any other profile, its own name is the provider's name."""

_PORTS: Final = {"http": 80, "https": 443}


class CalledDeployment(NamedTuple):
    """The facts about a deployment in spans and metrics. `model` is the vendor's name of the model; it is empty if each
    request names its own model. Without an `address` (the built-in mock) nothing was called over a network."""

    provider: str
    model: str
    address: str
    port: int | None


UNKNOWN_DEPLOYMENT: Final = CalledDeployment("_OTHER", "", "", None)
"""The facts for a deployment that a reload has removed meanwhile."""


@dataclass(slots=True, eq=False)
class CalledDeployments:
    """The deployments of the current configuration by their labels."""

    by_label: Mapping[str, CalledDeployment] = field(default_factory=dict)

    def of(self, label: str) -> CalledDeployment:
        """Return the deployment of a label."""
        return self.by_label.get(label, UNKNOWN_DEPLOYMENT)


def called_deployments(targets: Iterable[Target]) -> Mapping[str, CalledDeployment]:
    """Return the deployments of a configuration by their labels."""
    return {target.label: _called(target) for target in targets}


def _called(target: Target) -> CalledDeployment:
    name, url = target.profile.name, urlsplit(target.base_url)
    model = "" if target.model_key.endswith("/*") else target.upstream_model
    if url.scheme not in _PORTS:
        return CalledDeployment(PROVIDERS.get(name, name), model, "", None)
    return CalledDeployment(PROVIDERS.get(name, name), model, url.hostname or "", url.port or _PORTS[url.scheme])


def operation_of(path: str, method: str) -> str:
    """Return the operation of a request for a path."""
    match = PATHS.get(path) or PATHS.get("/" + "/".join(filter(None, path.split("/"))))
    action = None if match is None else match.methods.get(method)
    return OTHER_OPERATION if action is None else OPERATIONS.get(action, OTHER_OPERATION)
