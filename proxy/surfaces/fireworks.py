"""Fireworks' API: completions and chat completions below `/inference`. Never another vendor's paths.

Sources: Fireworks "Create Completion" and "Inference error codes"; `fireworks-ai` 0.19.20, 1.2.28 and 1.2.30. Its
newer SDK appends `/v1/completions` to a base URL that already ends in `/v1`, hence the alias.
"""

from providers.unified import Operation
from proxy.errors import ErrorFacts
from proxy.surfaces.checks import integer
from proxy.surfaces.draft import Rules
from proxy.surfaces.envelope import fireworks_body, fireworks_error
from proxy.surfaces.fields import table
from proxy.surfaces.frames import DONE, FinishUsageFrames, Frames, Style, UsageFrames
from proxy.surfaces.row import SurfaceRow, generation_endpoints


def broken(frames: Frames, facts: ErrorFacts) -> bytes:
    """The error beside an answer without choices, which the strict 0.19 SDK can still parse."""
    return frames.bare({"error": fireworks_error(facts)})


_DEFAULTS: dict[str, object] = {"context_length_exceeded_behavior": "truncate"}

FIREWORKS = SurfaceRow(
    name="fireworks",
    endpoints=generation_endpoints("/inference/v1", "/inference/v1/v1"),
    prefixes=("/inference",),
    key_headers=("authorization", "x-api-key", "api-key"),
    default_vendor="fireworks",
    rules=Rules(
        table({"top_logprobs": integer(0, 5)}),
        {Operation.COMPLETIONS: _DEFAULTS, Operation.CHAT: _DEFAULTS},
    ),
    style=Style(DONE, FinishUsageFrames, UsageFrames, broken, tool_finish="stop"),
    validation_status=400,
    envelope=fireworks_body,
)
