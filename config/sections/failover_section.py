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
    """The budget for retries. Each name of the configuration has one for each team, with the settings of the first
    deployment that a request tries. Every attempt after a failure costs 1, with two exceptions. An attempt is free if
    the vendor cannot have read the request before the failure. The first attempt at another deployment is free if that
    deployment looks healthy to the team: its circuit is closed, it does not hang, and it has not failed the team twice
    in the last 30 s, or since its last response to the team. Each setting is inherited by itself."""

    share: Ratio = setting("Added with each request of the name.", built_in=0.2, resolved=False)
    per_second: Repeats = setting("Added with each second.", built_in=1, resolved=False)
    least: Repeats = setting(
        "The budget of a name that is new, or had few requests. Others save up to the amount that 10 s add.",
        built_in=10,
        resolved=False,
    )


class RetriesSection(Section):
    """When a failed attempt is followed by another. Each setting is inherited by itself."""

    attempts: Attempts = setting("The most attempts of one request, including the first.", built_in=3)
    safety: Safety = setting(
        "Which failures of this deployment are followed by another attempt, as long as the client got no content: "
        "safe, every failure that may pass; strict, only failures after which nothing can have been generated; "
        "off, none.",
        built_in="safe",
    )
    same_deployment: SameDeployment = setting(
        "How often a failed attempt is repeated here before another deployment is tried, if that may help and "
        "this deployment may be tried at once or has reported when. The budget pays for it. Built in: {built_in}; "
        "if there is no other deployment, an attempt is repeated once.",
        built_in=0,
    )
    budget: RetryBudgetSection = setting("The budget for retries.", default=RetryBudgetSection())


class CircuitBreakerSection(Section):
    """When the circuit of a deployment opens, and for how long. After a cooldown the deployment gets one request at a
    time, until one succeeds. The vendor's own time (Retry-After) counts instead, up to 60s. Each setting is inherited
    by itself."""

    failures: Failures = setting(
        "Failures in a row that open the circuit. Failures of half the attempts also open it, if there were at "
        "least twice as many attempts within 30 s.",
        built_in=5,
        resolved=False,
    )
    cooldown: Timeout = setting(
        "How long the circuit stays open, a fifth more or less. Also how long a deployment is skipped that limits "
        "its rate without reporting for how long, unless it responds to other requests meanwhile (1s).",
        built_in="5s",
        resolved=False,
    )
    longest_cooldown: Timeout = setting(
        "While the request after a cooldown fails too, each cooldown is twice as long as the last, up to this time. "
        "Built in: {built_in}, or cooldown if that is longer.",
        # This is no longer than the first cooldown, because a trial costs only one request, and a primary should be
        # used once it works.
        built_in="5s",
        resolved=False,
    )


MOST_FACTOR: Final = 100.0
_FACTOR: Final = r"[0-9]{1,3}(\.[0-9]{1,3})?x"
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


def factor_of(text: str) -> float | None:
    """Return the factor of a text such as `1.5x`; `None` for a duration."""
    return float(text[:-1]) if text.endswith("x") else None


def seconds_of(text: str) -> float:
    """Return the seconds of a duration such as `800ms`."""
    seconds = to_seconds(text)
    return seconds if isinstance(seconds, float) else float(str(seconds))


def _check_after(text: str) -> str:
    if re.fullmatch(_FACTOR, text):
        if not 1 <= float(text[:-1]) <= MOST_FACTOR:
            raise refuse(f"must be from 1x to {MOST_FACTOR:g}x")
    elif not re.fullmatch(DURATION_PATTERN, text) or not 0 < seconds_of(text) <= 600:
        raise refuse("must be a multiple of the 95th percentile, such as 1.5x, or a duration up to 10m, such as 800ms")
    return text


_After = Annotated[str, Checked(_check_after, {"pattern": rf"^({_FACTOR})$|{DURATION_PATTERN}|{REFERENCE_PATTERN}"})]


class HedgeSection(SwitchableSection):
    """When a request whose first deployment is late gets a second attempt at another deployment. The first content that
    comes goes to the client; the other call is cancelled, and its cost is recorded. `auto` and `off` may be written as
    the bare word. The nearest level that has the section decides all of it, as with `affinity`. It applies to
    completions of a name with two or more deployments. It does not apply with a hosted tool, for a stored response, for
    a request that needs several calls, or under `retries.safety: strict` or `off`. No second attempt waits: it does not
    begin without a free slot, room in limits and budgets, and a healthy deployment."""

    mode: AutoOrOff = Field(default="auto", description="Whether there are second attempts (auto) or none (off).")
    after: _After = Field(
        default="1.5x",
        description="How long the first deployment may be without content: a multiple of the 95th percentile of its "
        "time to the first content (300ms at least, known from 50 responses on), or a duration.",
    )
    share: _Share = Field(
        default=0.03,
        description="The most second attempts, as a share of the requests of the name, of each team in each process.",
    )
    burst: _Burst = Field(default=20, description="How many unused second attempts may be saved for later.")
    usd_per_hour: Dollars = Field(
        default=1.0,
        description="The most that cancelled calls of the name may cost in each hour, in each process. If the vendor "
        "may go on after a cancelled call, the call counts with all the tokens that it may generate. A call without a "
        "price costs nothing.",
    )
