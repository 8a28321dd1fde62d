"""Scale's GenAI Platform: completions and chat completions of its v4 beta and v5 APIs.

Sources: Scale GenAI Platform "v4 beta completions"; `scale-gp` 0.1.0a58 and a62, `scale-gp-beta` 0.7.0. Both request
schemas are accepted on both paths, because SDK versions send either to the same URL. No stream ends with `[DONE]`:
every Scale SDK parses each unnamed event as JSON, and raises on it. The SDKs of the two versions detect a broken stream
in different ways.
"""

from dataclasses import replace

from providers.unified_request import Operation
from proxy.errors import ErrorFacts
from proxy.surfaces.completion_surface import CompletionSurface, generation_endpoints
from proxy.surfaces.request.field_rules import FIELDS
from proxy.surfaces.request.parse_state import SurfaceRules
from proxy.surfaces.response.error_body import detail_body
from proxy.surfaces.response.write_sse import AnswerStyle, FinishUsageSseWriter, SseWriter, ascii_json, event


def broken_v5(writer: SseWriter, facts: ErrorFacts) -> bytes:
    """Return an error chunk, which is only for people to read: `scale-gp-beta` raises because the connection is closed
    early, not because of the chunk."""
    return writer.bare({"chunk_type": "error", "error": _error(facts)})


def broken_v4(writer: SseWriter, facts: ErrorFacts) -> bytes:
    """Return the error chunk, then the `error` event on which `scale-gp` raises."""
    return broken_v5(writer, facts) + b"event: error\n" + event(ascii_json({"error": _error(facts)}))


def _error(facts: ErrorFacts) -> dict[str, object]:
    return {"message": facts.message, "status_code": facts.status, "type": facts.type, "code": facts.code}


_DEFAULTS: dict[str, object] = {"context_length_exceeded_behavior": "error"}

SCALE_V4 = CompletionSurface(
    name="scale",
    endpoints=generation_endpoints("/v4/beta"),
    prefixes=("/v4",),
    key_headers=("x-api-key", "authorization", "api-key"),
    default_vendor=None,
    rules=SurfaceRules(FIELDS, {Operation.COMPLETIONS: _DEFAULTS, Operation.CHAT: _DEFAULTS}),
    style=AnswerStyle(b"", FinishUsageSseWriter, FinishUsageSseWriter, broken_v4, tool_finish="tool_calls"),
    validation_status=422,
    envelope=detail_body,
)

SCALE_V5 = replace(
    SCALE_V4,
    endpoints=generation_endpoints("/v5"),
    prefixes=("/v5",),
    style=replace(SCALE_V4.style, broken=broken_v5, tool_finish="stop"),
)
