"""Entries of the payload log as log records of OTLP, in protobuf. Pure.

Numbers of fields and types: opentelemetry-proto 1.9, `logs/v1/logs.proto`, `common/v1/common.proto` and
`resource/v1/resource.proto`, November 2026. The few needed messages are written by hand, so that the process that
writes the payload log loads no library for it.

The body of a record is the line of the entry, as in the file. Its attributes are the fields of the line except the
contents.
"""

import struct
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

import orjson

from proxy.tracing.protobuf_wire import field, varint

EVENT: Final = "dragoman.payload"
"""The name of the event of every record, and the prefix of its attributes."""

_INFO: Final = 9
"""SEVERITY_NUMBER_INFO."""

_VARINT, _FIXED64, _BYTES = 0, 1, 2
"""Wire types."""

_DOUBLE: Final = struct.Struct("<d")
_LONG: Final = struct.Struct("<Q")


def logs_request(resource: Mapping[str, str], scope: tuple[str, str], records: Iterable[bytes]) -> bytes:
    """Return an ExportLogsServiceRequest with these LogRecords."""
    attributes = b"".join([_message(1, _pair(name, value)) for name, value in resource.items()])
    name, version = scope
    scoped = _message(1, _text(1, name) + _text(2, version)) + b"".join([_message(2, record) for record in records])
    return _message(1, _message(1, attributes) + _message(2, scoped))


def log_record(facts: bytes, line: bytes, now: int) -> bytes:
    """Return the LogRecord of an entry: its facts, which are a JSON object, and its line. `now` is in nanoseconds."""
    said = orjson.loads(facts)
    trace = str(said.get("trace_id", ""))
    return b"".join(
        [
            _fixed(1, _nanoseconds(said.get("time")) or now),
            _number(2, _INFO),
            _text(3, "INFO"),
            _message(5, _text_bytes(1, line.rstrip(b"\n"))),
            *[_message(6, _pair(f"{EVENT}.{name}", value)) for name, value in said.items() if value is not None],
            _text_bytes(9, bytes.fromhex(trace)) if trace else b"",
            _fixed(11, now),
            _text(12, EVENT),
        ]
    )


def _nanoseconds(time: object) -> int:
    return int(datetime.fromisoformat(time).timestamp() * 1e6) * 1000 if isinstance(time, str) else 0


def _pair(name: str, value: object) -> bytes:
    """Return a KeyValue."""
    return _text(1, name) + _message(2, _any_value(value))


def _any_value(value: object) -> bytes:
    match value:
        case bool():
            return _number(2, int(value))
        case int():
            return _number(3, value)
        case float():
            return _key(4, _FIXED64) + _DOUBLE.pack(value)
        case _:
            return _text(1, value if isinstance(value, str) else orjson.dumps(value).decode())


def _key(number: int, wire_type: int) -> bytes:
    return varint(number << 3 | wire_type)


def _number(number: int, value: int) -> bytes:
    return _key(number, _VARINT) + varint(value)


def _fixed(number: int, value: int) -> bytes:
    return _key(number, _FIXED64) + _LONG.pack(value)


def _text(number: int, value: str) -> bytes:
    return _text_bytes(number, value.encode("utf-8", "replace"))


def _text_bytes(number: int, value: bytes) -> bytes:
    return field(_key(number, _BYTES), value)


_message = _text_bytes
