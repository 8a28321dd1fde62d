"""Which trace a request is part of: its caller's where it names one, otherwise a new one."""

from aiohttp import web

from proxy.request_record import random_bits
from proxy.trace_context import RANDOM, SAMPLED, Trace, bound_of, is_chosen, parse_parent, parse_state


class TraceStarter:
    """Begins the traces of requests. Of those without a caller's trace, a share of `sample` is sampled; a caller's
    trace is sampled where the caller samples it. With `content` the texts of sampled ones are noted.

    It is asked once a request's key is known, so that nobody without one can have anything traced."""

    def __init__(self, sample: float, *, content: bool) -> None:
        self._bound = bound_of(sample)
        self._content = content

    def begin(self, http: web.BaseRequest) -> Trace:
        """Return the trace of a request."""
        headers = http.headers
        # Of 63 bits, so that there is room for the spans of the attempts after it.
        span_id = random_bits(63) + 1
        if "traceparent" in headers:
            parent = parse_parent(headers.getall("traceparent"))
            if parent is not None:
                state = parse_state(headers.getall("tracestate", ()))
                trace = Trace(parent.trace_id, span_id, parent.span_id, parent.flags, state, http.method)
                trace.keeps_content = self._content
                return trace
        trace_id = random_bits(128) or 1
        flags = RANDOM | SAMPLED if is_chosen(trace_id, self._bound) else RANDOM
        return Trace(trace_id, span_id, 0, flags, "", http.method, self._content)
