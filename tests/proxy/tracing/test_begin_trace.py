"""The trace that a request belongs to."""

import re
from collections.abc import Mapping

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from multidict import CIMultiDict

from proxy.request_record import RequestRecord
from proxy.trace_context import RANDOM, SAMPLED, SampledTrace, Trace
from proxy.tracing import begin_trace
from proxy.tracing.begin_trace import TRACES_AHEAD, TraceStarter
from tests.support.looped import looped

pytestmark = pytest.mark.smoke


TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
LARGEST = 2**64 - 1
HEADERS = {"TraceParent": f"00-{TRACE}-{SPAN}-01", "tracestate": "a=b"}


def asked(headers: Mapping[str, str]) -> web.BaseRequest:
    return make_mocked_request("POST", "/v1/chat/completions", CIMultiDict(headers))


def begun(sample: float, headers: Mapping[str, str]) -> Trace:
    record = RequestRecord("r", 0.0, "openai", "/v1/chat/completions")
    http, traces = asked(headers), TraceStarter(sample, content=True)
    if "traceparent" in http.headers:
        traces.join(http, record)
    else:
        traces.begin(http.method, record)
    assert record.trace is not None
    assert record.sampled is (record.trace if isinstance(record.trace, SampledTrace) else None)
    return record.trace


def sampled(sample: float, headers: Mapping[str, str]) -> SampledTrace:
    trace = begun(sample, headers)
    assert isinstance(trace, SampledTrace)
    return trace


@pytest.mark.parametrize("sample", [0.0, 1.0])
def test_a_callers_trace_goes_on_and_its_decision_holds(sample: float) -> None:
    trace = sampled(sample, HEADERS)
    assert (trace.hex_id, trace.parent_id, trace.state) == (TRACE, int(SPAN, 16), "a=b")
    assert (trace.method, trace.notes.keeps_content) == ("POST", True)
    other = begun(sample, {**HEADERS, "TraceParent": f"00-{TRACE}-{SPAN}-00"})
    assert not isinstance(other, SampledTrace)
    assert re.fullmatch(rf"traceparent: 00-{TRACE}-[0-9a-f]{{16}}-00\r\ntracestate: a=b\r\n", other.line)
    assert SPAN not in other.line


@looped("headers", [{}, {"traceparent": "garbage", "tracestate": "a=b"}, {"tracestate": "a=b"}])
def test_without_a_valid_one_a_new_trace_begins_without_a_state(headers: Mapping[str, str]) -> None:
    trace, other = sampled(1.0, headers), sampled(1.0, headers)
    assert (trace.parent_id, trace.state, trace.flags) == (0, "", SAMPLED | RANDOM)
    assert trace.hex_id != other.hex_id
    assert trace.span_id != other.span_id
    unsampled = begun(0.0, headers)
    assert re.fullmatch(rf"traceparent: 00-{unsampled.hex_id}-[0-9a-f]{{16}}-02\r\n", unsampled.line)
    assert len(unsampled.hex_id) == 32


def test_two_parents_are_none() -> None:
    headers = CIMultiDict([("traceparent", HEADERS["TraceParent"])] * 2)
    assert sampled(1.0, headers).parent_id == 0


def test_the_share_of_new_traces_is_sampled_and_no_two_are_one() -> None:
    traces, records = TraceStarter(0.1, content=False), [RequestRecord("r", 0.0, "openai", "/") for _ in range(2000)]
    for each in records:
        traces.begin("POST", each)
    found = [each.trace for each in records if each.trace is not None]
    assert len({each.hex_id for each in found}) == len({each.lines(0) for each in found}) == 2000
    assert 100 < sum(each.sampled is not None for each in records) < 300


@pytest.mark.parametrize(("low", "is_sampled"), [(0, True), (2**63 - 1, True), (2**63, False), (2**64 - 1, False)])
def test_the_lower_half_of_the_new_id_decides_as_in_every_process(
    monkeypatch: pytest.MonkeyPatch, low: int, is_sampled: bool
) -> None:
    monkeypatch.setattr(begin_trace, "random_bits", lambda bits: int(f"{low:032x}{LARGEST:016x}" * TRACES_AHEAD, 16))
    trace = begun(0.5, {})
    assert isinstance(trace, SampledTrace) is is_sampled
    assert trace.hex_id == f"{low:032x}"


def test_the_spans_of_attempts_follow_the_largest_span_of_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(begin_trace, "random_bits", lambda bits: 2**bits - 1)
    trace = sampled(1.0, {})
    assert [line.split("-")[2] for line in map(trace.lines, (0, 1, 99))] == [
        f"{span:016x}" for span in (2**63, 2**63 + 1, 2**63 + 99)
    ]
