"""OpenAI's API: legacy completions, chat completions, models, embeddings; also rerank.

Sources: OpenAI OpenAPI 2.3.0; `openai` 1.109.1, 2.54.0 and 3.52.0, whose `AzureOpenAI` names the model in the path of a
deployment and has the other paths below `/openai`, with an `api-version` that the gateway ignores; `openai` 0.28.1,
whose first API names the model in the path of an engine. The paths exist without `/v1` too, because clients put it into
the base URL or forget it. `/usage` is this gateway's own.
"""

from providers.unified_request import Operation, Task
from proxy.errors import ErrorFacts
from proxy.surfaces.completion_surface import CompletionSurface, generation_endpoints, models_endpoints, task_endpoints
from proxy.surfaces.request.field_rules import FIELDS
from proxy.surfaces.request.parse_state import SurfaceRules
from proxy.surfaces.response.error_body import error_object, openai_body
from proxy.surfaces.response.write_sse import DONE, AnswerStyle, SseWriter, UsageSseWriter, ascii_json, event
from proxy.surfaces.surface import AZURE, MODEL, Endpoint, ReadAction

LEGACY_MAX_TOKENS = 16
"""The completions endpoint's documented default."""


def broken(writer: SseWriter, facts: ErrorFacts) -> bytes:
    """Return the end of a broken stream: the SDK raises on any event with an `error` object."""
    return event(ascii_json({"error": error_object(facts)}))


OPENAI_STYLE = AnswerStyle(DONE, SseWriter, UsageSseWriter, broken, tool_finish="stop")

BASES = ("/v1", "", *AZURE)
"""The prefixes of the API's paths."""

ENGINES = (f"/engines/{MODEL}", f"/v1/engines/{MODEL}")
DEPLOYMENTS = f"/openai/deployments/{MODEL}"
"""Prefixes with the name of a model, which takes precedence over the model of the body."""

VECTORS = (
    *(Endpoint("POST", f"{base}/embeddings", Task.EMBEDDINGS) for base in (*BASES, *ENGINES, DEPLOYMENTS)),
    # Cohere's client adds /v2 by itself.
    *(Endpoint("POST", f"{base}/rerank", Task.RERANK) for base in ("/v1", "/v2", "")),
)
"""The endpoints of embeddings and rankings. Rerank is Cohere's and Jina's API."""

OPENAI = CompletionSurface(
    name="openai",
    endpoints=(
        *(*generation_endpoints(*BASES, *ENGINES, DEPLOYMENTS), *VECTORS),
        *(*task_endpoints(*BASES, DEPLOYMENTS), *models_endpoints(*BASES)),
        *(Endpoint("GET", f"{base}/usage", ReadAction.USAGE) for base in ("/v1", "")),
    ),
    prefixes=("/v1", "/openai"),
    key_headers=("authorization", "x-api-key", "api-key"),
    default_vendor=None,
    rules=SurfaceRules(
        FIELDS,
        {
            Operation.COMPLETIONS: {
                "max_tokens": LEGACY_MAX_TOKENS,
                "context_length_exceeded_behavior": "error",
            },
            Operation.CHAT: {"context_length_exceeded_behavior": "error"},
        },
        bare_zero_tokens=frozenset({Operation.COMPLETIONS}),
    ),
    style=OPENAI_STYLE,
    validation_status=400,
    envelope=openai_body,
)
