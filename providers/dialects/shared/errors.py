"""Classifies errors of the OpenAI family in all their envelopes, and holds the functions that readers of all vendors'
errors share.

The failure kind is decided in this order: codes and messages of the vendor's profile, codes that mean the same for
every vendor, a message about sizes, the HTTP status.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import orjson

from providers.context_overflow import Overflow, read_overflow
from providers.dialect import UpstreamRequest
from providers.dialects.shared.read_json import parse_json
from providers.failure import GATEWAY_MESSAGES, STATUS_KINDS, Failure, FailureKind, kind_of_status, message_text
from providers.json_types import JsonObject, JsonValue
from providers.profile import Profile
from providers.vendor_text.read_retry_after import read_rate_limit_wait, read_retry_after
from providers.vendor_text.vet_message import vet

_STATUSES: Mapping[int, FailureKind] = {
    **STATUS_KINDS,
    400: FailureKind.INVALID_REQUEST,
    405: FailureKind.NOT_FOUND,
    410: FailureKind.NOT_FOUND,
    413: FailureKind.INVALID_REQUEST,
    422: FailureKind.INVALID_REQUEST,
    # A dependency of the engine failed: TGI and Bedrock send this status if generating failed.
    424: FailureKind.SERVER,
    # The server does not process early data and requires that the request is sent again (RFC 8470).
    425: FailureKind.OVERLOADED,
    498: FailureKind.OVERLOADED,
    499: FailureKind.SERVER,
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
    "account_deactivated": FailureKind.AUTH,
    "organization_restricted": FailureKind.AUTH,
    "unsupported_country_region_territory": FailureKind.AUTH,
    "model_not_found": FailureKind.NOT_FOUND,
    "model_decommissioned": FailureKind.NOT_FOUND,
    "model_not_available": FailureKind.NOT_FOUND,
    "invalid_model": FailureKind.NOT_FOUND,
    "unknown_model": FailureKind.NOT_FOUND,
    "unavailable_model": FailureKind.NOT_FOUND,
    "ModelNotFound": FailureKind.NOT_FOUND,
    "rate_limit_exceeded": FailureKind.RATE_LIMITED,
    "overloaded_error": FailureKind.OVERLOADED,
}
_SIZE_STATUSES = frozenset({None, 400, 403, 413, 422})
"""A message about sizes is trusted only if the error has one of these statuses. Together sends 403 for it. `None` means
an error inside a 200."""
_REQUEST_KINDS = frozenset({FailureKind.INVALID_REQUEST, FailureKind.UNSUPPORTED})
_KINDS_WITH_CODE = _REQUEST_KINDS | {FailureKind.CONTEXT_LENGTH}
_MACHINE_WORD = re.compile(r"[\w.\[\]-]{1,64}", re.ASCII)
"""The pattern of a code or a field's name. Text that does not match it must not reach a client as a code or a name."""


@dataclass(frozen=True, slots=True)
class _ErrorContent:
    """The content of an error envelope.

    `words` are all machine-readable words in it. `evidence` is a text that is not shown to the client. `overflow` holds
    the sizes that the texts report. `members` is the error object itself. `empty` is true if there was no body.
    """

    message: str
    code: str | None = None
    param: str | None = None
    status: int | None = None
    words: tuple[str, ...] = ()
    evidence: str = ""
    overflow: Overflow | None = None
    members: JsonObject = field(default_factory=dict)
    empty: bool = False


# For every vendor ---------------------------------------------------------------------------------------------------

TextRule = tuple[FailureKind | None, re.Pattern[str], FailureKind]
"""The kind so far (`None` for any kind), a pattern that the message must contain, and the resulting kind."""


def refine_kind(rules: Iterable[TextRule], kind: FailureKind, message: str) -> FailureKind:
    """Return the kind of the first rule that matches, otherwise `kind`."""
    return next((meant for of, pattern, meant in rules if of in (None, kind) and pattern.search(message)), kind)


def parse_error(body: bytes) -> JsonValue:
    """Return the JSON value of an error body; `None` if the body is not JSON. The front ends of some vendors respond in
    HTML."""
    try:
        value: JsonValue = parse_json(body)
    except orjson.JSONDecodeError:
        return None
    return value


def parse_error_object(body: bytes) -> JsonObject:
    """Return the JSON object of an error body, or an empty object if the body is not an object."""
    value = parse_error(body)
    return value if isinstance(value, dict) else {}


def read_sizes(kind: FailureKind, message: str, members: JsonObject) -> tuple[FailureKind, Overflow | None]:
    """Return the kind, and the sizes that the message of an invalid request or the error's `members` report."""
    overflow = read_overflow(message, members) if kind is FailureKind.INVALID_REQUEST else None
    if overflow is None or overflow.of_answer:
        return kind, overflow
    return FailureKind.CONTEXT_LENGTH, overflow


def size_field(overflow: Overflow | None) -> str | None:
    """Return the unified field whose size was wrong; `None` without an overflow."""
    if overflow is None:
        return None
    return "max_tokens" if overflow.of_answer else "prompt"


def client_message(kind: FailureKind, message: str, status: int | None) -> str:
    """Return the message for the client. `status` is `None` if the error came inside a 2xx response."""
    default = "reported an error" if status is None else f"responded with status {status}"
    return GATEWAY_MESSAGES.get(kind) or vet(message) or f"The upstream {default}."


def withheld_words(kind: FailureKind, message: str) -> str:
    """Return the vendor's vetted message for the operator if the client gets the gateway's own message, otherwise an
    empty text."""
    return vet(message).strip() if kind in GATEWAY_MESSAGES else ""


# The OpenAI family --------------------------------------------------------------------------------------------------


def classify(profile: Profile, status: int, headers: Mapping[str, str], body: bytes) -> Failure:
    """Return the failure that a response outside 2xx means. `headers` has lower-case names."""
    value = parse_error(body)
    return _failure(
        profile, status, headers, _read_content(value[0] if isinstance(value, list) and value else value, body)
    )


class OpenAIErrors:
    """The base of dialects whose vendors report errors as the OpenAI family does."""

    def classify(self, sent: UpstreamRequest, status: int, headers: Mapping[str, str], body: bytes) -> Failure:
        return classify(sent.target.profile, status, headers, body)


def failure_in_body(profile: Profile, body: JsonObject) -> Failure:
    """Return the failure that an error object inside a 200 or a stream means. The status in the object, if any, is used
    instead of the HTTP status."""
    content = _read_content(body, b"")
    return _failure(profile, content.status, {}, content)


_ERROR_KEYS = frozenset({"error", "object", "error_code", "success"})


def is_error(body: JsonObject) -> bool:
    """Return whether the JSON object of a 200 response is an error."""
    if _ERROR_KEYS.isdisjoint(body):
        return False
    if body.get("error") or body.get("object") == "error":
        return True
    return not body.get("choices") and (bool(body.get("error_code")) or body.get("success") is False)


def _failure(profile: Profile, status: int | None, headers: Mapping[str, str], content: _ErrorContent) -> Failure:
    kind = _kind(profile, status, content)
    limited = kind in (FailureKind.RATE_LIMITED, FailureKind.OVERLOADED)
    wait = read_rate_limit_wait(headers, content.message, content.members) if limited else read_retry_after(headers)
    overflow = _overflow(kind, content)
    param = "max_tokens" if overflow is not None and overflow.of_answer else _machine_word(content.param)
    return Failure(
        kind,
        GATEWAY_MESSAGES.get(kind) or vet(content.message).strip() or _default_message(kind, status),
        status,
        _machine_word(content.code) if kind in _KINDS_WITH_CODE else None,
        param if kind in _REQUEST_KINDS else None,
        wait,
        overflow,
        said=withheld_words(kind, f"{content.message} {content.evidence}") or vet(content.evidence).strip(),
    )


def _overflow(kind: FailureKind, content: _ErrorContent) -> Overflow | None:
    """Return the sizes that the texts report if they fit the failure kind, otherwise `None`."""
    if kind is FailureKind.CONTEXT_LENGTH:
        return content.overflow or Overflow()
    of_answer = content.overflow is not None and content.overflow.of_answer
    return content.overflow if of_answer and kind is FailureKind.INVALID_REQUEST else None


def _default_message(kind: FailureKind, status: int | None) -> str:
    result = "an error" if status is None else f"status {status}"
    return f"The upstream responded with {result} ({kind.value.replace('_', ' ')})."


def _machine_word(text: str | None) -> str | None:
    return text if text is not None and _MACHINE_WORD.fullmatch(text) else None


def _read_content(parsed: JsonValue, body: bytes) -> _ErrorContent:
    if not isinstance(parsed, dict):
        text = body[:500].decode("utf-8", "replace")
        text = "" if "<" in text[:100] else text
        return _ErrorContent(text, overflow=read_overflow(text, {}), empty=not body.strip())
    inner = _error_in(parsed)
    holder = inner if isinstance(inner, dict) else parsed
    raw_code, param, metadata = holder.get("code"), holder.get("param"), holder.get("metadata")
    # OpenRouter puts its error type into the metadata, and its code is a status.
    named: tuple[JsonValue, ...] = (
        _field(metadata, "error_type"),
        raw_code,
        holder.get("type"),
        holder.get("error_type"),
        holder.get("error_code"),
        holder.get("status"),
    )
    named += tuple(_field(detail, "reason") for detail in _listed(holder.get("details")))
    statuses = (raw_code, holder.get("status_code"), parsed.get("status_code"))
    # Cloudflare's error codes are numbers.
    words = [str(word) for word in named if isinstance(word, str | int) and not isinstance(word, bool)]
    raw = _field(metadata, "raw")
    message, evidence = message_text(_text(parsed, inner)), message_text(raw)
    return _ErrorContent(
        message,
        raw_code if isinstance(raw_code, str) else None,
        param if isinstance(param, str) else _field_of(_details(parsed)),
        next((number for number in statuses if isinstance(number, int) and 400 <= number < 600), None),
        tuple(words),
        evidence,
        read_overflow(f"{message} {evidence}", holder),
        holder,
    )


def _error_in(parsed: JsonObject) -> JsonValue:
    """Return the error of a body, which is an object or a text."""
    detail = parsed.get("detail")
    if isinstance(detail, dict) and detail.get("error"):
        return detail["error"]
    errors = parsed.get("errors")
    if isinstance(errors, list) and errors and not parsed.get("error"):
        return errors[0]
    return parsed.get("error")


def _text(parsed: JsonObject, inner: JsonValue) -> str:
    """Return the message from the most specific of the fields in which vendors put it."""
    candidates: list[JsonValue] = [inner.get("message") if isinstance(inner, dict) else inner, parsed.get("message")]
    candidates.append("; ".join([words for entry in _details(parsed)[:5] if (words := _detail(entry))]))
    candidates.append(parsed.get("detail"))
    # `fault` is from Apigee in front of Fireworks, `content` from Scale's LLM Engine.
    for holder, name in ((parsed.get("fault"), "faultstring"), (_field(inner, "content"), "error")):
        candidates.append(_field(holder, name))
    return next((candidate for candidate in candidates if isinstance(candidate, str) and candidate), "")


def _listed(value: JsonValue) -> list[JsonValue]:
    return value[:16] if isinstance(value, list) else []


def _field(holder: JsonValue, name: str) -> JsonValue:
    return holder.get(name) if isinstance(holder, dict) else None


def _details(parsed: JsonObject) -> list[JsonValue]:
    """Return the faults that a server based on FastAPI lists. Mistral also lists them within the message."""
    candidates = (parsed, parsed.get("message"), _field(parsed.get("error"), "message"), parsed.get("error"))
    return next((found for candidate in candidates if (found := _listed(_field(candidate, "detail")))), [])


def _detail(entry: JsonValue) -> str:
    """Return the field and the reason of a fault as text. The client's input, which some servers add, is left out."""
    if not isinstance(entry, dict):
        return message_text(entry)
    field_path, reason = ".".join(_steps(entry)), message_text(entry.get("msg"))
    return f"{field_path}: {reason}" if field_path else reason


_SHOWN_STEPS = 8


def _steps(entry: JsonObject) -> list[str]:
    return [str(step)[:64] for step in _listed(entry.get("loc"))[:_SHOWN_STEPS] if isinstance(step, str | int)]


def _field_of(details: list[JsonValue]) -> str | None:
    """Return the field of the first fault, without the leading `body`."""
    first = details[0] if details else None
    steps = _steps(first) if isinstance(first, dict) else []
    return ".".join(steps[1:] if steps[:1] == ["body"] else steps) or None


def _kind(profile: Profile, status: int | None, content: _ErrorContent) -> FailureKind:
    for kind in _kinds_by_sign(profile, status, content):
        if kind is not None:
            return kind
    return kind_of_status(status, {})


def _kinds_by_sign(profile: Profile, status: int | None, content: _ErrorContent) -> Iterable[FailureKind | None]:
    """Yield the failure kind that each property of the error shows, the most reliable property first. Yield `None` for
    a property that does not show the kind."""
    text, overflow = f"{content.message} {content.evidence}".strip(), content.overflow
    common = _kind_by_word(_CODES, content.words)
    yield _kind_by_word(profile.errors.codes, content.words)
    yield next((kind for path, kind in profile.errors.members.items() if _has_field(content.members, path)), None)
    yield next((kind for pattern, kind in profile.errors.patterns if pattern.search(text)), None)
    if _exceeds_limit_by_itself(status, common, content.message):
        yield FailureKind.TOO_LARGE
    if content.empty and status is not None:
        yield profile.errors.silent.get(status)
    if status == 429:
        # A 429 is never a fault of the request itself. It is either an exhausted account or a rate limit.
        yield common if common is FailureKind.QUOTA else profile.errors.statuses.get(429, FailureKind.RATE_LIMITED)
    yield common
    if overflow is not None and status in _SIZE_STATUSES:
        yield FailureKind.INVALID_REQUEST if overflow.of_answer else FailureKind.CONTEXT_LENGTH
    if status is not None:
        yield profile.errors.statuses.get(status)
        yield _STATUSES.get(status)


def _exceeds_limit_by_itself(status: int | None, common: FailureKind | None, message: str) -> bool:
    """Return whether one request needs more tokens than a minute's limit: Groq's 413, or a 429 with OpenAI's text for
    it.

    A text quoted from a request can only prevent a cooldown here, never cause one.
    """
    limited = common is FailureKind.RATE_LIMITED
    return (limited and status == 413) or (status == 429 and message.startswith("Request too large for "))


def _has_field(holder: JsonObject, path: str) -> bool:
    """Return whether the field at a dotted path has a value that is not empty."""
    value: JsonValue = holder
    for name in path.split("."):
        value = _field(value, name)
    return bool(value)


def _kind_by_word(table: Mapping[str, FailureKind], words: Iterable[str]) -> FailureKind | None:
    return next((table[word] for word in words if word in table), None)
