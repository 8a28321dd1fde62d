"""Classifies Anthropic's errors, in HTTP responses and inside a stream.

Sources: "Errors" and "Rate limits" pages and `anthropic` 2.12.0 `types/shared`, November 2026; the patterns match
messages quoted in public issue threads.
"""

import re
from collections.abc import Mapping

from providers.dialects.shared.errors import (
    TextRule,
    client_message,
    parse_error_object,
    read_sizes,
    refine_kind,
    size_field,
    withheld_words,
)
from providers.failure import STATUS_KINDS, Failure, FailureKind, kind_of_status, message_text
from providers.json_types import JsonObject
from providers.vendor_text.read_retry_after import read_retry_after

_BY_TYPE: Mapping[str, FailureKind] = {
    "invalid_request_error": FailureKind.INVALID_REQUEST,
    "request_too_large": FailureKind.INVALID_REQUEST,
    "authentication_error": FailureKind.AUTH,
    "permission_error": FailureKind.AUTH,
    "billing_error": FailureKind.QUOTA,
    "not_found_error": FailureKind.NOT_FOUND,
    # The vendor's own SDK retries a conflict: the cause is the vendor's state, not the request.
    "conflict_error": FailureKind.SERVER,
    "rate_limit_error": FailureKind.RATE_LIMITED,
    "timeout_error": FailureKind.TIMEOUT,
    "api_error": FailureKind.SERVER,
    "overloaded_error": FailureKind.OVERLOADED,
}
_BY_STATUS: Mapping[int, FailureKind] = {
    **STATUS_KINDS,
    529: FailureKind.OVERLOADED,
}
_SPEND_LIMITS = frozenset({"enforced_spend_limit_reached"})

# Several errors share the type `invalid_request_error` and differ in their text alone. `providers.context_overflow`
# reads the texts about sizes.
_RULES: tuple[TextRule, ...] = (
    # The pattern must match the whole message: a match counts as a failure of the account, and other messages may quote
    # the request.
    (
        FailureKind.INVALID_REQUEST,
        re.compile(
            r"^\s*(?:Your credit balance is too low(?: to access the (?:Anthropic|Claude) API)?\."
            r"(?: Please go to Plans & Billing to upgrade or purchase credits\.)?"
            r"|You have reached your specified (?:workspace )?API usage limits\."
            r"(?: You will regain access on [0-9-]{10} at [0-9:]{5} UTC\.)?)\s*$",
            re.IGNORECASE,
        ),
        FailureKind.QUOTA,
    ),
    (
        FailureKind.INVALID_REQUEST,
        re.compile(
            r"^\s*This (?:organization|account|workspace|API key) has been disabled\.[ -~]{0,200}$", re.IGNORECASE
        ),
        FailureKind.AUTH,
    ),
    (
        FailureKind.INVALID_REQUEST,
        re.compile(r"output blocked by content filtering policy", re.IGNORECASE),
        FailureKind.CONTENT_FILTER,
    ),
)
_FIELD = re.compile(r"(max_tokens|temperature|top_p|top_k|stop_sequences|tools|tool_choice|thinking|messages)\b[.:]")
_UNIFIED_NAMES = {"stop_sequences": "stop"}


def classify_answer(status: int, headers: Mapping[str, str], body: bytes) -> Failure:
    """Return the failure that a response outside 2xx means. `headers` has lower-case names."""
    return failure_of(parse_error_object(body), status, headers)


def failure_of(body: JsonObject, status: int | None = None, headers: Mapping[str, str] | None = None) -> Failure:
    """Return the failure that an error envelope means. `status` is `None` if the envelope came inside a 2xx
    response."""
    error = body.get("error")
    error = error if isinstance(error, dict) else {}
    message = message_text(error.get("message"))
    kind, overflow = read_sizes(_kind(error, message, status), message, error)
    return Failure(
        kind=kind,
        message=client_message(kind, message, status),
        status=status,
        param=size_field(overflow) or _param(kind, message),
        retry_after=read_retry_after(headers) if headers else None,
        overflow=overflow,
        said=withheld_words(kind, message),
    )


def _kind(error: JsonObject, message: str, status: int | None) -> FailureKind:
    name, details = error.get("type"), error.get("details")
    kind = _BY_TYPE.get(name) if isinstance(name, str) else None
    if kind is None:
        kind = kind_of_status(status, _BY_STATUS)
    code = details.get("error_code") if isinstance(details, dict) else None
    if kind is FailureKind.RATE_LIMITED and isinstance(code, str) and code in _SPEND_LIMITS:
        return FailureKind.QUOTA
    return refine_kind(_RULES, kind, message)


def _param(kind: FailureKind, message: str) -> str | None:
    """Return the unified field that caused an invalid request. The error message begins with the vendor's name of the
    field."""
    found = _FIELD.match(message) if kind is FailureKind.INVALID_REQUEST else None
    return _UNIFIED_NAMES.get(found[1], found[1]) if found else None
