"""VMware Private AI Services: an OpenAI-compatible API with its own rules and errors.

Source: Broadcom developer portal, "VMware Private AI Service API", 9.1.1 and the version before it. The source does not
document streams, so streams have OpenAI's form here.
"""

from providers.unified_request import Operation
from proxy.surfaces.completion_surface import CompletionSurface, generation_endpoints, models_endpoints
from proxy.surfaces.openai import OPENAI_STYLE
from proxy.surfaces.request.field_rules import fields_with, some_stop
from proxy.surfaces.request.parse_state import SurfaceRules
from proxy.surfaces.request.rule_kinds import integer
from proxy.surfaces.response.error_body import detail_body

BASE = "/api/v1/compatibility/openai/v1"

PAIS = CompletionSurface(
    name="pais",
    endpoints=(*generation_endpoints(BASE), *models_endpoints(BASE)),
    prefixes=("/api/v1/compatibility/openai",),
    key_headers=("authorization", "x-api-key", "api-key"),
    default_vendor="pais",
    rules=SurfaceRules(
        fields_with({"max_tokens": integer(1), "top_k": integer(1), "stop": some_stop}),
        {
            Operation.COMPLETIONS: {"temperature": 0, "context_length_exceeded_behavior": "error"},
            Operation.CHAT: {"context_length_exceeded_behavior": "error"},
        },
    ),
    style=OPENAI_STYLE,
    validation_status=422,
    envelope=detail_body,
)
