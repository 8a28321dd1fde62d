"""What a call used whose answer the client does not get: vendors bill it, so it counts.

What a vendor reported counts as reported. Of a call that ended before anything was reported, because its client left or
its time was over or its connection broke, the prompt counts as its estimate. A refused call is not billed.
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
"""Bytes of a call from which the usage is estimated by its length."""

_UNANSWERED: Final = frozenset({FailureKind.TIMEOUT, FailureKind.SERVER, FailureKind.TRUNCATED})
"""Kinds of failures of a call that ended without an answer, which have no status."""

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
    if failure.status is None and failure.kind in _UNANSWERED:
        return not failure.unsent
    good = failure.status is not None and 200 <= failure.status < 300
    return good and failure.kind in _GENERATED and not failure.evidence


def usage_of_body(length: int, size: int = 0) -> Usage:
    """Return an estimate from the bytes of a call's body and of its response."""
    return Usage(-(-length // BYTES_PER_TOKEN), -(-size // BYTES_PER_TOKEN), estimated=True)


def usage_of_call(request: UnifiedRequest, length: int, size: int = 0) -> Usage:
    """Return an estimate of the usage of a call with a body of `length` bytes, of whose response `size` bytes came. It
    is made on the event loop, which reading a long prompt would block: its length counts instead."""
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
    """Count the usage of a call that `error` ended before its content: the usage that is among `seen` or that `decoder`
    has read, or else an estimate if the vendor has generated text or may bill the prompt."""
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
