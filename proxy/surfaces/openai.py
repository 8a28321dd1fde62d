"""OpenAI's API: legacy completions, chat completions, models. Never another vendor's paths.

Sources: OpenAI OpenAPI 2.3.0; `openai` 1.109.1, 2.54.0 and 3.52.0. The paths exist without `/v1` too, because clients
put it into the base URL or forget it.
"""

from providers.unified import Operation
from proxy.errors import ErrorFacts
from proxy.surfaces.draft import Rules
from proxy.surfaces.envelope import error_object, openai_body
from proxy.surfaces.fields import FIELDS
from proxy.surfaces.frames import DONE, Frames, Style, UsageFrames, ascii_json, event
from proxy.surfaces.row import MODELS, SurfaceRow, generation_endpoints
from proxy.surfaces.surface import Endpoint

LEGACY_MAX_TOKENS = 16
"""The completions endpoint's documented default."""


def broken(frames: Frames, facts: ErrorFacts) -> bytes:
    """The SDK raises on any frame with an `error` object."""
    return event(ascii_json({"error": error_object(facts)}))


OPENAI_STYLE = Style(DONE, Frames, UsageFrames, broken, tool_finish="stop")

OPENAI = SurfaceRow(
    name="openai",
    endpoints=(
        *generation_endpoints("/v1", ""),
        Endpoint("GET", "/v1/models", MODELS),
        Endpoint("GET", "/models", MODELS),
    ),
    prefixes=("/v1",),
    key_headers=("authorization", "x-api-key", "api-key"),
    default_vendor=None,
    rules=Rules(
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
