"""Checks which of a client's extra headers may be sent to a vendor. An allow list, additions to it in the
configuration, and a list of headers that are never allowed decide.

Sources: W3C Trace Context and Baggage, B3 and Jaeger propagation; the vendors' pages on request headers as of November
2026: OpenAI (OpenAI-Beta, X-Client-Request-Id), Azure (x-ms-client-request-id), Anthropic (anthropic-beta,
anthropic-version), OpenRouter (HTTP-Referer, X-Title, X-OpenRouter-*, X-Session-Id), Fireworks and Cloudflare Workers
AI (x-session-affinity), xAI (x-grok-conv-id), Groq (Groq-Model-Version), Vertex AI (X-Vertex-AI-LLM-*), DashScope
(X-DashScope-DataInspection), Z.ai (Accept-Language), Cohere (X-Client-Name), Hugging Face (x-use-cache,
x-wait-for-model), Replicate (Cancel-After); vLLM and SGLang sources (x-data-parallel-rank, x-smg-routing-key).
"""

import re
from collections.abc import Iterable
from typing import Final

from providers.failure import Refusal
from providers.target import Target

_TRACING: Final = frozenset(
    {"traceparent", "tracestate", "baggage", "b3", "uber-trace-id", "sentry-trace", "x-cloud-trace-context"}
    | {"x-b3-traceid", "x-b3-spanid", "x-b3-parentspanid", "x-b3-sampled", "x-b3-flags"}
    | {"x-datadog-trace-id", "x-datadog-parent-id", "x-datadog-sampling-priority", "x-datadog-origin", "x-datadog-tags"}
    | {"x-client-request-id", "x-correlation-id", "x-ms-client-request-id", "x-trace-id"}
)
_SWITCHES: Final = frozenset(
    {"accept-language", "anthropic-beta", "anthropic-version", "cancel-after", "groq-model-version", "openai-beta"}
    | {"http-referer", "x-title", "x-openrouter-title", "x-openrouter-categories", "x-openrouter-experimental-metadata"}
    | {"x-client-name", "x-dashscope-datainspection", "x-use-cache", "x-wait-for-model"}
    | {"x-vertex-ai-llm-request-type", "x-vertex-ai-llm-shared-request-type"}
    | {"x-data-parallel-rank", "x-grok-conv-id", "x-session-affinity", "x-session-id", "x-smg-routing-key"}
)
ALLOWED: Final = _TRACING | _SWITCHES
"""Lower-case names of headers that may be sent to every deployment."""

# Headers that set the host, the method or the framing, headers that request encodings that the gateway cannot read, and
# headers that the gateway sends itself.
_OWN: Final = frozenset(
    {"via", "x-http-method", "x-http-method-override", "x-method-override", "max-forwards", "date", "x-request-id"}
    | {"connection", "keep-alive", "te", "trailer", "trailers", "transfer-encoding", "upgrade", "http2-settings"}
    | {"accept", "accept-charset", "accept-encoding", "expect", "range", "prefer", "early-data"}
)
_OWN_PREFIXES: Final = (
    *("content-", "if-", "sec-", "proxy-", "forwarded", "x-forwarded", "x-original-", "x-rewrite-"),
    *("x-amz-", "x-dragoman-"),
)
# Words in the names of headers that hold hosts or any vendor's credentials. The names of idempotency keys are included,
# since the gateway decides which calls are repeated.
_OWN_WORDS: Final = re.compile(r"auth|cookie|credential|passw|secret|token|apikey|(?:^|-)(?:hosts?|keys?)(?:-|$)")


def is_own(name: str) -> bool:
    """Return whether only the gateway or the operator may send a header, whatever the configuration allows: host,
    framing, hop-by-hop headers and credentials. `name` is in lower case."""
    if name in ALLOWED:
        return False
    return name in _OWN or name.startswith(_OWN_PREFIXES) or _OWN_WORDS.search(name) is not None


def covers_own(pattern: str) -> bool:
    """Return whether a pattern of the configuration matches no header that may be sent. A pattern is a name in lower
    case, which may end in `*`."""
    return is_own(pattern.removesuffix("*"))


def check_headers(names: Iterable[str], target: Target) -> list[str]:
    """Return the client's headers that the configuration overrides because it sets them itself. Raises Refusal for the
    first other header that may not be sent to the target."""
    own = {name.lower() for name in target.credential.masked()}
    overruled: list[str] = []
    for name in names:
        lower = name.lower()
        if lower in own:
            overruled.append(name)
        elif lower not in ALLOWED and (is_own(lower) or not _listed(lower, target.permits.headers)):
            field = f"inference_extra_headers.{name}"
            how = f"`allow_headers: [{lower}]` in the configuration would allow it"
            why = f"it is not among the headers that {target.name} may be sent"
            raise Refusal(field, f"'{field}' is refused: {why}; {how}.")
    return overruled


def _listed(name: str, patterns: tuple[str, ...]) -> bool:
    return any(name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern for pattern in patterns)
