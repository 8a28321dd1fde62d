"""Log records in protobuf, read by OpenTelemetry's own types."""

import orjson
import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, SeverityNumber

from proxy.payload_log.otlp_records import EVENT, log_record, logs_request
from tests.support.looped import looped

pytestmark = pytest.mark.smoke


TRACE = "0af7651916cd43dd8448eb211c80319c"
FACTS: dict[str, object] = {
    "time": "2026-11-23T16:00:00.123Z",
    "request_id": "r-\u00e9",
    "stream": True,
    "status": 200,
    "less": -5,
    "much": 2**40,
    "duration_ms": 12.5,
    "deployment": None,
    "tags": ["a", 1],
    "trace_id": TRACE,
}


def read(*records: bytes) -> ExportLogsServiceRequest:
    made = ExportLogsServiceRequest()
    made.ParseFromString(logs_request({"service.name": "s"}, ("scope", "1.2"), records))
    return made


def values(record: LogRecord) -> dict[str, AnyValue]:
    return {pair.key.removeprefix(f"{EVENT}."): pair.value for pair in record.attributes}


def test_a_record_says_what_its_entry_says() -> None:
    line = orjson.dumps({**FACTS, "request": {"text": "\u00fc" * 300}}) + b"\n"
    (of,) = read(log_record(orjson.dumps(FACTS), line, 5)).resource_logs
    assert [(each.key, each.value.string_value) for each in of.resource.attributes] == [("service.name", "s")]
    (scoped,) = of.scope_logs
    assert (scoped.scope.name, scoped.scope.version) == ("scope", "1.2")
    (record,) = scoped.log_records
    assert record.body.string_value.encode() + b"\n" == line
    assert (record.time_unix_nano, record.observed_time_unix_nano) == (1_795_449_600_123_000_000, 5)
    assert (record.severity_number, record.severity_text) == (SeverityNumber.SEVERITY_NUMBER_INFO, "INFO")
    assert (record.event_name, record.trace_id.hex()) == (EVENT, TRACE)
    found = values(record)
    assert (found["request_id"].string_value, found["tags"].string_value) == ("r-\u00e9", '["a",1]')
    assert found["stream"].WhichOneof("value") == "bool_value"
    assert found["stream"].bool_value
    assert [found[name].int_value for name in ("status", "less", "much")] == [200, -5, 2**40]
    assert found["duration_ms"].double_value == 12.5
    assert "deployment" not in found


def test_records_follow_each_other_and_one_without_a_time_or_a_trace_has_the_present() -> None:
    made = read(*(log_record(b'{"request_id":"%d"}' % n, b"{}\n", 7) for n in range(3)))
    records = made.resource_logs[0].scope_logs[0].log_records
    assert [values(each)["request_id"].string_value for each in records] == ["0", "1", "2"]
    assert {(each.time_unix_nano, each.trace_id) for each in records} == {(7, b"")}


@looped("size", [0, 1, 126, 127, 128, 129, 16_383, 16_384, 3_000_000])
def test_a_body_of_any_size_is_read_whole(size: int) -> None:
    (record,) = read(log_record(b"{}", b"x" * size, 1)).resource_logs[0].scope_logs[0].log_records
    assert record.body.string_value == "x" * size
