"""Reads from headers and bodies how long a vendor wants the gateway to wait.

Points in time are compared with the response's own `date`, so that no clock is needed.

Sources: the rate-limit pages of OpenAI, Azure OpenAI, Groq, Cerebras, Together, OpenRouter, Gemini and DigitalOcean,
and messages in public issue threads, November 2026.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from providers.json_types import JsonObject

_UNIT = r"(?:milliseconds?|ms|minutes?|mins?|m|seconds?|secs?|s|hours?|h|days?|d)(?![a-z])"
_AMOUNT = re.compile(rf"(\d{{1,9}}(?:\.\d{{1,9}})?) ?({_UNIT})", re.IGNORECASE)
_DURATION = re.compile(rf"(?:\d{{1,9}}(?:\.\d{{1,9}})? ?{_UNIT} ?){{1,5}}", re.IGNORECASE)
_WAIT_IN_TEXT = re.compile(rf"\b(?:try again|retry|wait)\b\D{{1,24}}({_DURATION.pattern})", re.IGNORECASE)
_SECONDS: Mapping[str, float] = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}

_HEADER_SECONDS = re.compile(r"\d{1,15}(?:\.\d{1,15})?", re.ASCII)
_NUMBER = re.compile(r"\d{1,16}(?:\.\d{1,9})?")
_RESET = "x-ratelimit-reset"
_REMAINING = "x-ratelimit-remaining"
_FIRST_POINT_IN_TIME = 1e9
"""Numbers from this number on are read as points in time, in seconds since 1970, because no rate limit takes thirty
years to reset."""
_EPOCH_MILLISECONDS = 1e12
_LONGEST_WAIT = 31 * 86400.0
"""The longest wait in seconds. A longer wait means that the unit was misread."""
_MAX_TEXT = 2000


def read_retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait by `retry-after-ms` or `retry-after`; `None` without either. `headers` has lower-case
    names.

    A date is compared with the response's own `date`, since the vendor's clock may be wrong.
    """
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        text = headers.get(name, "").strip()
        # float() accepts more forms of numbers than HTTP does.
        if _HEADER_SECONDS.fullmatch(text):
            return float(text) / unit
    try:
        wait = parsedate_to_datetime(headers.get("retry-after", "")) - parsedate_to_datetime(headers.get("date", ""))
    except (ValueError, TypeError, OverflowError):
        return None
    return max(0.0, wait.total_seconds())


def read_rate_limit_wait(headers: Mapping[str, str], message: str, error: JsonObject) -> float | None:
    """Return the seconds to wait after a rate limit; `None` if the vendor does not report them.

    `headers` has lower-case names. `message` and `error` are from the body. The order of precedence is: the
    `retry-after` headers, the body, the reset time of the exhausted limit.
    """
    seconds = read_retry_after(headers)
    if seconds is None:
        seconds = _in_body(message, error)
    if seconds is None:
        seconds = _until_reset({**_quoted_headers(error), **headers})
    return seconds


def _in_body(message: str, error: JsonObject) -> float | None:
    """Return the seconds of Gemini's `retryDelay`, or of the time in the message, such as `try again in 6m0s`."""
    details = error.get("details")
    for detail in details if isinstance(details, list) else ():
        delay = detail.get("retryDelay") if isinstance(detail, dict) else None
        if isinstance(delay, str) and _DURATION.fullmatch(delay):
            return _duration(delay)
    match = _WAIT_IN_TEXT.search(message[:_MAX_TEXT])
    return _duration(match[1]) if match else None


def _duration(text: str) -> float:
    return sum(float(amount) * _unit(unit.lower()) for amount, unit in _AMOUNT.findall(text))


def _unit(word: str) -> float:
    return 0.001 if word.startswith(("ms", "milli")) else _SECONDS[word[0]]


def _quoted_headers(error: JsonObject) -> dict[str, str]:
    """Return the headers of the vendor behind OpenRouter, which OpenRouter quotes in the error."""
    metadata = error.get("metadata")
    quoted = metadata.get("headers") if isinstance(metadata, dict) else None
    return {name.lower(): str(value) for name, value in quoted.items()} if isinstance(quoted, dict) else {}


def _until_reset(headers: Mapping[str, str]) -> float | None:
    """Return the seconds until the last of the exhausted limits resets. A single limit without a remaining count is
    taken to be exhausted."""
    resets = {name.removeprefix(_RESET): text for name, text in headers.items() if name.startswith(_RESET)}
    waits = [
        wait
        for limit_name, text in resets.items()
        if _is_exhausted(headers.get(_REMAINING + limit_name), alone=len(resets) == 1)
        and (wait := _wait(text, headers.get("date", ""))) is not None
    ]
    return max(waits, default=None)


def _is_exhausted(remaining: str | None, *, alone: bool) -> bool:
    """Return whether a limit is exhausted. Without a remaining count, return whether it is the only limit."""
    try:
        remaining_count = float(remaining or "")
    except ValueError:
        return alone
    # Azure sends -1 for an unknown count.
    return alone if remaining_count < 0 else remaining_count == 0


def _wait(text: str, date: str) -> float | None:
    """Return the seconds to wait by a reset header in any of its forms: seconds, a duration, or a point in time."""
    if _DURATION.fullmatch(text):
        return _plausible(_duration(text))
    number = float(text) if _NUMBER.fullmatch(text) else None
    if number is not None and number < _FIRST_POINT_IN_TIME:
        return _plausible(number)
    until, response_time = _timestamp(text) if number is None else _seconds(number), _timestamp(date)
    return None if until is None or response_time is None else _plausible(max(0.0, until - response_time))


def _seconds(epoch: float) -> float:
    return epoch / 1000 if epoch >= _EPOCH_MILLISECONDS else epoch


def _plausible(seconds: float) -> float | None:
    return seconds if seconds <= _LONGEST_WAIT else None


def _timestamp(text: str) -> float | None:
    """Return the seconds since 1970 of a date in HTTP's form or in ISO 8601; `None` for any other text."""
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
