"""Passes the contents of requests and responses to the process that writes the payload log. No request waits until its
contents are written.

Contents are passed by reference and held in bounded memory. Entries that do not fit, or cannot be written, are counted.
"""

import asyncio
import logging
from asyncio.subprocess import DEVNULL
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Final

from config.sections.log_section import PayloadLogSettings
from providers.vendor_credential import reveal
from proxy.background_tasks import background
from proxy.off_loop.child_process import Child, bare_environment, end_child, start_child
from proxy.payload_log.payload_entry import RESPONSE, PayloadEntry, read_response
from proxy.payload_log.payload_process import batch_frame, rules_frame
from proxy.payload_log.payload_sinks import WriterRules, reason_of
from proxy.payload_log.request_content import Allowance, LoggedContent
from proxy.request_record import RequestRecord
from proxy.telemetry.log_format import json_line, timestamp
from proxy.telemetry.merged_metrics import MetricFamily

MOST_HELD: Final = 64 * 1024 * 1024
"""The most bytes of contents that one process holds for all of its requests, including contents that wait to be
written."""

MOST_WAITING: Final = 10_000

MOST_AT_ONCE: Final = 64
"""The most entries that one export to a collector has."""

MOST_CONTENT: Final = 4 * 1024 * 1024
"""The most bytes of a content that is written. Passing that many bytes to the process takes about 1 ms on the event
loop."""

WRITE_TIMEOUT: Final = 15.0
"""Seconds of wall time within which the process must respond, because a disk may not respond. Redaction has its own
limit of CPU time."""

RESTART_PAUSE: Final = 1.0
"""Seconds between two attempts to start the process."""

LAST_WRITES_TIMEOUT: Final = 5.0
"""The most seconds for writing the waiting entries when the gateway ends."""

TOO_LATE: Final = "the redaction took too long, or too much memory"
TOO_LONG: Final = f"longer than {MOST_CONTENT >> 20} MiB"

NO_MEMORY: Final = "the memory for waiting entries is used up"
WRITER_ENDED: Final = "the process that writes them has ended"


@dataclass(slots=True)
class PayloadCounts:
    """The counts of written, withheld and dropped entries."""

    written: int = 0
    withheld: int = 0
    dropped: int = 0

    def families(self) -> Iterator[MetricFamily]:
        """Yield the metrics."""
        name = "dragoman_payload_log_entries"
        counts = (("dropped", self.dropped), ("withheld", self.withheld), ("written", self.written))
        samples = tuple(((f"{name}_total", (("result", result),)), float(count)) for result, count in counts)
        yield MetricFamily(name, "counter", "Entries of the payload log; withheld: without their texts.", samples)


class PayloadLog:
    """The payload log of one process. Call its methods on the event loop's thread. `report_loss` is called when entries
    are dropped, `recovered` when that ends (by default `report_loss`)."""

    def __init__(
        self,
        place: PayloadLogSettings,
        report_loss: Callable[[str], None],
        recovered: Callable[[str], None] | None = None,
    ) -> None:
        self._place = place
        self._report_loss = report_loss
        self._recovered = recovered or report_loss
        self.allowance = Allowance(MOST_HELD)
        self.counts = PayloadCounts()
        self._waiting: deque[tuple[PayloadEntry, LoggedContent]] = deque()
        self._more = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._missing = 0
        self._child: Child | None = None

    def received(self, record: RequestRecord, body: bytes) -> None:
        """Hold the body of a request, if the payload log includes its team."""
        if record.content is not None or not self._place.includes_team(record.team):
            return
        if not self.allowance.take(len(body)):
            self._drop(NO_MEMORY)
            return
        record.content = LoggedContent(self.allowance, body, self._place.most, held=len(body))

    def finished(self, record: RequestRecord, cost: float | None) -> None:
        """Queue a request that has ended."""
        content, record.content = record.content, None
        if not isinstance(content, LoggedContent):
            return
        called = record.called or ""
        if not self._place.includes_any(record.model, record.asked, called, called.rpartition("/")[0]):
            content.release()
            return
        entry = entry_of(record, content)
        more = len(entry.answer or b"")
        if len(self._waiting) >= MOST_WAITING or not self.allowance.take(more):
            content.release()
            self._drop(NO_MEMORY)
            return
        content.held += more
        self._waiting.append((entry, content))
        self._idle.clear()
        self._more.set()

    async def run(self) -> None:
        """Write the queued entries, without end."""
        while True:
            while self._waiting:
                batch = self._batch()
                try:
                    await self._write(batch)
                finally:
                    for _ in batch:
                        self._waiting.popleft()[1].release()
            self._idle.set()
            self._more.clear()
            await self._more.wait()

    async def drain(self) -> None:
        """Wait until the queued entries are written, for at most LAST_WRITES_TIMEOUT seconds."""
        try:
            async with asyncio.timeout(LAST_WRITES_TIMEOUT):
                await self._idle.wait()
        except TimeoutError:
            self._report_loss(f"the payload log ends without its last {len(self._waiting)} entries")

    async def end_process(self) -> None:
        """End the writing process, even if it is busy."""
        child, self._child = self._child, None
        if child is not None:
            await end_child(child)

    def _batch(self) -> list[PayloadEntry]:
        """Return the entries to write next. For a collector these are several entries, unless they are large."""
        most = 1 if self._place.collector is None else MOST_AT_ONCE
        found: list[PayloadEntry] = []
        size = 0
        for entry, _ in islice(self._waiting, most):
            size += entry.size
            if found and size > MOST_CONTENT:
                break
            found.append(entry)
        return found

    async def _write(self, batch: Sequence[PayloadEntry]) -> None:
        """Write entries together. If the process ends meanwhile, for example because the redaction takes too long,
        write them one by one."""
        if len(batch) == 1:
            await self._write_one(batch[0])
        elif (error := await self._sent(batch)) is not None:
            self._count_result(error, len(batch))
            self.counts.written += 0 if error else len(batch)
        else:
            for entry in batch:
                await self._write_one(entry)

    async def _write_one(self, entry: PayloadEntry) -> None:
        if max(len(entry.request or b""), len(entry.answer or b"")) > MOST_CONTENT:
            await self._write_withheld(entry.withheld(TOO_LONG))
        elif (error := await self._sent((entry,))) is not None:
            self._count_result(error, 1)
            self.counts.written += not error
        else:
            await self._write_withheld(entry.withheld(TOO_LATE))

    async def _write_withheld(self, entry: PayloadEntry) -> None:
        error = await self._sent((entry,))
        if error is None:
            self._drop(WRITER_ENDED)
            await asyncio.sleep(RESTART_PAUSE)
            return
        self._count_result(error, 1)
        self.counts.withheld += not error

    def _count_result(self, error: int, entries: int) -> None:
        """Count entries that could not be written, and report when that begins and when it ends."""
        if error:
            self._drop(reason_of(error), entries)
        elif (
            self._missing and len(self._waiting) == entries
        ):  # no other entry waits, so no entry is dropped for lack of memory
            self._recovered(f"the payload log is written again; {self._missing} entries of it were dropped")
            self._missing = 0

    async def _sent(self, batch: Sequence[PayloadEntry]) -> int | None:
        """Send entries to the process, and return the error number; `None` if the process ended meanwhile."""
        try:
            async with asyncio.timeout(WRITE_TIMEOUT):
                child = self._child = self._child or await self._started()
                child.writer.write(batch_frame(len(batch)))
                for entry in batch:
                    child.writer.writelines(entry.frames())
                await child.writer.drain()
                return read_response(await child.reader.readexactly(RESPONSE))
        except (asyncio.IncompleteReadError, OSError):  # TimeoutError is an OSError
            await self.end_process()
            return None
        except BaseException:
            # The process is ended, because otherwise its late response would be read as the response to another entry.
            await asyncio.shield(self.end_process())
            raise

    async def _started(self) -> Child:
        child = await start_child("proxy.payload_log.payload_process", output=DEVNULL, environment=bare_environment())
        child.writer.write(rules_frame(rules_of(self._place)))
        return child

    def _drop(self, reason: str, entries: int = 1) -> None:
        self.counts.dropped += entries
        if not self._missing:
            name = "" if self._place.file is None else f" {self._place.file}"
            self._report_loss(f"entries of the payload log{name} are dropped: {reason}")
        self._missing += entries


def rules_of(place: PayloadLogSettings) -> WriterRules:
    """Return the settings for the process, including the collector's secrets."""
    rules = (place.most, list(place.redact), place.rotate, place.keep)
    collector = place.collector
    if collector is None:
        return WriterRules(str(place.file), *rules)
    headers = {name: reveal(value) for name, value in collector.headers.items()}
    resource = {"service.name": collector.service_name}
    return WriterRules(None, *rules, collector.endpoint, headers, collector.timeout, resource)


@asynccontextmanager
async def opened_payload_log(place: PayloadLogSettings) -> AsyncIterator[PayloadLog]:
    """Write a payload log during the block, and the waiting entries at its end."""
    log_of_process = logging.getLogger("dragoman")
    log = PayloadLog(place, log_of_process.warning, log_of_process.info)
    try:
        async with background((log.run,)):
            yield log
            await log.drain()
    finally:
        await log.end_process()


def entry_of(record: RequestRecord, content: LoggedContent) -> PayloadEntry:
    """Return the entry of a request that has ended."""
    fields: dict[str, object] = {
        "time": timestamp(),
        "request_id": record.request_id,
        "team": record.team,
        "surface": record.surface,
        "path": record.path[:256],
        "model": record.asked[:256],
        "deployment": record.answered_by,
        "stream": record.stream,
        "status": record.status,
        "outcome": record.outcome,
        "duration_ms": round(record.duration * 1000, 2),
    }
    if record.key:
        fields["key"] = record.key
    if record.trace is not None:
        fields["trace_id"] = record.trace.hex_id
    if record.code is not None:
        fields["code"] = record.code
    if (usage := record.counted) is not None:
        fields["prompt_tokens"] = usage.prompt_tokens
        fields["completion_tokens"] = usage.completion_tokens
    streamed = content.streamed()
    return PayloadEntry(
        json_line(fields), content.request, content.answer if streamed is None else streamed, streamed is not None
    )
