"""The time that one try of a request has. Never a clock, and never who is asked."""

from dataclasses import dataclass

from providers.dialect import Timeouts
from proxy.retries import RetryRules

ANSWER = 120.0
"""Seconds that a whole answer may take to begin while another target could be asked, where no operator says it; no less
than what a stream may take to begin."""


@dataclass(frozen=True, slots=True)
class Turn:
    """Seconds that a try has in all, and until a whole answer has begun; None where the request's deadline is all."""

    limit: float | None
    answer: float | None


def turn(timeouts: Timeouts, total: float, remaining: float, another: bool, rules: RetryRules) -> Turn:
    """The time for a try of a request that may take `total` seconds, of which so many are left. A share is kept back
    only where another target may be asked after it, and nobody is hurried for less than that."""
    limit = None if timeouts.total >= total else timeouts.total
    if not another:
        return Turn(limit, timeouts.answer)
    share = rules.share * remaining
    # No answer is whole before its first word.
    answer = max(ANSWER, timeouts.first_event) if timeouts.answer is None else timeouts.answer
    return Turn(share if limit is None else min(limit, share), answer)
