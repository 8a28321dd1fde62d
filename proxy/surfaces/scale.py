"""Scale's GenAI Platform: completions and chat completions of its v4 beta and v5 APIs. Never another vendor's paths.

Sources: Scale GenAI Platform "v4 beta completions"; `scale-gp` 0.1.0a58 and a62, `scale-gp-beta` 0.7.0. Both request
schemas are accepted on both paths, because SDK versions send either to the same URL. No stream ends with `[DONE]`:
every Scale SDK parses each unnamed frame as JSON and raises on it. The two versions differ in what makes their SDKs
notice a broken stream.
"""

from providers.unified import Operation
from proxy.errors import ErrorFacts
from proxy.surfaces.draft import Rules
from proxy.surfaces.envelope import detail_body
from proxy.surfaces.fields import FIELDS
from proxy.surfaces.frames import FinishUsageFrames, Frames, Style, ascii_json, event
from proxy.surfaces.row import SurfaceRow, generation_endpoints


def broken_v5(frames: Frames, facts: ErrorFacts) -> bytes:
    """A chunk that says so; only the cut connection makes `scale-gp-beta` raise."""
    return frames.bare({"chunk_type": "error", "error": _error(facts)})


def broken_v4(frames: Frames, facts: ErrorFacts) -> bytes:
    """The same chunk, then the `error` event on which `scale-gp` raises."""
    return broken_v5(frames, facts) + b"event: error\n" + event(ascii_json({"error": _error(facts)}))


def _error(facts: ErrorFacts) -> dict[str, object]:
    return {"message": facts.message, "status_code": facts.status, "type": facts.type, "code": facts.code}


_DEFAULTS: dict[str, object] = {"context_length_exceeded_behavior": "error"}
_RULES = Rules(FIELDS, {Operation.COMPLETIONS: _DEFAULTS, Operation.CHAT: _DEFAULTS})
_KEY_HEADERS = ("x-api-key", "authorization", "api-key")

SCALE_V4 = SurfaceRow(
    name="scale",
    endpoints=generation_endpoints("/v4/beta"),
    prefixes=("/v4",),
    key_headers=_KEY_HEADERS,
    default_vendor=None,
    rules=_RULES,
    style=Style(b"", FinishUsageFrames, FinishUsageFrames, broken_v4, tool_finish="tool_calls"),
    validation_status=422,
    envelope=detail_body,
)

SCALE_V5 = SurfaceRow(
    name="scale",
    endpoints=generation_endpoints("/v5"),
    prefixes=("/v5",),
    key_headers=_KEY_HEADERS,
    default_vendor=None,
    rules=_RULES,
    style=Style(b"", FinishUsageFrames, FinishUsageFrames, broken_v5, tool_finish="stop"),
    validation_status=422,
    envelope=detail_body,
)
