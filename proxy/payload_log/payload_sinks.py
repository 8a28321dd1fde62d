"""The outputs of the payload log's process: a file, or a collector by OTLP over HTTP."""

import os
import socket
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from proxy.payload_log.otlp_records import log_record, logs_request
from proxy.payload_log.payload_file import PayloadFile
from proxy.tracing.collector_link import TOO_SLOW, UNREACHED, CollectorLink
from proxy.version import VERSION

SCOPE: Final = "dragoman"

_TROUBLES: Final = {UNREACHED: -2, TOO_SLOW: -3}
_STATUS: Final = -1000
"""The number from which a collector's status is subtracted. The result takes the place of an operating system's error
number."""


class WriterRules(NamedTuple):
    """The first message to the process: the file, or the `endpoint` with its headers and the seconds of an export."""

    file: str | None
    most: int
    redact: list[str]
    rotate: int
    keep: int
    endpoint: str = ""
    headers: dict[str, str] = {}  # noqa: RUF012 - a NamedTuple's default, which is never changed
    timeout: float = 0.0
    resource: dict[str, str] = {}  # noqa: RUF012


class Finished(NamedTuple):
    """An entry to write: its facts, and its complete line."""

    facts: bytes
    line: bytes


class EntrySink(Protocol):
    """An output for entries."""

    def write(self, entries: Sequence[Finished]) -> int:
        """Write entries; return 0, or a number that `reason_of` explains if they were not all written."""

    def close(self) -> None:
        """Close the open file or connection."""


class FileSink:
    """Writes to a file."""

    def __init__(self, rules: WriterRules) -> None:
        self._file = PayloadFile(Path(rules.file or ""), rules.rotate, rules.keep)

    def write(self, entries: Sequence[Finished]) -> int:
        """Write entries; return 0, or the number of the operating system's error."""
        try:
            for entry in entries:
                self._file.append(entry.line)
        except OSError as error:
            return error.errno or -1
        return 0

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class CollectorSink:
    """Sends to a collector, all entries in one export."""

    def __init__(self, rules: WriterRules) -> None:
        self._link = CollectorLink(rules.endpoint, rules.headers, rules.timeout)
        own = {"service.version": VERSION, "host.name": socket.gethostname()}
        self._resource = {**own, **rules.resource}

    def write(self, entries: Sequence[Finished]) -> int:
        """Send entries; return 0, or a number that `reason_of` explains."""
        now = time.time_ns()
        records = [log_record(entry.facts, entry.line, now) for entry in entries]
        trouble = self._link.post("/v1/logs", logs_request(self._resource, (SCOPE, VERSION), records))
        if trouble is None:
            return 0
        status = trouble.rpartition(" ")[2]
        return _TROUBLES.get(trouble) or (_STATUS - int(status) if status.isdecimal() else -1)

    def close(self) -> None:
        """Close the connection."""
        self._link.close()


def sink_of(rules: WriterRules) -> EntrySink:
    """Return the output of these rules."""
    return FileSink(rules) if rules.file is not None else CollectorSink(rules)


def reason_of(error: int) -> str:
    """Return why entries were not written, in words."""
    if error <= _STATUS:
        return f"the collector answers with status {_STATUS - error}"
    return next((trouble for trouble, number in _TROUBLES.items() if number == error), None) or os.strerror(abs(error))
