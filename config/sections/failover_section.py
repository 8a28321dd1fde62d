"""The sections `retries`, `retries.budget` and `circuit_breaker` of a deployment, and `hedge` of defaults, vendors,
models and routes."""

import re
from decimal import Decimal
from typing import Annotated, Final

from pydantic import Field

from config.sections.section import Section, SwitchableSection, setting
from config.sections.value_types import (
    DURATION_PATTERN,
    REFERENCE_PATTERN,
    Attempts,
    AutoOrOff,
    Checked,
    Dollars,
    Failures,
    Ratio,
    Referable,
    Repeats,
    Safety,
    SameDeployment,
    Timeout,
    refuse,
    to_seconds,
)


class RetryBudgetSection(Section):
    """What pays for repeats. Each name of the table has one for each team, with the settings of the deployment that a
    request asks first. Every attempt after a failure costs 1, but for those after which the vendor cannot have read the
    request, and for the first that goes to another deployment of which the team knows nothing bad: one whose circuit is
    closed, that does not hang, and that has not failed the team twice since it last answered it, or in the last 30 s.
    Each is inherited by itself."""

    share: Ratio = setting("Gained with each request of the name.", built_in=0.2, resolved=False)
    per_second: Repeats = setting("Gained with each second.", built_in=1, resolved=False)
    least: Repeats = setting(
        "Held by a name that is new, or had few requests; others hold up to what 10 s bring.",
        built_in=10,
        resolved=False,
    )


class RetriesSection(Section):
    """When a failed attempt is followed by another. Each is inherited by itself."""

    attempts: Attempts = setting("Attempts of one request at most, the first included.", built_in=3)
    safety: Safety = setting(
        "What may be tried again after this deployment failed, as long as the client got no content: safe, "
        "whatever may pass; strict, only what cannot have been generated already; off, nothing.",
        built_in="safe",
    )
    same_deployment: SameDeployment = setting(
        "How often an attempt that failed is repeated here before another deployment is asked, where that "
        "may help and this one may be asked at once or said when. Paid for by the budget. "
        "Built in: {built_in}; where there is no other, an attempt is repeated once.",
        built_in=0,
    )
    budget: RetryBudgetSection = setting("What pays for repeats.", default=RetryBudgetSection())


class CircuitBreakerSection(Section):
    """When the circuit of a deployment opens, and for how long. After a cooldown it gets one request at a time, until
    one is answered. What a vendor says itself (Retry-After) counts instead, up to 60s. Each is inherited by itself."""

    failures: Failures = setting(
        "Failures in a row that open it, as do half of twice as many attempts within 30 s.", built_in=5, resolved=False
    )
    cooldown: Timeout = setting(
        "How long it stays open, a fifth more or less, and how long a deployment is skipped that says "
        "that it limits its rate and not for how long, unless it answers others meanwhile (1s).",
        built_in="5s",
        resolved=False,
    )
    longest_cooldown: Timeout = setting(
        "While the request after a cooldown fails too, each is twice as long as the last, up to this. "
        "Built in: {built_in}, or cooldown where that is longer.",
        # No longer than the first: a trial after each costs one request, and a primary that is back is to be used.
        built_in="5s",
        resolved=False,
    )


MOST_TIMES: Final = 100.0
_TIMES: Final = r"[0-9]{1,3}(\.[0-9]{1,3})?x"
_SHARE: Final = r"^[0-9]{1,3}(\.[0-9]{1,3})?%$"


def to_share(value: object) -> object:
    """Convert text such as `3%` to a share of 1. Other values are returned unchanged."""
    if not isinstance(value, str):
        return value
    if not re.fullmatch(_SHARE, value):
        raise refuse("must be a share, such as 3% or 0.03")
    return float(Decimal(value[:-1]) / 100)


_Share = Annotated[float, Field(gt=0, le=1), Referable(to_share, _SHARE, "share")]
_Burst = Annotated[int, Field(ge=1, le=10_000), Referable()]


def times_of(text: str) -> float | None:
    """Return the factor of a text such as `1.5x`; `None` for a duration."""
    return float(text[:-1]) if text.endswith("x") else None


def seconds_of(text: str) -> float:
    """Return the seconds of a duration such as `800ms`."""
    seconds = to_seconds(text)
    return seconds if isinstance(seconds, float) else float(str(seconds))


def _check_after(text: str) -> str:
    if re.fullmatch(_TIMES, text):
        if not 1 <= float(text[:-1]) <= MOST_TIMES:
            raise refuse(f"must be from 1x to {MOST_TIMES:g}x")
    elif not re.fullmatch(DURATION_PATTERN, text) or not 0 < seconds_of(text) <= 600:
        raise refuse("must be a multiple of the 95th percentile, such as 1.5x, or a duration up to 10m, such as 800ms")
    return text


_After = Annotated[str, Checked(_check_after, {"pattern": rf"^({_TIMES})$|{DURATION_PATTERN}|{REFERENCE_PATTERN}"})]


class HedgeSection(SwitchableSection):
    """When a request whose first deployment is late gets a second attempt at another one. The content that comes first
    goes to the client, and the other call is cancelled and booked. `auto` and `off` may be written as the bare word.
    The nearest level that has the section decides all of it, as with `affinity`. It holds for completions of a name
    with two or more deployments; not with a hosted tool, for a stored response, for one that needs several calls, or
    under `retries.safety: strict` or `off`. No second attempt waits: without a free slot, room
    in limits and budgets, or a healthy deployment it does not begin."""

    mode: AutoOrOff = Field(default="auto", description="Whether there are second attempts (auto) or none (off).")
    after: _After = Field(
        default="1.5x",
        description="How long the first deployment may be without content: a multiple of the 95th percentile of its "
        "time to the first content, 300ms at least, known from 50 responses on; or a duration.",
    )
    share: _Share = Field(
        default=0.03,
        description="The most second attempts, as a share of the requests of the name, of each team in each process.",
    )
    burst: _Burst = Field(default=20, description="How many of them that share lets add up for later.")
    usd_per_hour: Dollars = Field(
        default=1.0,
        description="The most that cancelled calls of the name may cost in each hour, in each process. If the vendor "
        "may go on after a cancelled call, it counts with all the tokens that it may generate. A call without a price "
        "costs nothing.",
    )
