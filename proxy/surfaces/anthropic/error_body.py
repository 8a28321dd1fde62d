"""Errors in Anthropic's envelope.

The error for a prompt that is too long has the vendor's own wording, by which clients recognise it; they then compact
the conversation. An overload, even of the gateway itself, has the status 529, which Anthropic's SDKs retry.

Sources: "Errors" page and `anthropic` 2.12.0 `types/shared`; Claude Code 2.1.197 for the wording, November 2026.
"""

from collections.abc import Mapping

from providers.context_overflow import read_overflow
from providers.json_types import JsonObject
from proxy.errors import ErrorFacts

OVERLOADED = 529

_BY_STATUS: Mapping[int, str] = {
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    OVERLOADED: "overloaded_error",
}

_TOO_LONG = "prompt is too long: "


def error_status(facts: ErrorFacts) -> int:
    """Return the HTTP status of an error."""
    return OVERLOADED if facts.status == 503 else facts.status


def error_body(facts: ErrorFacts) -> JsonObject:
    """Return the body of an error."""
    status = error_status(facts)
    kind = _BY_STATUS.get(status) or ("invalid_request_error" if status < 500 else "api_error")
    error: JsonObject = {"type": kind, "message": _message(facts), "details": {"error_code": facts.code}}
    return {"type": "error", "error": error}


def _message(facts: ErrorFacts) -> str:
    message = facts.message
    if facts.code != "context_length_exceeded" or message.startswith(_TOO_LONG):
        return message
    sizes = read_overflow(message, {})
    if sizes is None or sizes.window is None:
        return _TOO_LONG + message
    prompt, requested = sizes.prompt, sizes.requested
    if prompt is not None and requested is not None and prompt <= sizes.window:
        return f"input length and `max_tokens` exceed context limit: {prompt} + {requested} > {sizes.window}"
    tokens = prompt if prompt is not None else sizes.total
    return _TOO_LONG + (message if tokens is None else f"{tokens} tokens > {sizes.window} maximum")
