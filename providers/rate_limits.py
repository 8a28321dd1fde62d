"""How long a vendor asks to be left alone, in whatever place and unit it says so.

Never a decision to wait, and never a clock: points in time are held against the answer's own `date`.

Sources: the rate-limit pages of OpenAI, Azure OpenAI, Groq, Cerebras, Together, OpenRouter, Gemini and DigitalOcean,
and messages in public issue threads, November 2026.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from providers.failure import retry_after
from providers.unified import JsonObject

_UNIT = r"(?:milliseconds?|ms|minutes?|mins?|m|seconds?|secs?|s|hours?|h|days?|d)(?![a-z])"
_AMOUNT = re.compile(rf"(\d{{1,9}}(?:\.\d{{1,9}})?) ?({_UNIT})", re.IGNORECASE)
_DURATION = re.compile(rf"(?:\d{{1,9}}(?:\.\d{{1,9}})? ?{_UNIT} ?){{1,5}}", re.IGNORECASE)
_SPOKEN = re.compile(rf"\b(?:try again|retry|wait)\b\D{{1,24}}({_DURATION.pattern})", re.IGNORECASE)
_SECONDS: Mapping[str, float] = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}

_NUMBER = re.compile(r"\d{1,16}(?:\.\d{1,9})?")
_RESET = "x-ratelimit-reset"
_REMAINING = "x-ratelimit-remaining"
_EPOCH = 1e9
"""Numbers from here on are points in time: no bucket takes thirty years to fill."""
_EPOCH_MILLISECONDS = 1e12
_MOST = 31 * 86400.0
"""Seconds; what is further off is a misread unit."""
_MAX_TEXT = 2000


def asked_wait(headers: Mapping[str, str], message: str, error: JsonObject) -> float | None:
    """Seconds until a vendor that is over its limit wants to be asked again, None where it does not say.

    `headers` has lower-case names; `message` and `error` are the body's. The most telling place wins: the headers made
    for it, then the body's words, then the bucket that is empty.
    """
    told = retry_after(headers)
    if told is None:
        told = _in_body(message, error)
    if told is None:
        told = _until_reset({**_quoted_headers(error), **headers})
    return told


def _in_body(message: str, error: JsonObject) -> float | None:
    """Gemini's `retryDelay`, or what the message says: `try again in 6m0s`, `wait 52 seconds`."""
    details = error.get("details")
    for detail in details if isinstance(details, list) else ():
        delay = detail.get("retryDelay") if isinstance(detail, dict) else None
        if isinstance(delay, str) and _DURATION.fullmatch(delay):
            return _duration(delay)
    spoken = _SPOKEN.search(message[:_MAX_TEXT])
    return _duration(spoken[1]) if spoken else None


def _duration(text: str) -> float:
    return sum(float(amount) * _unit(unit.lower()) for amount, unit in _AMOUNT.findall(text))


def _unit(word: str) -> float:
    return 0.001 if word.startswith(("ms", "milli")) else _SECONDS[word[0]]


def _quoted_headers(error: JsonObject) -> dict[str, str]:
    """Headers of the vendor behind the vendor (OpenRouter)."""
    metadata = error.get("metadata")
    quoted = metadata.get("headers") if isinstance(metadata, dict) else None
    return {name.lower(): str(value) for name, value in quoted.items()} if isinstance(quoted, dict) else {}


def _until_reset(headers: Mapping[str, str]) -> float | None:
    """Until the last of the empty buckets is full again; of a bucket that is alone nothing need be said."""
    resets = {name.removeprefix(_RESET): text for name, text in headers.items() if name.startswith(_RESET)}
    waits = [
        wait
        for bucket, text in resets.items()
        if _empty(headers.get(_REMAINING + bucket), alone=len(resets) == 1)
        and (wait := _wait(text, headers.get("date", ""))) is not None
    ]
    return max(waits, default=None)


def _empty(remaining: str | None, *, alone: bool) -> bool:
    """Whether a bucket is known to be empty, or may be taken to be because there is no other."""
    try:
        left = float(remaining or "")
    except ValueError:
        return alone
    # Azure says -1 where it does not know.
    return alone if left < 0 else left == 0


def _wait(text: str, date: str) -> float | None:
    """A reset header in any of its forms: seconds, a duration, or a point in time."""
    if _DURATION.fullmatch(text):
        return _sane(_duration(text))
    number = float(text) if _NUMBER.fullmatch(text) else None
    if number is not None and number < _EPOCH:
        return _sane(number)
    until, answered = _moment(text) if number is None else _seconds(number), _moment(date)
    return None if until is None or answered is None else _sane(max(0.0, until - answered))


def _seconds(epoch: float) -> float:
    return epoch / 1000 if epoch >= _EPOCH_MILLISECONDS else epoch


def _sane(seconds: float) -> float | None:
    return seconds if seconds <= _MOST else None


def _moment(text: str) -> float | None:
    """Seconds since 1970 of a date as HTTP or ISO 8601 writes it."""
    for parse in (parsedate_to_datetime, datetime.fromisoformat):
        try:
            moment = parse(text)
        except (ValueError, OverflowError, TypeError, IndexError):
            continue
        zoned = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        try:
            return zoned.timestamp()
        except (OverflowError, ValueError):
            return None
    return None
