"""The responses to requests beyond a limit or a budget, and the headers about limits.

Names, units and order are the same as in OpenAI's API: whole numbers, and Go's durations until the whole limit is
available again (page "Rate limits" of OpenAI's platform, and responses that users published; November 2026). OpenAI's
SDKs wait exactly as long as `retry-after-ms` requests. Clients with the same wait would all return at the same time, so
each refusal has a different wait.
"""

from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from math import ceil
from typing import Final

from providers.failure import Failure, FailureKind
from proxy.errors import NO_RETRY, ErrorFacts, FieldProblem, GatewayError, invalid_request, known_wait
from proxy.limits.limit import Unit, amount_words
from proxy.limits.limit_views import Exceeded, LimitKind
from proxy.limits.reservation import HeaderFacts
from proxy.request_outcomes import RefusingLimit

MAX_SPREAD: Final = 0.25
"""The largest random part of a wait that is added to the wait. Only the first LONGEST_RETRY seconds of a wait count, so
that a wait for the end of a month does not become a week longer."""

QUOTA: Final = "insufficient_quota"

LONGEST_RETRY: Final = 60.0
"""The longest wait in seconds after which a client should retry. Anthropic's SDKs (2.12) would wait for any requested
time, even until the end of the month."""


def limit_exceeded(exceeded: Exceeded, facts: HeaderFacts, zone: tzinfo, draw: Callable[[], float]) -> GatewayError:
    """Return the error for a request beyond a limit. `facts` are the header values of all its limits. `draw` returns a
    number from 0 to 1."""
    budget = exceeded.kind is LimitKind.BUDGET
    wait = _retry_milliseconds(exceeded, draw)
    hopeless = not exceeded.passing and (wait > 1000 * LONGEST_RETRY or budget)
    headers = known_wait(wait, hopeless) | limit_headers(facts)
    here = _left_here(exceeded)
    if here is not None and (left := f"x-ratelimit-remaining-{exceeded.unit.value}") in headers:
        headers[left] = str(min(here, int(headers[left])))
    kind, code = (QUOTA, QUOTA) if budget else (exceeded.unit.value, "rate_limit_exceeded")
    return GatewayError(ErrorFacts(429, kind, code, _message(exceeded, wait / 1000, zone), headers=headers))


def target_limited(exceeded: Exceeded, zone: tzinfo, draw: Callable[[], float]) -> Failure:
    """Return the failure of a call that was not made because of a limit of its deployment, model or vendor."""
    wait = _retry_milliseconds(exceeded, draw) / 1000
    message = f"{_message(exceeded, wait, zone)} {_OF_ALL}"
    unit = QUOTA if exceeded.kind is LimitKind.BUDGET else exceeded.unit.value
    return Failure(FailureKind.RATE_LIMITED, message, code=unit, retry_after=wait, unsent=True, ours=True)


def refusing_limit(exceeded: Exceeded) -> RefusingLimit:
    """Return the name of a limit for the log and the operator's page."""
    period = "" if exceeded.period is None else exceeded.period.value
    amount = amount_words(exceeded.unit, exceeded.limit)
    return RefusingLimit(exceeded.scope, exceeded.kind.value, exceeded.unit.value, period, amount)


def no_price(scope: str, model: str) -> GatewayError:
    """Return the error for a model without a price that a budget in USD refuses. It has the code of a spent budget,
    which clients know, and forbids a retry."""
    message = (
        f"The budget of {scope} is in USD, and the price of '{model}' is not known here: use a model with a price, or "
        "ask the gateway's operator to configure one."
    )
    return GatewayError(ErrorFacts(429, QUOTA, QUOTA, message, "model", headers=NO_RETRY))


def user_required() -> GatewayError:
    """Return the error for a request without an end user, if each user has limits."""
    message = (
        "'user' is missing ('metadata.user_id' on /v1/messages): the gateway's operator has limited each end user, and "
        "requires requests to name one."
    )
    return invalid_request((FieldProblem(("user",), message),))


def budget_unread() -> GatewayError:
    """Return the error for a request under a budget while a gateway that has just started cannot read the spending."""
    message = "The spending of a budget cannot be read at the moment. Try again shortly."
    return GatewayError(ErrorFacts(503, "server_error", "overloaded", message, headers={"retry-after": "2"}))


def limit_headers(facts: HeaderFacts) -> dict[str, str]:
    """Return the response headers about the tightest limits of requests and of tokens."""
    lines = limit_lines(facts).split("\r\n")[:-1]
    return dict([line.split(": ", 1) for line in lines])


def limit_lines(facts: HeaderFacts) -> str:
    """Return the headers of `limit_headers` as lines of an HTTP head, the only form that most responses need."""
    requests, tokens, of_requests, of_tokens = facts
    lines = ""
    if requests is not None:
        left, limit, reset = requests
        lines = (
            f"x-ratelimit-limit-requests: {limit}\r\nx-ratelimit-remaining-requests: {left}\r\n"
            f"x-ratelimit-reset-requests: {go_duration(reset)}\r\nx-ratelimit-scope-requests: {of_requests}\r\n"
        )
    if tokens is not None:
        left, limit, reset = tokens
        lines += (
            f"x-ratelimit-limit-tokens: {limit}\r\nx-ratelimit-remaining-tokens: {left}\r\n"
            f"x-ratelimit-reset-tokens: {go_duration(reset)}\r\nx-ratelimit-scope-tokens: {of_tokens}\r\n"
        )
    return lines


@lru_cache(maxsize=1024)
def cached_limit_lines(facts: HeaderFacts) -> str:
    """Return the result of `limit_lines`, cached for unused limits, because most teams have the same limits."""
    return limit_lines(facts)


def _retry_milliseconds(exceeded: Exceeded, draw: Callable[[], float]) -> int:
    """Return the milliseconds after which one of several waiting clients should retry. If the same request may pass
    soon, the wait is short even if the period ends only at the end of a month."""
    wait = min(exceeded.wait, LONGEST_RETRY) if exceeded.passing else exceeded.wait
    return max(1, _milliseconds(wait + min(wait, LONGEST_RETRY) * MAX_SPREAD * draw()))


def _left_here(exceeded: Exceeded) -> int | None:
    """Return the units that this process has left of a limit that is not used up; `None` if no other process has units
    of the limit."""
    if exceeded.elsewhere:
        return max(0, exceeded.limit - exceeded.used - exceeded.elsewhere)
    return exceeded.alone


def _message(exceeded: Exceeded, wait: float, zone: tzinfo) -> str:
    scope, used, requested = exceeded.scope, exceeded.used, exceeded.requested
    if exceeded.kind is LimitKind.CONCURRENT:
        alone = "" if exceeded.alone is None else _alone(exceeded.unit, exceeded.alone)
        return f"Too many requests of {scope} at once: Limit {exceeded.limit}, Used {used}.{alone} {_LATER}"
    period = "" if exceeded.period is None else f" per {exceeded.period.value}"
    if exceeded.kind is LimitKind.RATE:
        burst = "" if exceeded.burst is None else f" ({exceeded.burst} in one go)"
        alone = "" if exceeded.alone is None else _alone(exceeded.unit, exceeded.alone)
        return (
            f"Rate limit reached for {scope} on {exceeded.unit.value}{period}: Limit {exceeded.limit}{burst}, "
            f"Used {used}, Requested {requested}.{alone} Please try again in {go_duration(wait)}."
        )
    until = "" if exceeded.ends is None else f" It begins anew at {_moment(exceeded.ends, zone)}."
    advice = _advice(exceeded) if exceeded.unspent else ""
    if exceeded.kind is LimitKind.QUOTA:
        return (
            f"Limit reached for {scope} on {exceeded.unit.value}{period}: Limit {exceeded.limit}, Used {used}, "
            f"Requested {requested}.{advice}{until}"
        )
    if not exceeded.unspent:
        of = f"{amount_words(exceeded.unit, used)} of {amount_words(exceeded.unit, exceeded.limit)}"
        return f"The budget of {scope}{period} is spent: {of}.{until}"
    return f"The budget of {scope}{period} has too little left for this request: {_account(exceeded)}.{advice}{until}"


_OF_ALL: Final = "The gateway's operator has set this limit for all teams together."
_LATER: Final = "Please try again later."
_ELSEWHERE: Final = (
    " What is left is held for a moment by other processes of the gateway, which give back what they do not use. "
    "Please try again."
)


def _advice(exceeded: Exceeded) -> str:
    """Return a sentence about the requests that pass before the period ends, for a limit that is not used up."""
    unit, left = exceeded.unit, max(0, exceeded.limit - exceeded.used)
    if exceeded.alone is not None:
        left = exceeded.alone
        advice = _alone(unit, left)
    elif exceeded.elsewhere:
        return _ELSEWHERE
    elif exceeded.passing:
        advice = " It may pass when running requests have ended."
    else:
        advice = f" Left: {amount_words(unit, left)}."
    if unit is Unit.REQUESTS or exceeded.alone == 0:
        return advice
    when = "" if left or exceeded.alone is not None else " when running requests have ended"
    return f"{advice} One with a smaller `max_tokens` may pass{when}."


def _alone(unit: Unit, left: int) -> str:
    """Return a sentence that explains why a limit refuses although all processes together have not used it up."""
    has = amount_words(unit, left)
    return f" The gateway's processes count alone until they reach each other again; this one has {has} left."


def _account(exceeded: Exceeded) -> str:
    """Return the used and reserved units of a budget, and the units that the request would reserve, in words."""
    unit, reserved = exceeded.unit, exceeded.reserved
    parts = (
        f"{amount_words(unit, exceeded.used - reserved)} of {amount_words(unit, exceeded.limit)} used",
        f"{amount_words(unit, reserved)} reserved by running requests",
        *([f"{amount_words(unit, exceeded.elsewhere)} held by other processes"] if exceeded.elsewhere else ()),
        f"and this request would hold {amount_words(unit, exceeded.requested)}",
    )
    return ", ".join(parts)


def _moment(seconds: int, zone: tzinfo) -> str:
    when = datetime.fromtimestamp(seconds, UTC).astimezone(zone)
    return f"{when:%Y-%m-%d %H:%M} {when.tzname() or 'UTC'}"


_ROUNDED: Final = 1e-6
"""The most milliseconds by which rounding errors make a sum of intervals too large."""


def go_duration(seconds: float) -> str:
    """Return seconds in the form of Go's durations, rounded up to milliseconds: 12ms, 1.5s, 6m0s, 1h2m3s."""
    milliseconds = _milliseconds(seconds)
    if milliseconds < 1000:
        return f"{milliseconds}ms" if milliseconds > 0 else "0ms"
    if milliseconds < 60_000:
        return f"{milliseconds / 1000:g}s"  # The format's six digits suffice for a value below 60 s in milliseconds.
    minutes, left = divmod(milliseconds, 60_000)
    if minutes < 60:
        return f"{minutes}m{left / 1000:g}s"
    return f"{minutes // 60}h{minutes % 60}m{left / 1000:g}s"


def _milliseconds(seconds: float) -> int:
    """Return seconds as milliseconds, rounded up."""
    return ceil(seconds * 1000 - _ROUNDED)
