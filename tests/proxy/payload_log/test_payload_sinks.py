"""The destinations of entries, how a collector's failure is represented, and how it is logged."""

import errno
from contextlib import closing
from pathlib import Path

import pytest

from proxy.payload_log.payload_sinks import CollectorSink, FileSink, Finished, WriterRules, reason_of, sink_of
from tests.proxy.tracing.kit.collector import collecting
from tests.support.gateway import free_ports

pytestmark = pytest.mark.smoke


ENTRIES = [Finished(b'{"request_id":"%d"}' % n, b'{"request_id":"%d","request":"hi"}\n' % n) for n in range(3)]


def to(endpoint: str) -> WriterRules:
    return WriterRules(None, 1024, [], 1, 1, endpoint, {"authorization": "Bearer canary"}, 1.0, {"service.name": "s"})


def test_a_file_gets_the_lines_and_says_what_is_wrong_with_it(tmp_path: Path) -> None:
    rules = WriterRules(str(tmp_path / "p"), 1024, [], 10**6, 1)
    with closing(sink_of(rules)) as sink:
        assert isinstance(sink, FileSink)
        assert sink.write(ENTRIES) == 0
    assert (tmp_path / "p").read_bytes() == b"".join(each.line for each in ENTRIES)
    missing = sink_of(rules._replace(file=str(tmp_path / "no" / "p")))
    assert missing.write(ENTRIES) == errno.ENOENT
    assert reason_of(errno.ENOENT) == "No such file or directory"


def test_a_collector_gets_all_entries_in_one_export() -> None:
    with collecting() as collector, closing(sink_of(to(collector.url))) as sink:
        assert isinstance(sink, CollectorSink)
        assert sink.write(ENTRIES) == 0
    (export,) = collector.logs
    records = export.resource_logs[0].scope_logs[0].log_records
    assert [each.body.string_value.encode() + b"\n" for each in records] == [each.line for each in ENTRIES]
    assert collector.headers[0]["authorization"] == "Bearer canary"


@pytest.mark.parametrize("status", [400, 503])
def test_what_a_collector_refuses_is_told_by_its_status(status: int) -> None:
    with collecting(status) as collector, closing(sink_of(to(collector.url))) as sink:
        error = sink.write(ENTRIES)
    assert reason_of(error) == f"the collector answers with status {status}"


def test_a_collector_that_is_not_there_or_silent_is_told_apart() -> None:
    (port,) = free_ports(1)
    assert reason_of(sink_of(to(f"http://127.0.0.1:{port}")).write(ENTRIES)) == "the collector cannot be reached"
    with collecting() as collector:
        collector.open.clear()
        slow = to(collector.url)._replace(timeout=0.1)
        assert reason_of(sink_of(slow).write(ENTRIES)) == "the collector is too slow"
