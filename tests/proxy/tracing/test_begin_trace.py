"""Which trace a request is part of."""

from collections.abc import Mapping

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from multidict import CIMultiDict

from proxy.trace_context import RANDOM, SAMPLED, Trace
from proxy.tracing.begin_trace import TraceStarter

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
HEADERS = {"TraceParent": f"00-{TRACE}-{SPAN}-01", "tracestate": "a=b"}


def asked(headers: Mapping[str, str]) -> web.BaseRequest:
    return make_mocked_request("POST", "/v1/chat/completions", CIMultiDict(headers))


def begun(sample: float, headers: Mapping[str, str]) -> Trace:
    return TraceStarter(sample, content=True).begin(asked(headers))


@pytest.mark.parametrize("sample", [0.0, 1.0])
def test_a_callers_trace_goes_on_and_its_decision_holds(sample: float) -> None:
    trace = begun(sample, HEADERS)
    assert (trace.trace_id, trace.parent_id, trace.state) == (int(TRACE, 16), int(SPAN, 16), "a=b")
    assert (trace.sampled, trace.method, trace.keeps_content) == (True, "POST", True)
    assert not begun(sample, {"traceparent": f"00-{TRACE}-{SPAN}-00"}).sampled


@pytest.mark.parametrize("headers", [{}, {"traceparent": "garbage", "tracestate": "a=b"}, {"tracestate": "a=b"}])
def test_without_a_valid_one_a_new_trace_begins_without_a_state(headers: Mapping[str, str]) -> None:
    trace, other = begun(1.0, headers), begun(1.0, headers)
    assert (trace.parent_id, trace.state, trace.flags) == (0, "", SAMPLED | RANDOM)
    assert trace.trace_id != other.trace_id
    assert trace.span_id != other.span_id
    assert begun(0.0, headers).flags == RANDOM


def test_two_parents_are_none() -> None:
    headers = CIMultiDict([("traceparent", HEADERS["TraceParent"])] * 2)
    assert begun(1.0, headers).parent_id == 0


def test_the_share_of_new_traces_is_sampled() -> None:
    starter, request = TraceStarter(0.1, content=False), asked({})
    sampled = sum(starter.begin(request).sampled for _ in range(2000))
    assert 100 < sampled < 300
