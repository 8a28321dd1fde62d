"""The time limits of one attempt."""

from config.defaults import ANSWER_TIMEOUT
from providers.frozen_record import record
from providers.target import Timeouts
from proxy.dispatch.retry_rules import RetryRules


@record
class AttemptLimits:
    """Seconds that an attempt may take, and until a whole answer begins; None where the request's deadline holds."""

    total: float | None
    answer: float | None


def attempt_limits(
    timeouts: Timeouts, total: float, remaining: float, another: bool, rules: RetryRules
) -> AttemptLimits:
    """Return the limits of an attempt of a request with `total` seconds, of which `remaining` are left. A share is kept
    back only where another target may be called after it."""
    limit = None if timeouts.total >= total else timeouts.total
    if not another:
        return AttemptLimits(limit, timeouts.answer)
    share = rules.share * remaining
    # A whole answer takes at least as long as its first token.
    answer = max(ANSWER_TIMEOUT, timeouts.first_event) if timeouts.answer is None else timeouts.answer
    return AttemptLimits(share if limit is None else min(limit, share), answer)
