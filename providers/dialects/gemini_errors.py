"""What the errors of Google's APIs mean, as HTTP answers and inside a stream.

Never decides whether anything is tried again.

Sources: `google.rpc.Code`, `google.rpc.error_details`; "Troubleshooting" and "Rate limits" pages of the Gemini API,
"API errors" of Vertex AI, November 2026; messages as public issue threads quote them.
"""

import re
from collections.abc import Iterator, Mapping

import orjson

from providers.context import Overflow, read_overflow
from providers.dialects.openai_read import loaded
from providers.failure import OUR_WORDS, Failure, FailureKind, kind_of_status, message_text, retry_after, vet
from providers.unified import JsonObject, JsonValue

_BY_NAME: Mapping[str, FailureKind] = {
    "INVALID_ARGUMENT": FailureKind.INVALID_REQUEST,
    "OUT_OF_RANGE": FailureKind.INVALID_REQUEST,
    # A region that is not served, or an account without billing.
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
    401: FailureKind.AUTH,
    402: FailureKind.QUOTA,
    403: FailureKind.AUTH,
    404: FailureKind.NOT_FOUND,
    408: FailureKind.TIMEOUT,
    409: FailureKind.SERVER,
    429: FailureKind.RATE_LIMITED,
    499: FailureKind.SERVER,
    503: FailureKind.OVERLOADED,
    504: FailureKind.TIMEOUT,
}

# One name stands for several faults, which differ by their text or their details.
_ABOUT_FILES = re.compile(r"access the File\b|not in an ACTIVE state", re.IGNORECASE)
# Messages may quote the request, so that only a whole one speaks against the account.
_SENTENCES = tuple(
    (of, re.compile(pattern, re.IGNORECASE), meant)
    for of, pattern, meant in (
        (
            FailureKind.INVALID_REQUEST,
            r"API key (?:(?:not valid|not found)\. Please pass a valid|expired\. Please renew the) API key\.",
            FailureKind.AUTH,
        ),
        (
            FailureKind.RATE_LIMITED,
            r"Your prepayment credits are depleted\. Please go to AI Studio (?:at \S{1,80} )?to manage your project "
            r"and billing\.",
            FailureKind.QUOTA,
        ),
    )
)
_KEY_REASONS = frozenset({"API_KEY_INVALID", "API_KEY_EXPIRED", "API_KEY_NOT_FOUND"})
_WAIT = re.compile(r"\bretry in (\d{1,6}(?:\.\d+)?)s\b", re.IGNORECASE)
_SECONDS = re.compile(r"(\d{1,6}(?:\.\d+)?)s")

# The operator's own names, which are nobody else's business.
_ACCOUNT = re.compile(r"\bproject_number:\d+|\bprojects?/[\w.:-]+")

_FIELD = re.compile(r"\bgeneration_?config\.([a-z_]+)", re.IGNORECASE)
_UNIFIED: Mapping[str, str] = {
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
    """An answer that is not 2xx; `headers` has lower-case names. What stands before the API answers in HTML."""
    try:
        value: JsonValue = loaded(body)
    except orjson.JSONDecodeError:
        value = None
    return failure_of(error_in(value) or {}, status, headers)


def error_in(value: JsonValue) -> JsonObject | None:
    """The error of an envelope, which may be the one element of a list; None where there is none."""
    if isinstance(value, list) and value:
        value = value[0]
    error = value.get("error") if isinstance(value, dict) else None
    if isinstance(error, str):
        return {"message": error}
    return error if isinstance(error, dict) else None


def failure_of(error: JsonObject, status: int | None = None, headers: Mapping[str, str] | None = None) -> Failure:
    """The failure that an error tells of; without a status it came inside a 2xx answer."""
    message = message_text(error.get("message"))
    kind = _kind(error, message, status)
    overflow = read_overflow(message, error) if kind is FailureKind.INVALID_REQUEST else None
    if overflow is not None and not overflow.of_answer:
        kind = FailureKind.CONTEXT_LENGTH
    unsaid = "reported an error" if status is None else f"answered with status {status}"
    return Failure(
        kind=kind,
        message=OUR_WORDS.get(kind) or vet(_ACCOUNT.sub("[project]", message)) or f"The upstream {unsaid}.",
        status=status,
        param=_param(kind, error, message, overflow),
        retry_after=_wait(error, message, headers),
        overflow=overflow,
    )


def _kind(error: JsonObject, message: str, status: int | None) -> FailureKind:
    name, code = error.get("status"), error.get("code")
    kind = _BY_NAME.get(name) if isinstance(name, str) else None
    if kind is None:
        kind = kind_of_status(status if status is not None else code if isinstance(code, int) else None, _BY_STATUS)
    details = list(_details(error))
    if any(str(detail.get("reason")) in _KEY_REASONS for detail in details):
        return FailureKind.AUTH
    if kind is FailureKind.RATE_LIMITED and (status == 402 or code == 402 or any(map(_daily, details))):
        return FailureKind.QUOTA
    if kind is FailureKind.AUTH and _ABOUT_FILES.search(message):
        return FailureKind.INVALID_REQUEST
    whole = message.strip()
    return next((meant for of, pattern, meant in _SENTENCES if of is kind and pattern.fullmatch(whole)), kind)


def _details(error: JsonObject) -> Iterator[JsonObject]:
    details = error.get("details")
    for detail in details if isinstance(details, list) else ():
        if isinstance(detail, dict):
            yield detail


def _daily(detail: JsonObject) -> bool:
    """Whether a limit is one that only the next day lifts, or never."""
    violations = detail.get("violations")
    found = [one for one in (violations if isinstance(violations, list) else ()) if isinstance(one, dict)]
    return any("PerDay" in str(one.get("quotaId")) or str(one.get("quotaValue")) == "0" for one in found)


def _param(kind: FailureKind, error: JsonObject, message: str, overflow: Overflow | None) -> str | None:
    """The unified field at fault, as far as the vendor names one of its own."""
    if overflow is not None:
        return "max_tokens" if overflow.of_answer else "prompt"
    if kind is not FailureKind.INVALID_REQUEST:
        return None
    named = [violation for detail in _details(error) for violation in _violations(detail)]
    found = next((match for text in (*named, message) if (match := _FIELD.search(text))), None)
    return _UNIFIED.get(found[1].replace("_", "").lower()) if found else None


def _violations(detail: JsonObject) -> Iterator[str]:
    violations = detail.get("fieldViolations")
    for violation in violations if isinstance(violations, list) else ():
        field = violation.get("field") if isinstance(violation, dict) else None
        if isinstance(field, str):
            yield message_text(field)


def _wait(error: JsonObject, message: str, headers: Mapping[str, str] | None) -> float | None:
    """Seconds to wait: the header's, the detail's, or those that the message speaks of."""
    if headers and (told := retry_after(headers)) is not None:
        return told
    for detail in _details(error):
        delay = detail.get("retryDelay")
        if isinstance(delay, str) and (found := _SECONDS.fullmatch(delay)):
            return float(found[1])
    spoken = _WAIT.search(message)
    return float(spoken[1]) if spoken else None
