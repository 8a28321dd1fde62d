"""The time limits of one attempt."""

from typing import Final

from config.sections.section import built_in
from config.table.table_schema import TimeoutsSection
from providers.frozen_record import record
from providers.target import Timeouts

_ANSWER_TIMEOUT: Final = built_in(TimeoutsSection, "answer", float)


@record
class AttemptLimits:
    """Seconds that an attempt may take, and until a whole answer begins; None where the request's deadline holds."""

    total: float | None
    answer: float | None


UNLIMITED: Final = AttemptLimits(None, None)
"""Of an attempt for which nothing but the request's deadline holds, as for most."""


def attempt_limits(timeouts: Timeouts, total: float, share: float | None = None) -> AttemptLimits:
    """Return the limits of an attempt of a request with `total` seconds. Where another target may be called after it,
    it gets a `share` of what is left, in seconds."""
    limit = None if timeouts.total >= total else timeouts.total
    if share is None:
        return UNLIMITED if limit is timeouts.answer is None else AttemptLimits(limit, timeouts.answer)
    # A whole answer takes at least as long as its first token.
    answer = max(_ANSWER_TIMEOUT, timeouts.first_event) if timeouts.answer is None else timeouts.answer
    return AttemptLimits(share if limit is None else min(limit, share), answer)
