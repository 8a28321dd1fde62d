"""Spans in their wire format: the bytes of OTLP's protobuf messages, written without message objects.

Message objects for each span, attribute and value would cost three times as much as writing the bytes directly. Also,
the common parts of many spans would be written again for each span.

Sources: opentelemetry-proto 1.x (trace.proto, common.proto, resource.proto, trace_service.proto) for the numbers of the
fields; an absent field has its default.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from struct import Struct
from typing import Final

from proxy.trace_context import SAMPLED, NoteValue
from proxy.tracing.protobuf_wire import LIMIT, SMALL, field, varint
from proxy.tracing.span_values import MOST_LABELS, Side, SpanCounts, SpanLabels, SpanValues

_KINDS: Final = {Side.SERVER: b"\x30\x02", Side.CLIENT: b"\x30\x03"}

_HAS_IS_REMOTE: Final = 0x100
_IS_REMOTE: Final = 0x200
"""Flags of a span in addition to the flags of its trace (SpanFlags): whether it is known that the parent belongs to
another process, and whether it does."""

_TIMES: Final = Struct("<BQBQ").pack
_TIME: Final = Struct("<BQ").pack
_FLAGS: Final = Struct("<HI").pack
_DOUBLE: Final = Struct("<Bd").pack

_START, _END, _EVENT_TIME = 0x39, 0x41, 0x09
_FLAGS_FIELD: Final = 0x0185
_FAILED: Final = b"\x18\x02"


def attribute_fields(attributes: Mapping[str, NoteValue], tag: bytes = b"\x4a") -> bytes:
    """Return attributes as fields of a span; the attributes of a resource have another tag. All texts are valid
    UTF-8."""
    parts: list[bytes] = []
    small = SMALL  # this test avoids about thirty calls of `varint` for each request
    for name, value in attributes.items():
        if isinstance(value, str):
            text = value.encode()
            length = len(text)
            encoded = b"\x0a" + (small[length] if length < LIMIT else varint(length)) + text
        elif isinstance(value, bool):
            encoded = b"\x10\x01" if value else b"\x10\x00"
        elif isinstance(value, int):
            encoded = b"\x18" + varint(value)
        elif isinstance(value, float):
            encoded = _DOUBLE(0x21, value)
        else:
            encoded = field(b"\x2a", b"".join([field(b"\x0a", field(b"\x0a", each.encode())) for each in value]))
        key = _key(name)
        length = len(encoded)
        size = small[length] if length < LIMIT else varint(length)
        length += len(key) + len(size)
        parts += tag, (small[length] if length < LIMIT else varint(length)), key, size, encoded
    return b"".join(parts)


@lru_cache(maxsize=MOST_LABELS)
def _key(name: str) -> bytes:
    """Return the name of an attribute as bytes, up to the length of its value."""
    return field(b"\x0a", name.encode()) + b"\x12"


@lru_cache(maxsize=MOST_LABELS)
def _common(labels: SpanLabels) -> bytes:
    """Return the bytes that many spans have in common."""
    return field(b"\x2a", labels.name.encode()) + _KINDS[labels.side] + attribute_fields(labels.attributes)


@lru_cache(maxsize=1)
def _counts(counts: SpanCounts) -> bytes:
    """Return the bytes that two consecutive spans have in common."""
    return attribute_fields(counts.attributes)


def span_bytes(values: SpanValues) -> bytes:
    """Return a span as a field of its scope."""
    trace = values.trace
    flags = trace.flags | SAMPLED | _HAS_IS_REMOTE
    parts = [b"\x0a\x10", bytes.fromhex(trace.hex_id), b"\x12\x08", values.span_id.to_bytes(8, "big")]
    if trace.state:
        parts.append(field(b"\x1a", trace.state.encode()))
    if values.parent_id:
        parts += b"\x22\x08", values.parent_id.to_bytes(8, "big")
        if values.remote:
            flags |= _IS_REMOTE
    parts += _common(values.labels), _TIMES(_START, values.start, _END, values.end), attribute_fields(values.own)
    if values.counts is not None:
        parts.append(_counts(values.counts))
    for event in values.events:
        parts.append(field(b"\x5a", _TIME(_EVENT_TIME, event.time) + field(b"\x12", event.name.encode())))
    if values.failed:
        message = field(b"\x12", values.message.encode()) if values.message else b""
        parts.append(field(b"\x7a", message + _FAILED))
    parts.append(_FLAGS(_FLAGS_FIELD, flags))
    return field(b"\x12", b"".join(parts))


def export_bytes(resource: bytes, scope: bytes, spans: Iterable[bytes]) -> bytes:
    """Return the spans of one scope of one resource as an export."""
    return field(b"\x0a", resource + field(b"\x12", scope + b"".join(spans)))


def resource_bytes(attributes: Mapping[str, NoteValue]) -> bytes:
    """Return the origin of the spans of a process."""
    return field(b"\x0a", attribute_fields(attributes, b"\x0a"))


def scope_bytes(name: str, version: str) -> bytes:
    """Return the program that wrote the spans, as bytes."""
    return field(b"\x0a", field(b"\x0a", name.encode()) + field(b"\x12", version.encode()))
