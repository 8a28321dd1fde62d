"""What an error answer of the OpenAI family means, whatever envelope it comes in.

Never a retry decision. What the vendor's row says of a code or a message comes first, then the codes that mean the same
everywhere, then a message about sizes, and the status last.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import orjson

from providers.context import Overflow, read_overflow
from providers.dialects.openai_read import loaded
from providers.failure import OUR_WORDS, Failure, FailureKind, message_text, retry_after, vet
from providers.profiles import Profile
from providers.rate_limits import asked_wait
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
    # What the engine itself depends on failed: TGI's and Bedrock's word for a generation that broke.
    424: FailureKind.SERVER,
    # It would not begin yet (RFC 8470), and asks for the same again.
    425: FailureKind.OVERLOADED,
    429: FailureKind.RATE_LIMITED,
    498: FailureKind.OVERLOADED,
    499: FailureKind.SERVER,
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
    "overloaded_error": FailureKind.OVERLOADED,
}
_ABOUT_REQUEST = frozenset({None, 400, 403, 413, 422})
"""Statuses under which a message about sizes is believed; Together sends 403 for it, and None is within a 200."""
_SHOWN_CODE = frozenset({FailureKind.INVALID_REQUEST, FailureKind.CONTEXT_LENGTH})
_WORD = re.compile(r"[\w.\[\]-]{1,64}", re.ASCII)
"""What a code or a field's name looks like; anything else is a text that nobody vetted."""


@dataclass(frozen=True, slots=True)
class _Facts:
    """What an envelope says, in whatever place: a message, a code, a field, a status, all its machine words, a text
    that tells what happened but is not for the client, what it says of sizes, the error's members themselves, and
    whether there was no body at all."""

    message: str
    code: str | None = None
    param: str | None = None
    status: int | None = None
    words: tuple[str, ...] = ()
    evidence: str = ""
    overflow: Overflow | None = None
    members: JsonObject = field(default_factory=dict)
    silent: bool = False


def classify(profile: Profile, status: int, headers: Mapping[str, str], body: bytes) -> Failure:
    """The failure an error answer stands for."""
    return _failure(profile, status, headers, _facts(_parse(body), body))


def failure_in_body(profile: Profile, body: JsonObject) -> Failure:
    """An error object inside a 200 or a stream; its own status, where it has one, takes the place of HTTP's."""
    facts = _facts(body, b"")
    return _failure(profile, facts.status, {}, facts)


def is_error(body: JsonObject) -> bool:
    """Whether a 200's object is an error in disguise."""
    if body.get("error") or body.get("object") == "error":
        return True
    if not body.get("choices") and (body.get("error_code") or body.get("success") is False):
        return True
    groq = body.get("x_groq")
    return isinstance(groq, dict) and bool(groq.get("error"))


def _failure(profile: Profile, status: int | None, headers: Mapping[str, str], facts: _Facts) -> Failure:
    kind = _kind(profile, status, facts)
    limited = kind in (FailureKind.RATE_LIMITED, FailureKind.OVERLOADED)
    wait = asked_wait(headers, facts.message, facts.members) if limited else retry_after(headers)
    overflow = _overflow(kind, facts)
    param = "max_tokens" if overflow is not None and overflow.of_answer else _word(facts.param)
    return Failure(
        kind,
        OUR_WORDS.get(kind) or vet(facts.message).strip() or _bare_message(kind, status),
        status,
        _word(facts.code) if kind in _SHOWN_CODE else None,
        param if kind is FailureKind.INVALID_REQUEST else None,
        wait,
        overflow,
    )


def _overflow(kind: FailureKind, facts: _Facts) -> Overflow | None:
    """What the kind allows to believe of sizes."""
    if kind is FailureKind.CONTEXT_LENGTH:
        return facts.overflow or Overflow()
    told = kind is FailureKind.INVALID_REQUEST and facts.overflow is not None and facts.overflow.of_answer
    return facts.overflow if told else None


def _bare_message(kind: FailureKind, status: int | None) -> str:
    where = "an error" if status is None else f"status {status}"
    return f"The upstream answered with {where} ({kind.value.replace('_', ' ')})."


def _word(text: str | None) -> str | None:
    return text if text is not None and _WORD.fullmatch(text) else None


def _parse(body: bytes) -> JsonValue:
    try:
        value: JsonValue = loaded(body)
    except orjson.JSONDecodeError:
        return None
    return value[0] if isinstance(value, list) and value else value


def _facts(parsed: JsonValue, body: bytes) -> _Facts:
    if not isinstance(parsed, dict):
        text = body[:500].decode("utf-8", "replace")
        text = "" if "<" in text[:100] else text
        return _Facts(text, overflow=read_overflow(text, {}), silent=not body.strip())
    inner = _inner(parsed)
    holder = inner if isinstance(inner, dict) else parsed
    raw_code, param, metadata = holder.get("code"), holder.get("param"), holder.get("metadata")
    # OpenRouter's own word stands in the metadata, beside a code that is a status.
    named: tuple[JsonValue, ...] = (
        _member(metadata, "error_type"),
        raw_code,
        holder.get("type"),
        holder.get("error_type"),
        holder.get("error_code"),
        holder.get("status"),
    )
    named += tuple(_member(detail, "reason") for detail in _listed(holder.get("details")))
    statuses = (raw_code, holder.get("status_code"), parsed.get("status_code"))
    # Cloudflare numbers its errors.
    words = [str(word) for word in named if isinstance(word, str | int) and not isinstance(word, bool)]
    raw = _member(metadata, "raw")
    message, evidence = message_text(_text(parsed, inner)), message_text(raw)
    return _Facts(
        message,
        raw_code if isinstance(raw_code, str) else None,
        param if isinstance(param, str) else None,
        next((number for number in statuses if isinstance(number, int) and 400 <= number < 600), None),
        tuple(words),
        evidence,
        read_overflow(f"{message} {evidence}", holder),
        holder,
    )


def _inner(parsed: JsonObject) -> JsonValue:
    """The error itself: an object, or its text."""
    for name in ("detail", "x_groq"):
        holder = parsed.get(name)
        if isinstance(holder, dict) and holder.get("error"):
            return holder["error"]
    errors = parsed.get("errors")
    if isinstance(errors, list) and errors and not parsed.get("error"):
        return errors[0]
    return parsed.get("error")


def _text(parsed: JsonObject, inner: JsonValue) -> str:
    """The message, looked for where vendors put it, most specific first."""
    places: list[JsonValue] = [inner.get("message") if isinstance(inner, dict) else inner, parsed.get("message")]
    detail = parsed.get("detail")
    if isinstance(detail, list):
        places.append("; ".join(_detail(entry) for entry in detail[:5]))
    places.append(detail)
    # Apigee's, before Fireworks, and that of Scale's engine.
    for holder, name in ((parsed.get("fault"), "faultstring"), (_member(inner, "content"), "error")):
        places.append(_member(holder, name))
    return next((place for place in places if isinstance(place, str) and place), "")


def _listed(value: JsonValue) -> list[JsonValue]:
    return value[:16] if isinstance(value, list) else []


def _member(holder: JsonValue, name: str) -> JsonValue:
    return holder.get(name) if isinstance(holder, dict) else None


def _detail(entry: JsonValue) -> str:
    if not isinstance(entry, dict):
        return str(entry)
    loc = entry.get("loc")
    where = ".".join(str(step) for step in loc) if isinstance(loc, list) else ""
    return f"{where}: {entry.get('msg', '')}" if where else str(entry.get("msg", ""))


def _kind(profile: Profile, status: int | None, facts: _Facts) -> FailureKind:
    for reading in _readings(profile, status, facts):
        if reading is not None:
            return reading
    if status is None or status >= 500:
        return FailureKind.SERVER
    # Redirects are not followed, so one is an answer that makes no sense.
    return FailureKind.INVALID_REQUEST if status >= 400 else FailureKind.MALFORMED


def _readings(profile: Profile, status: int | None, facts: _Facts) -> Iterable[FailureKind | None]:
    """What each sign says, the most telling first; None where it says nothing."""
    text, overflow = f"{facts.message} {facts.evidence}".strip(), facts.overflow
    common = _of_words(_CODES, facts.words)
    yield _of_words(profile.error_codes, facts.words)
    yield next((kind for pattern, kind in profile.error_patterns if pattern.search(text)), None)
    if _alone_too_large(status, common, facts.message):
        yield FailureKind.TOO_LARGE
    if facts.silent and status is not None:
        yield profile.silent_statuses.get(status)
    if status == 429:
        # Never about the request itself, whatever else it says; only a spent account differs from a rate.
        yield common if common is FailureKind.QUOTA else profile.error_statuses.get(429, FailureKind.RATE_LIMITED)
    yield common
    if overflow is not None and status in _ABOUT_REQUEST:
        yield FailureKind.INVALID_REQUEST if overflow.of_answer else FailureKind.CONTEXT_LENGTH
    if status is not None:
        yield profile.error_statuses.get(status)
        yield _STATUSES.get(status)


def _alone_too_large(status: int | None, common: FailureKind | None, message: str) -> bool:
    """Whether one request wants more than a whole minute's tokens: Groq's 413, or a 429 with OpenAI's words for it.
    A text can do no more here than to have nobody kept waiting."""
    limited = common is FailureKind.RATE_LIMITED
    return (limited and status == 413) or (status == 429 and message.startswith("Request too large for "))


def _of_words(table: Mapping[str, FailureKind], words: Iterable[str]) -> FailureKind | None:
    return next((table[word] for word in words if word in table), None)
