"""What a call used whose answer the client does not get: vendors bill it, so it counts.

What a vendor reported counts as reported. Of a call that ended before anything was reported, because its client left or
its time was over, the prompt counts as its estimate. What a vendor refused is not billed.
"""

import asyncio
from typing import Final

from providers.completion import Usage
from providers.dialect import UpstreamRequest
from providers.emulation.estimate_missing_usage import BYTES_PER_TOKEN
from providers.failure import FailureKind, UpstreamError
from proxy.deadlines import DeadlinePassed

_GENERATED: Final = frozenset({FailureKind.MALFORMED, FailureKind.NONCONFORMING, FailureKind.TRUNCATED})
"""Kinds of failures that a good status may turn out to be."""


def is_billed(error: BaseException, sent: UpstreamRequest) -> bool:
    """Return whether a vendor may bill a call that ended with this error before its usage was known."""
    if not sent.written:
        return False
    if not isinstance(error, UpstreamError):
        # A connection that ends as the client's: the vendor's have become UpstreamErrors.
        return isinstance(error, asyncio.CancelledError | ConnectionError | DeadlinePassed)
    failure = error.failure
    if error.counted:
        return False
    if failure.kind is FailureKind.TIMEOUT:
        return failure.status is None and not failure.unsent
    good = failure.status is not None and 200 <= failure.status < 300
    return good and failure.kind in _GENERATED and not failure.evidence


def usage_of_body(sent: UpstreamRequest) -> Usage:
    """Return an estimate of what a call that is no conversation used."""
    return Usage(-(-len(sent.body) // BYTES_PER_TOKEN), 0, estimated=True)
