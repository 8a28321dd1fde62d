"""Requests that have ended, as the gateway hands them over."""

from providers.completion import Usage
from proxy.request_record import Attempt, RequestRecord
from proxy.trace_context import SAMPLED, SampledTrace
from proxy.tracing.semantic_conventions import CalledDeployment, CalledDeployments
from proxy.tracing.span_values import FinishedRequest

OFFSET = 1_800_000_000.0
LABEL = "v/m/one"
CALLED = CalledDeployments({LABEL: CalledDeployment("openai", "gpt", "api.openai.com", 443)})


def record(**fields: object) -> RequestRecord:
    """Return a good chat of two seconds, with these fields changed."""
    made = RequestRecord("req-1", 1.0, "openai", "/v1/chat/completions", "10.0.0.9", team="search", model="v/m")
    made.asked, made.status, made.finished, made.usage = "v/m", 200, 3.0, Usage(10, 20)
    made.attempts = [Attempt(LABEL, 1.25, 2.75, name=LABEL)]
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def trace(flags: int = SAMPLED, **fields: object) -> SampledTrace:
    """Return a sampled trace below a caller's span."""
    made = SampledTrace(f"{0xABC:032x}", 0x10, 0x99, flags, method="POST")
    for name, value in fields.items():
        setattr(made if name in ("state", "method") else made.notes, name, value)
    return made


def finished(
    made: RequestRecord | None = None, of: SampledTrace | None = None, cost: float | None = None
) -> FinishedRequest:
    """Return such a request in its trace."""
    of = of or trace()
    return FinishedRequest(made or record(), of, of.notes, cost, OFFSET)
