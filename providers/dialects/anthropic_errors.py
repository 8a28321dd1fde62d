"""What Anthropic's errors mean, as HTTP answers and inside a stream.

Never decides whether anything is tried again.

Sources: "Errors" and "Rate limits" pages and `anthropic` 2.12.0 `types/shared`, November 2026; the signatures follow
messages quoted in public issue threads.
"""

import re
from collections.abc import Mapping

import orjson

from providers.context import Overflow, read_overflow
from providers.dialects.openai_read import loaded
from providers.failure import OUR_WORDS, Failure, FailureKind, kind_of_status, message_text, retry_after, vet
from providers.unified import JsonObject, JsonValue

_BY_TYPE: Mapping[str, FailureKind] = {
    "invalid_request_error": FailureKind.INVALID_REQUEST,
    "request_too_large": FailureKind.INVALID_REQUEST,
    "authentication_error": FailureKind.AUTH,
    "permission_error": FailureKind.AUTH,
    "billing_error": FailureKind.QUOTA,
    "not_found_error": FailureKind.NOT_FOUND,
    # The vendor's own SDK asks again after a conflict: it is about the vendor's state, not about the request.
    "conflict_error": FailureKind.SERVER,
    "rate_limit_error": FailureKind.RATE_LIMITED,
    "timeout_error": FailureKind.TIMEOUT,
    "api_error": FailureKind.SERVER,
    "overloaded_error": FailureKind.OVERLOADED,
}
_BY_STATUS: Mapping[int, FailureKind] = {
    401: FailureKind.AUTH,
    402: FailureKind.QUOTA,
    403: FailureKind.AUTH,
    404: FailureKind.NOT_FOUND,
    408: FailureKind.TIMEOUT,
    409: FailureKind.SERVER,
    429: FailureKind.RATE_LIMITED,
    503: FailureKind.OVERLOADED,
    504: FailureKind.TIMEOUT,
    529: FailureKind.OVERLOADED,
}
_SPEND_LIMITS = frozenset({"enforced_spend_limit_reached"})

# Several faults share the type `invalid_request_error` and differ by their text alone; those about sizes are read by
# `providers.context`.
_FILTERED = re.compile(r"output blocked by content filtering policy", re.IGNORECASE)
# Messages may quote the request, so that only a whole one speaks against the account.
_SPENT = re.compile(
    r"Your credit balance is too low(?: to access the (?:Anthropic|Claude) API)?\."
    r"(?: Please go to Plans & Billing to upgrade or purchase credits\.)?"
    r"|You have reached your specified (?:workspace )?API usage limits\."
    r"(?: You will regain access on [0-9-]{10} at [0-9:]{5} UTC\.)?",
    re.IGNORECASE,
)
_FIELD = re.compile(r"(max_tokens|temperature|top_p|top_k|stop_sequences|tools|tool_choice|thinking|messages)\b[.:]")
_UNIFIED = {"stop_sequences": "stop"}


def classify_answer(status: int, headers: Mapping[str, str], body: bytes) -> Failure:
    """An answer that is not 2xx; `headers` has lower-case names. The edge in front of the vendor answers in HTML."""
    try:
        value: JsonValue = loaded(body)
    except orjson.JSONDecodeError:
        value = None
    return failure_of(value if isinstance(value, dict) else {}, status, headers)


def failure_of(body: JsonObject, status: int | None = None, headers: Mapping[str, str] | None = None) -> Failure:
    """The failure that an error envelope tells of; without a status it came inside a 2xx answer."""
    error = body.get("error")
    error = error if isinstance(error, dict) else {}
    message = message_text(error.get("message"))
    kind = _kind(error, message, status)
    overflow = read_overflow(message, error) if kind is FailureKind.INVALID_REQUEST else None
    if overflow is not None and not overflow.of_answer:
        kind = FailureKind.CONTEXT_LENGTH
    unsaid = "reported an error" if status is None else f"answered with status {status}"
    return Failure(
        kind=kind,
        message=OUR_WORDS.get(kind) or vet(message) or f"The upstream {unsaid}.",
        status=status,
        param=_param(kind, message, overflow),
        retry_after=retry_after(headers) if headers else None,
        overflow=overflow,
    )


def _kind(error: JsonObject, message: str, status: int | None) -> FailureKind:
    name, details = error.get("type"), error.get("details")
    kind = _BY_TYPE.get(name) if isinstance(name, str) else None
    if kind is None:
        kind = kind_of_status(status, _BY_STATUS)
    if kind is FailureKind.INVALID_REQUEST:
        if _SPENT.fullmatch(message.strip()):
            return FailureKind.QUOTA
        return FailureKind.CONTENT_FILTER if _FILTERED.search(message) else kind
    code = details.get("error_code") if isinstance(details, dict) else None
    if kind is FailureKind.RATE_LIMITED and isinstance(code, str) and code in _SPEND_LIMITS:
        return FailureKind.QUOTA
    return kind


def _param(kind: FailureKind, message: str, overflow: Overflow | None) -> str | None:
    """The unified field at fault, which the vendor's message begins with where it is not about sizes."""
    if overflow is not None:
        return "max_tokens" if overflow.of_answer else "prompt"
    found = _FIELD.match(message) if kind is FailureKind.INVALID_REQUEST else None
    return _UNIFIED.get(found[1], found[1]) if found else None
