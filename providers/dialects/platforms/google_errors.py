"""Classifies errors of Google's APIs, in HTTP responses and inside streams.

Sources: `google.rpc.Code`, `google.rpc.error_details`; "Troubleshooting" and "Rate limits" pages of the Gemini API,
"API errors" of Vertex AI, November 2026. The messages are quoted in public issue threads.
"""

import re
from collections.abc import Iterator, Mapping

from providers.dialects.shared.errors import (
    TextRule,
    client_message,
    parse_error,
    read_sizes,
    refine_kind,
    size_field,
    withheld_words,
)
from providers.failure import STATUS_KINDS, Failure, FailureKind, kind_of_status, message_text
from providers.json_types import JsonObject, JsonValue
from providers.vendor_text.read_retry_after import read_retry_after

_BY_NAME: Mapping[str, FailureKind] = {
    "INVALID_ARGUMENT": FailureKind.INVALID_REQUEST,
    "OUT_OF_RANGE": FailureKind.INVALID_REQUEST,
    # The region is not served, or the account has no billing.
    "FAILED_PRECONDITION": FailureKind.AUTH,
    "UNAUTHENTICATED": FailureKind.AUTH,
    "PERMISSION_DENIED": FailureKind.AUTH,
    "NOT_FOUND": FailureKind.NOT_FOUND,
    "RESOURCE_EXHAUSTED": FailureKind.RATE_LIMITED,
    "ABORTED": FailureKind.SERVER,
    "CANCELLED": FailureKind.SERVER,
    "INTERNAL": FailureKind.SERVER,
    "UNKNOWN": FailureKind.SERVER,
    "DATA_LOSS": FailureKind.SERVER,
    "UNAVAILABLE": FailureKind.OVERLOADED,
    "DEADLINE_EXCEEDED": FailureKind.TIMEOUT,
}
_BY_STATUS: Mapping[int, FailureKind] = {
    **STATUS_KINDS,
    499: FailureKind.SERVER,
}

# One status name covers several faults, which differ by their text or their details.
_RULES: tuple[TextRule, ...] = (
    (
        FailureKind.AUTH,
        re.compile(
            r"access the File\b|not in an ACTIVE state|\bCachedContent\b[ -~]{0,40} not (?:found|exist)", re.IGNORECASE
        ),
        FailureKind.INVALID_REQUEST,
    ),
    # The pattern covers the whole message: the kind counts against the account, and other messages may quote the
    # request.
    (
        FailureKind.INVALID_REQUEST,
        re.compile(
            r"^\s*API key (?:(?:not valid|not found)\. Please pass a valid|expired\. Please renew the) API key\.\s*$",
            re.IGNORECASE,
        ),
        FailureKind.AUTH,
    ),
    (
        FailureKind.RATE_LIMITED,
        re.compile(
            r"^\s*Your prepayment credits are depleted\. Please go to AI Studio (?:at \S{1,80} )?to manage your "
            r"project and billing\.\s*$",
            re.IGNORECASE,
        ),
        FailureKind.QUOTA,
    ),
)
_KEY_REASONS = frozenset({"API_KEY_INVALID", "API_KEY_EXPIRED", "API_KEY_NOT_FOUND"})
_WAIT = re.compile(r"\bretry in (\d{1,6}(?:\.\d+)?)s\b", re.IGNORECASE)
_SECONDS = re.compile(r"(\d{1,6}(?:\.\d+)?)s")

# Identifiers of the operator's account, which clients must not see.
_ACCOUNT_ID = re.compile(r"\bproject_number:\d+|\bprojects?/[\w.:-]+")

_NAMED_FIELD = re.compile(r"\bgeneration_?config\.([a-z_]+)", re.IGNORECASE)
_UNIFIED_BY_VENDOR_FIELD: Mapping[str, str] = {
    "maxoutputtokens": "max_tokens",
    "temperature": "temperature",
    "topp": "top_p",
    "topk": "top_k",
    "seed": "seed",
    "stopsequences": "stop",
    "presencepenalty": "presence_penalty",
    "frequencypenalty": "frequency_penalty",
    "responselogprobs": "logprobs",
    "logprobs": "logprobs",
}


def classify_answer(status: int, headers: Mapping[str, str], body: bytes) -> Failure:
    """Return the failure that a response outside 2xx means. `headers` has lower-case names."""
    return failure_of(error_in(parse_error(body)) or {}, status, headers)


def error_in(value: JsonValue) -> JsonObject | None:
    """Return the error of a body, which may be a list of one object; `None` if the body has no error."""
    if isinstance(value, list) and value:
        value = value[0]
    error = value.get("error") if isinstance(value, dict) else None
    if isinstance(error, str):
        return {"message": error}
    return error if isinstance(error, dict) else None


def failure_of(error: JsonObject, status: int | None = None, headers: Mapping[str, str] | None = None) -> Failure:
    """Return the failure that an error object means. `status` is `None` if the error came inside a 2xx response."""
    message = message_text(error.get("message"))
    kind, overflow = read_sizes(_kind(error, message, status), message, error)
    return Failure(
        kind=kind,
        message=client_message(kind, _ACCOUNT_ID.sub("[project]", message), status),
        status=status,
        param=size_field(overflow) or _param(kind, error, message),
        retry_after=_retry_after(error, message, headers),
        overflow=overflow,
        said=withheld_words(kind, _ACCOUNT_ID.sub("[project]", message)),
    )


def _kind(error: JsonObject, message: str, status: int | None) -> FailureKind:
    name, code = error.get("status"), error.get("code")
    kind = _BY_NAME.get(name) if isinstance(name, str) else None
    if kind is None:
        kind = kind_of_status(status if status is not None else code if isinstance(code, int) else None, _BY_STATUS)
    details = list(_details(error))
    if any(str(detail.get("reason")) in _KEY_REASONS for detail in details):
        return FailureKind.AUTH
    if kind is FailureKind.RATE_LIMITED and (status == 402 or code == 402 or any(map(_is_daily, details))):
        return FailureKind.QUOTA
    return refine_kind(_RULES, kind, message)


def _details(error: JsonObject) -> Iterator[JsonObject]:
    details = error.get("details")
    for detail in details if isinstance(details, list) else ():
        if isinstance(detail, dict):
            yield detail


def _is_daily(detail: JsonObject) -> bool:
    """Return whether a quota resets only on the next day, or is 0."""
    violations = detail.get("violations")
    found = [one for one in (violations if isinstance(violations, list) else ()) if isinstance(one, dict)]
    return any("PerDay" in str(one.get("quotaId")) or str(one.get("quotaValue")) == "0" for one in found)


def _param(kind: FailureKind, error: JsonObject, message: str) -> str | None:
    """Return the unified field at fault; `None` if the vendor names no field that has a unified name."""
    if kind is not FailureKind.INVALID_REQUEST:
        return None
    named = [violation for detail in _details(error) for violation in _violations(detail)]
    found = next((match for text in (*named, message) if (match := _NAMED_FIELD.search(text))), None)
    return _UNIFIED_BY_VENDOR_FIELD.get(found[1].replace("_", "").lower()) if found else None


def _violations(detail: JsonObject) -> Iterator[str]:
    violations = detail.get("fieldViolations")
    for violation in violations if isinstance(violations, list) else ():
        field = violation.get("field") if isinstance(violation, dict) else None
        if isinstance(field, str):
            yield message_text(field)


def _retry_after(error: JsonObject, message: str, headers: Mapping[str, str] | None) -> float | None:
    """Return the seconds to wait, by the header, the error's details or the message, in this order."""
    if headers and (seconds := read_retry_after(headers)) is not None:
        return seconds
    for detail in _details(error):
        delay = detail.get("retryDelay")
        if isinstance(delay, str) and (found := _SECONDS.fullmatch(delay)):
            return float(found[1])
    in_text = _WAIT.search(message)
    return float(in_text[1]) if in_text else None
