"""The access log's JSON lines, with the names in them written once for many requests: the same bytes as `request_line`
writes.

Names are most of a line. A text that is not ASCII changes how the whole line is written, and a line that is too long is
cut: both are left to `request_line`.
"""

from typing import Final

from proxy.request_record import RequestRecord
from proxy.telemetry.access_log import figures, names, request_line
from proxy.telemetry.log_format import ascii_json, timestamp
from proxy.telemetry.log_writer import MAX_LINE

MAX_KEPT: Final = 4096
MAX_NAMES: Final = 512
"""Combinations of names that are kept, as many clients' addresses, and characters of what clients may make up in one:
the path, the model, and the deployment under an entry for any model. With more, all are written again."""


class PlainLines:
    """Writes the line of each request, and keeps the names."""

    def __init__(self) -> None:
        self._names: dict[tuple[object, ...], tuple[str, str]] = {}
        self._clients: dict[str, str] = {}

    def line(self, record: RequestRecord, cost: float | None) -> bytes:
        """Return the line of a request that cost so much (None: not known)."""
        key = (
            record.team,
            record.surface,
            record.path,
            record.asked,
            record.answered_by,
            record.stream,
            record.status,
            record.outcome,
        )
        try:
            (before, after), client = self._names[key], self._clients[record.client]
        except KeyError:
            self._keep(key, record)
            return request_line(record)
        end = ascii_json(figures(record, cost))
        if end is None:
            return request_line(record)
        start = (
            f'{{"time":"{timestamp()}","level":"info","message":"request","request_id":"{record.request_id}",'
            f"{before},{client},{after},"
        )
        line = start.encode() + end[1:]
        return line if len(line) <= MAX_LINE else request_line(record)

    def _keep(self, key: tuple[object, ...], record: RequestRecord) -> None:
        """Keep the names of a request and its client's address, as they are written."""
        whole, client = ascii_json(names(record)), ascii_json({"client": record.client})
        if whole is None or client is None:
            return
        if len(record.path) + len(record.asked) + len(record.answered_by or "") > MAX_NAMES:
            return
        # In a text the quotation marks are escaped, so that this is found where the member is.
        before, _, after = whole[1:-1].decode().partition(f",{client[1:-1].decode()},")
        for kept in (self._names, self._clients):
            if len(kept) >= MAX_KEPT:
                kept.clear()
        self._names[key] = before, after
        self._clients[record.client] = client[1:-1].decode()
