"""VMware Private AI Services: an OpenAI-compatible API with rules and errors of its own. Never another vendor's paths.

Source: Broadcom developer portal, "VMware Private AI Service API", 9.1.1 and the version before it. Streams are not
documented there and are OpenAI's here.
"""

from providers.unified import Operation
from proxy.surfaces.checks import integer
from proxy.surfaces.draft import Rules
from proxy.surfaces.envelope import detail_body
from proxy.surfaces.fields import some_stop, table
from proxy.surfaces.openai import OPENAI_STYLE
from proxy.surfaces.row import MODELS, SurfaceRow, generation_endpoints
from proxy.surfaces.surface import Endpoint

BASE = "/api/v1/compatibility/openai/v1"

PAIS = SurfaceRow(
    name="pais",
    endpoints=(*generation_endpoints(BASE), Endpoint("GET", f"{BASE}/models", MODELS)),
    prefixes=("/api/v1/compatibility/openai",),
    key_headers=("authorization", "x-api-key", "api-key"),
    default_vendor="pais",
    rules=Rules(
        table({"max_tokens": integer(1), "top_k": integer(1), "stop": some_stop}),
        {
            Operation.COMPLETIONS: {"temperature": 0, "context_length_exceeded_behavior": "error"},
            Operation.CHAT: {"context_length_exceeded_behavior": "error"},
        },
    ),
    style=OPENAI_STYLE,
    validation_status=422,
    envelope=detail_body,
)
