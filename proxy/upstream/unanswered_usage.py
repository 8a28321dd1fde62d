"""The usage of calls whose responses the client does not get. This usage counts, because vendors bill it.

Usage that a vendor reported counts unchanged. If a call ended before its usage was reported, because the client left, a
deadline passed or the connection broke, the estimated usage of the prompt counts. A refused call is not billed.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from providers.completion import Chunk, Completion, StreamPart, TextRun, Usage
from providers.dialect import StreamDecoder, UpstreamRequest, usage_so_far
from providers.emulation.estimate_missing_usage import BYTES_PER_TOKEN, early_usage, estimate_usage, size_written
from providers.emulation.plan_calls import PlannedCall
from providers.failure import FailureKind, UpstreamError
from providers.unified_request import UnifiedRequest
from proxy.deadlines import DeadlinePassed
from proxy.request_record import RequestRecord

LONG_BODY: Final = 128 * 1024
"""The usage of a call with at least this many bytes is estimated from the length alone."""

_UNANSWERED: Final = frozenset({FailureKind.TIMEOUT, FailureKind.SERVER, FailureKind.TRUNCATED})
"""Kinds of failures of a call that ended without a response. They have no status."""

_GENERATED: Final = frozenset({FailureKind.MALFORMED, FailureKind.NONCONFORMING, FailureKind.TRUNCATED})
"""Kinds of failures of a response with a status of success."""


def is_billed(error: BaseException, sent: UpstreamRequest) -> bool:
    """Return whether a vendor may bill a call that ended with this error before its usage was known."""
    if not sent.written:
        return False
    if not isinstance(error, UpstreamError):
        # These are errors of the client's connection, because errors of the vendor's connection have become
        # UpstreamErrors.
        return isinstance(error, asyncio.CancelledError | ConnectionError | DeadlinePassed)
    failure = error.failure
    if error.counted:
        return False
    if failure.status is None and failure.kind in _UNANSWERED:
        return not failure.unsent
    good = failure.status is not None and 200 <= failure.status < 300
    return good and failure.kind in _GENERATED and not failure.evidence


def usage_of_body(length: int, size: int = 0) -> Usage:
    """Return a usage that is estimated from the bytes of a call's body and of its response."""
    return Usage(-(-length // BYTES_PER_TOKEN), -(-size // BYTES_PER_TOKEN), estimated=True)


def usage_of_call(request: UnifiedRequest, length: int, size: int = 0) -> Usage:
    """Return the estimated usage of a call with a body of `length` bytes, of whose response `size` bytes arrived. This
    runs on the event loop, which reading a long prompt would block, so a long prompt is estimated by its length."""
    return usage_of_body(length, size) if length > LONG_BODY else estimate_usage(request, size)


def estimated(call: PlannedCall, completion: Completion) -> Completion:
    """Return the response with a usage: the vendor's, or an estimate if the vendor reported none."""
    if completion.usage is not None:
        return completion
    size = sum(map(size_written, completion.choices))
    return replace(completion, usage=usage_of_call(call.request, len(call.sent.body), size))


def count_failed_call(
    record: RequestRecord,
    call: PlannedCall,
    error: BaseException,
    seen: Sequence[StreamPart] = (),
    decoder: StreamDecoder | None = None,
) -> None:
    """Count the usage of a call that `error` ended before its content: the usage in `seen`, or the usage that `decoder`
    has read. Without such a usage, an estimate counts if the vendor has generated text or may bill the prompt."""
    shown = [each for each in seen if isinstance(each, Usage)]
    reported = shown[-1] if shown else usage_so_far(decoder)
    size = sum([_size_of(each) for each in seen])
    if reported is not None or size or is_billed(error, call.sent):
        estimate = usage_of_call(call.request, len(call.sent.body), size)
        record.note_unanswered(early_usage(reported, estimate))


def _size_of(part: StreamPart) -> int:
    if isinstance(part, TextRun):
        return part.size
    return size_written(part) if isinstance(part, Chunk) else 0
