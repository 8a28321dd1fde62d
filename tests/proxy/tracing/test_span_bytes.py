"""Spans as bytes, read by OpenTelemetry's own protobuf types."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from proxy.trace_context import NoteValue
from proxy.tracing.span_bytes import attribute_fields, export_bytes, resource_bytes, scope_bytes, span_bytes
from proxy.tracing.span_values import Side, SpanCounts, SpanEvent, SpanLabels, SpanValues
from tests.proxy.tracing.kit.collector import said
from tests.proxy.tracing.kit.finished import trace
from tests.support.looped import looped

pytestmark = pytest.mark.smoke


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)
VALUES = TEXTS | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.lists(TEXTS)
SAID = st.dictionaries(TEXTS, VALUES, max_size=5)
TIMES = st.integers(0, 2**64 - 1)


@given(SAID)
def test_attributes_of_every_kind_read_as_they_were_written(written: dict[str, NoteValue]) -> None:
    span = Span.FromString(attribute_fields(written))
    assert said(span.attributes) == written
    assert [type(each) for each in said(span.attributes).values()] == [type(each) for each in written.values()]


@looped("size", [0, 127, 128, 2047, 2048, 100_000])
def test_texts_of_every_length_do(size: int) -> None:
    assert said(Span.FromString(attribute_fields({"a": "x" * size})).attributes) == {"a": "x" * size}


def span(values: SpanValues) -> Span:
    """Return the span after a complete export."""
    body = export_bytes(resource_bytes({"service.name": "a"}), scope_bytes("b", "c"), [span_bytes(values)])
    (of,) = ExportTraceServiceRequest.FromString(body).resource_spans
    (scope,) = of.scope_spans
    assert (said(of.resource.attributes), scope.scope.name, scope.scope.version) == ({"service.name": "a"}, "b", "c")
    found: Span
    (found,) = scope.spans
    return found


SPANS = st.builds(
    SpanValues,
    labels=st.builds(SpanLabels, TEXTS, st.sampled_from(Side), SAID),
    trace=st.builds(trace, st.sampled_from([1, 3]), state=st.sampled_from(["", "a=b"])),
    span_id=st.integers(1, 2**64 - 1),
    parent_id=st.integers(0, 2**64 - 1),
    remote=st.booleans(),
    start=TIMES,
    end=TIMES,
    own=SAID,
    events=st.lists(st.builds(SpanEvent, TEXTS, TIMES), max_size=2).map(tuple),
    failed=st.booleans(),
    message=st.none() | TEXTS,
    counts=st.none() | st.builds(SpanCounts, SAID),
)


@given(SPANS)
def test_a_span_reads_as_it_was_written(values: SpanValues) -> None:
    found = span(values)
    assert (found.trace_id.hex(), found.span_id) == (f"{0xABC:032x}", values.span_id.to_bytes(8, "big"))
    assert found.parent_span_id == (values.parent_id.to_bytes(8, "big") if values.parent_id else b"")
    assert (found.trace_state, found.name) == (values.trace.state, values.name)
    assert found.flags == values.trace.flags | (0x300 if values.parent_id and values.remote else 0x100)
    assert found.kind == {Side.SERVER: Span.SPAN_KIND_SERVER, Side.CLIENT: Span.SPAN_KIND_CLIENT}[values.side]
    assert (found.start_time_unix_nano, found.end_time_unix_nano) == (values.start, values.end)
    counts = {} if values.counts is None else values.counts.attributes
    pairs = [(pair.key, said([pair])[pair.key]) for pair in found.attributes]
    assert pairs == [*values.labels.attributes.items(), *values.own.items(), *counts.items()]
    assert tuple(SpanEvent(event.name, event.time_unix_nano) for event in found.events) == values.events
    code = Status.STATUS_CODE_ERROR if values.failed else Status.STATUS_CODE_UNSET
    assert (found.status.code, found.status.message) == (code, (values.failed and values.message) or "")


def test_what_is_not_there_is_not_written() -> None:
    plain = SpanValues(SpanLabels("a", Side.SERVER, {}), trace(), 1, 0, True, 1, 2, {})
    found = {field.name for field, _ in span(plain).ListFields()}
    assert found == {"trace_id", "span_id", "name", "kind", "start_time_unix_nano", "end_time_unix_nano", "flags"}


def test_a_resource_has_its_attributes() -> None:
    body = resource_bytes({"a": "b", "c": 1})
    assert said(Resource.FromString(body[2:]).attributes) == {"a": "b", "c": 1}
