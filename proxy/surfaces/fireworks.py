"""Fireworks' API: completions and chat completions below `/inference`.

Sources: Fireworks "Create Completion" and "Inference error codes"; `fireworks-ai` 0.19.20, 1.2.28 and 1.2.30.
Fireworks' newer SDK appends `/v1/completions` to a base URL that already ends in `/v1`, so there is an alias for the
resulting path.
"""

from providers.unified_request import Operation
from proxy.errors import ErrorFacts
from proxy.surfaces.completion_surface import CompletionSurface, generation_endpoints
from proxy.surfaces.request.field_rules import fields_with
from proxy.surfaces.request.parse_state import SurfaceRules
from proxy.surfaces.request.rule_kinds import integer
from proxy.surfaces.response.error_body import fireworks_body, fireworks_error
from proxy.surfaces.response.write_sse import DONE, AnswerStyle, FinishUsageSseWriter, SseWriter, UsageSseWriter


def broken(writer: SseWriter, facts: ErrorFacts) -> bytes:
    """Return the end of a broken stream: the error in a chunk without choices, a form that the strict 0.19 SDK can
    parse."""
    return writer.bare({"error": fireworks_error(facts)})


_DEFAULTS: dict[str, object] = {"context_length_exceeded_behavior": "truncate"}

FIREWORKS = CompletionSurface(
    name="fireworks",
    endpoints=generation_endpoints("/inference/v1", "/inference/v1/v1"),
    prefixes=("/inference",),
    key_headers=("authorization", "x-api-key", "api-key"),
    default_vendor="fireworks",
    rules=SurfaceRules(
        fields_with({"top_logprobs": integer(0, 5)}),
        {Operation.COMPLETIONS: _DEFAULTS, Operation.CHAT: _DEFAULTS},
    ),
    style=AnswerStyle(DONE, FinishUsageSseWriter, UsageSseWriter, broken, tool_finish="stop"),
    validation_status=400,
    envelope=fireworks_body,
)
