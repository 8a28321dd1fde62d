"""The sections `retries`, `retries.budget` and `circuit_breaker` of a deployment."""

from pydantic import Field

from config import defaults
from config.defaults import duration
from config.sections.section import Section
from config.sections.value_types import Attempts, Failures, Ratio, Repeats, Safety, SameDeployment, Timeout


class RetryBudgetSection(Section):
    """What pays for repeats. Each name of the table has one for each team, with the settings of the deployment that a
    request asks first. Every attempt after a failure costs 1, but for those after which the vendor cannot have read the
    request, and for the first that goes to another deployment of which the team knows nothing bad: one whose circuit is
    closed, that does not hang, and that has not failed the team twice since it last answered it, or in the last 30 s.
    Each is inherited by itself."""

    share: Ratio = Field(
        default=None,
        description=f"Gained with each request of the name. Built in: {defaults.RETRY_BUDGET_SHARE:g}.",
    )
    per_second: Repeats = Field(
        default=None, description=f"Gained with each second. Built in: {defaults.RETRY_BUDGET_PER_SECOND:g}."
    )
    least: Repeats = Field(
        default=None,
        description="Held by a name that is new, or had few requests; others hold up to what 10 s bring. "
        f"Built in: {defaults.RETRY_BUDGET_LEAST:g}.",
    )


class RetriesSection(Section):
    """When a failed attempt is followed by another. Each is inherited by itself."""

    attempts: Attempts = Field(
        default=None,
        description=f"Attempts of one request at most, the first included. Built in: {defaults.ATTEMPTS}.",
    )
    safety: Safety = Field(
        default=None,
        description="What may be tried again after this deployment failed, as long as the client got no content: safe, "
        "whatever may pass; strict, only what cannot have been generated already; off, nothing. "
        f"Built in: {defaults.RETRY_SAFETY}.",
    )
    same_deployment: SameDeployment = Field(
        default=None,
        description="How often an attempt that failed is repeated here before another deployment is asked, where that "
        "may help and this one may be asked at once or said when. Paid for by the budget. "
        f"Built in: {defaults.SAME_DEPLOYMENT_RETRIES}; where there is no other, an attempt is repeated once.",
    )
    budget: RetryBudgetSection = Field(default=RetryBudgetSection(), description="What pays for repeats.")


class CircuitBreakerSection(Section):
    """When the circuit of a deployment opens, and for how long. After a cooldown it gets one request at a time, until
    one is answered. What a vendor says itself (Retry-After) counts instead, up to 60s. Each is inherited by itself."""

    failures: Failures = Field(
        default=None,
        description="Failures in a row that open it, as do half of twice as many attempts within 30 s. "
        f"Built in: {defaults.BREAKER_FAILURES}.",
    )
    cooldown: Timeout = Field(
        default=None,
        description="How long it stays open, a fifth more or less, and how long a deployment is skipped that says "
        "that it limits its rate and not for how long, unless it answers others meanwhile (1s). "
        f"Built in: {duration(defaults.COOLDOWN)}.",
    )
    longest_cooldown: Timeout = Field(
        default=None,
        description="While the request after a cooldown fails too, each is twice as long as the last, up to this. "
        f"Built in: {duration(defaults.LONGEST_COOLDOWN)}, or cooldown where that is longer.",
    )
