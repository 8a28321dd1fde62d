"""What an error answer of the OpenAI family means, whatever envelope it comes in.

Never a retry decision. The status is believed first, then the vendor's code, then (400 and 422) the message.
"""

import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

import orjson

from providers.failure import Failure, FailureKind, vet
from providers.profiles import Profile
from providers.unified import JsonObject, JsonValue

_STATUSES: Mapping[int, FailureKind] = {
    400: FailureKind.INVALID_REQUEST,
    401: FailureKind.AUTH,
    402: FailureKind.QUOTA,
    403: FailureKind.AUTH,
    404: FailureKind.NOT_FOUND,
    405: FailureKind.NOT_FOUND,
    408: FailureKind.TIMEOUT,
    409: FailureKind.SERVER,
    410: FailureKind.NOT_FOUND,
    413: FailureKind.INVALID_REQUEST,
    422: FailureKind.INVALID_REQUEST,
    429: FailureKind.RATE_LIMITED,
    498: FailureKind.OVERLOADED,
    503: FailureKind.OVERLOADED,
    504: FailureKind.TIMEOUT,
    524: FailureKind.TIMEOUT,
    529: FailureKind.OVERLOADED,
}
_CODES: Mapping[str, FailureKind] = {
    "context_length_exceeded": FailureKind.CONTEXT_LENGTH,
    "exceed_context_size_error": FailureKind.CONTEXT_LENGTH,
    "insufficient_quota": FailureKind.QUOTA,
    "billing_hard_limit_reached": FailureKind.QUOTA,
    "content_filter": FailureKind.CONTENT_FILTER,
    "content_policy_violation": FailureKind.CONTENT_FILTER,
    "invalid_api_key": FailureKind.AUTH,
    "model_not_found": FailureKind.NOT_FOUND,
    "rate_limit_exceeded": FailureKind.RATE_LIMITED,
    "server_error": FailureKind.SERVER,
    "overloaded_error": FailureKind.OVERLOADED,
}
_CONTEXT = re.compile(
    r"maximum context length|longer than the model's context length|prompt is too long"
    r"|exceeds the available context size|exceeds the context window|exceeded model token limit"
    r"|too large for model with \d+ maximum context|maximum prompt length is \d+"
    r"|`inputs` tokens \+ `max_new_tokens` must be <=|`inputs` must have less than \d+ tokens"
)
_TOO_MANY_A_MINUTE = re.compile(r"tokens per min|TPM")
_OUR_WORDS: Mapping[FailureKind, str] = {
    FailureKind.AUTH: "The upstream refused the gateway's credential.",
    FailureKind.NOT_FOUND: "The upstream does not know this model or path; the routing table names one it lacks.",
    FailureKind.QUOTA: "The upstream's account has no credit left.",
}
"""Where the vendor's words are the operator's business and not the client's."""


def classify(profile: Profile, status: int, headers: Mapping[str, str], body: bytes) -> Failure:
    """The failure an error answer stands for."""
    parsed = _parse(body)
    facts = _facts(parsed, body)
    kind = _kind(profile, status, facts)
    return Failure(
        kind,
        _OUR_WORDS.get(kind) or _message(kind, status, facts.message),
        status,
        facts.code if kind in _SHOWN_CODE else None,
        facts.param if kind is FailureKind.INVALID_REQUEST else None,
        retry_after(headers),
    )


def failure_in_body(profile: Profile, body: JsonObject) -> Failure:
    """An error object inside a 200 or a stream; its own status, where it has one, takes the place of HTTP's."""
    facts = _facts(body, b"")
    return_status = facts.status or 500
    kind = _kind(profile, return_status, facts)
    return Failure(kind, _OUR_WORDS.get(kind) or _message(kind, return_status, facts.message), facts.status)


_SHOWN_CODE = frozenset({FailureKind.INVALID_REQUEST, FailureKind.CONTEXT_LENGTH})


class _Facts:
    """What an envelope says, in whatever place: a message, machine words, a field, a status."""

    __slots__ = ("code", "message", "param", "status", "words")

    def __init__(self, message: str, code: str | None, param: str | None, status: int | None, words: list[str]) -> None:
        self.message = message
        self.code = code
        self.param = param
        self.status = status
        self.words = words


def _parse(body: bytes) -> JsonValue:
    try:
        value: JsonValue = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    return value[0] if isinstance(value, list) and value else value


def _facts(parsed: JsonValue, body: bytes) -> _Facts:
    if not isinstance(parsed, dict):
        text = body[:500].decode("utf-8", "replace")
        return _Facts("" if "<" in text[:100] else text, None, None, None, [])
    inner = parsed.get("error")
    detail = parsed.get("detail")
    if isinstance(detail, dict) and "error" in detail:
        inner = detail["error"]
    holder = inner if isinstance(inner, dict) else parsed
    raw_code, raw_type, param = holder.get("code"), holder.get("type"), holder.get("param")
    words = [
        word for word in (raw_code, raw_type, holder.get("error_type"), holder.get("status")) if isinstance(word, str)
    ]
    code = raw_code if isinstance(raw_code, str) else None
    status = next((n for n in (raw_code, parsed.get("status_code")) if isinstance(n, int) and 400 <= n < 600), None)
    return _Facts(_text(parsed, inner), code, param if isinstance(param, str) else None, status, words)


def _text(parsed: JsonObject, inner: JsonValue) -> str:
    """The message, looked for where vendors put it, most specific first."""
    places: list[JsonValue] = [inner.get("message") if isinstance(inner, dict) else inner, parsed.get("message")]
    detail = parsed.get("detail")
    if isinstance(detail, list):
        places.append("; ".join(_detail(entry) for entry in detail[:5]))
    places.append(detail)
    errors = parsed.get("errors")
    if isinstance(errors, list) and errors and isinstance(errors[0], dict):
        places.append(errors[0].get("message"))
    fault = parsed.get("fault")
    if isinstance(fault, dict):
        places.append(fault.get("faultstring"))
    return next((place for place in places if isinstance(place, str) and place), "")


def _detail(entry: JsonValue) -> str:
    if not isinstance(entry, dict):
        return str(entry)
    loc = entry.get("loc")
    where = ".".join(str(step) for step in loc) if isinstance(loc, list) else ""
    return f"{where}: {entry.get('msg', '')}" if where else str(entry.get("msg", ""))


def _kind(profile: Profile, status: int, facts: _Facts) -> FailureKind:
    for word in facts.words:
        own = profile.error_codes.get(word)
        if own is not None:
            return own
    for pattern, kind in profile.error_patterns:
        if pattern.search(facts.message):
            return kind
    if status == 429 and not any(_CODES.get(word) is FailureKind.QUOTA for word in facts.words):
        return profile.error_statuses.get(status, FailureKind.RATE_LIMITED)
    for word in facts.words:
        common = _CODES.get(word)
        if common is not None:
            return common
    if (
        status in (400, 403, 413, 422)
        and _CONTEXT.search(facts.message)
        and not _TOO_MANY_A_MINUTE.search(facts.message)
    ):
        return FailureKind.CONTEXT_LENGTH
    if status in profile.error_statuses:
        return profile.error_statuses[status]
    if 300 <= status < 400:
        return FailureKind.SERVER
    return _STATUSES.get(status, FailureKind.SERVER if status >= 500 else FailureKind.INVALID_REQUEST)


def _message(kind: FailureKind, status: int, text: str) -> str:
    shown = vet(text).strip()
    return shown or f"The upstream answered with status {status} ({kind.value.replace('_', ' ')})."


_NUMBER = re.compile(r"\d+(?:\.\d+)?")


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait, from `retry-after-ms` or `retry-after`; a date counts from the answer's own `date`."""
    millis = headers.get("retry-after-ms", "").strip()
    if _NUMBER.fullmatch(millis):
        return float(millis) / 1000
    given = headers.get("retry-after", "").strip()
    if _NUMBER.fullmatch(given):
        return float(given)
    try:
        wait = (parsedate_to_datetime(given) - parsedate_to_datetime(headers.get("date", ""))).total_seconds()
    except (TypeError, ValueError):
        # Not a date, or no date to count from: the caller has a default.
        return None
    return max(0.0, wait)
