"""Chooses the trace of a request: the trace that its caller names, otherwise a new one."""

from collections.abc import Iterator
from typing import Final

from aiohttp import web

from proxy.request_record import RequestRecord, random_bits
from proxy.trace_context import (
    RANDOM,
    SAMPLED,
    SAMPLED_DIGITS,
    SampledTrace,
    Trace,
    parse_parent,
    parse_state,
    sampling_bound,
)

TRACES_AHEAD: Final = 32
"""The number of new traces that are created together, in 20 us. Creating each trace separately, between the other work
of a request, takes twice as long."""

_SPAN_BITS: Final = 63
_TRACE_BYTES: Final = 16
_SPAN_BYTES: Final = 8
_BYTES: Final = _TRACE_BYTES + _SPAN_BYTES
_SPAN_AT: Final = 2 * _TRACE_BYTES
_DIGITS: Final = 2 * _BYTES
"""A trace has 128 random bits, followed by 64 random bits of its first span, all as hex digits."""


class TraceStarter:
    """Begins the traces of requests. Of the requests without a caller's trace, a share of `sample` is sampled. A
    caller's trace is sampled if the caller samples it. If `content` is true, the texts of sampled requests are
    recorded.

    The starter is called when the key of a request has been verified, so that a client without a key cannot have
    anything traced.
    """

    def __init__(self, sample: float, *, content: bool) -> None:
        self._bound = sampling_bound(sample)
        self.keeps_content = content
        self._new_traces: list[Trace] = []

    def begin(self, method: str, record: RequestRecord) -> None:
        """Store a new trace in the record of a request whose caller names none."""
        if not self._new_traces:
            self._new_traces = [*self._new()]
        trace = record.trace = self._new_traces.pop()
        trace.method = method
        if isinstance(trace, SampledTrace):
            record.sampled = trace

    def join(self, http: web.BaseRequest, record: RequestRecord) -> None:
        """Store the caller's trace in the record of a request that names one; a new trace if the name is invalid."""
        parent = parse_parent(http.headers.getall("traceparent"))
        if parent is None:
            self.begin(http.method, record)
            return
        state = parse_state(http.headers.getall("tracestate", ()))
        span_id = random_bits(_SPAN_BITS) + 1
        trace = SampledTrace(parent.hex_id, span_id, parent.span_id, parent.flags, state, http.method)
        if parent.flags & SAMPLED:
            record.trace = record.sampled = trace
            trace.notes.keeps_content = self.keeps_content
        else:
            record.trace = Trace(parent.hex_id, trace.lines(0), http.method)

    def _new(self) -> Iterator[Trace]:
        digits = random_bits(8 * _BYTES * TRACES_AHEAD).to_bytes(_BYTES * TRACES_AHEAD, "big").hex()
        for at in range(0, len(digits), _DIGITS):
            span_at, end = at + _SPAN_AT, at + _DIGITS
            hex_id = digits[at:span_at]
            if digits[span_at - SAMPLED_DIGITS : span_at] >= self._bound:
                yield Trace(hex_id, f"traceparent: 00-{hex_id}-{digits[span_at:end]}-02\r\n", "")
                continue
            # The id is not 0, and leaves space for the ids of the attempts' spans, which follow it.
            span_id = (int(digits[span_at:end], 16) >> 1) + 1
            trace = SampledTrace(hex_id, span_id, 0, RANDOM | SAMPLED)
            trace.notes.keeps_content = self.keeps_content
            yield trace
