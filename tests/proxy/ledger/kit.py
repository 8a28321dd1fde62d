"""Requests, rows and databases that the tests of the ledger share."""

import errno
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from config.sections.ledger_section import LedgerSection
from providers.completion import Usage
from providers.pricing import Price
from proxy.ledger.ledger_row import JournalRow, LedgerRow, read_line, row_line
from proxy.ledger.ledger_settings import LedgerSettings, ledger_settings
from proxy.request_record import Attempt, RequestRecord

NOON = 1_793_534_400_000
"""1 November 2026, 12:00 UTC, in ms."""

KEEP = 400 * 86400.0

DEPLOYMENT = "azure-eu/gpt-4o/sweden"


def record(team: str = "search", tokens: int = 100) -> RequestRecord:
    """Return a completed request of 1.5 s that cost (0.15 * tokens + 0.6 * 10) millionths of a USD."""
    return RequestRecord(
        "req-1",
        10.0,
        "openai",
        "/v1/chat/completions",
        team=team,
        key="ci",
        asked="fast",
        model="fast",
        status=200,
        attempts=[Attempt(DEPLOYMENT, 10.1, 11.4)],
        usage=Usage(tokens, 10, {"cached_tokens": 7}, {"reasoning_tokens": 3}),
        price=Price(0.15, 0.60, 0.15),
        finished=11.5,
    )


def line(sequence: int = 1, now: int = NOON, team: str = "search", tokens: int = 100) -> bytes:
    return row_line(record(team, tokens), sequence, now)


def journaled(sequence: int = 1, now: int = NOON, team: str = "search", gateway: str = "g1") -> JournalRow:
    return read_line(line(sequence, now, team), gateway)


def row(now: int = NOON, team: str = "search") -> LedgerRow:
    return journaled(1, now, team).row


def ledger_at(url: str, keep: float, zone: str, folder: Path) -> LedgerSettings:
    """Return the settings of a ledger URL in a config file of this folder."""
    place = LedgerSection.model_validate({"url": url, "keep": keep}).place(folder / "table.yaml")
    assert place is not None
    return ledger_settings(place, zone)


def sqlite(folder: Path, zone: str = "UTC", keep: float = KEEP) -> LedgerSettings:
    return ledger_at("sqlite:ledger.db", keep, zone, folder)


@contextmanager
def small_disk(size: int) -> Iterator[None]:
    """Limit the size of this process's files to `size` bytes in the block."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


class FullDisk:
    """A disk of `capacity` bytes for the files of a folder. Another program uses `held` bytes of it. A test replaces
    `os.write` by `write`, which writes as much as fits and then fails as a full disk does.
    """

    def __init__(self, folder: Path, capacity: int, held: int = 0, error: int = errno.ENOSPC) -> None:
        self.folder, self.capacity, self.held, self.error = folder, capacity, held, error
        self._write = os.write

    def write(self, descriptor: int, data: bytes) -> int:
        """Write as much as fits, as `os.write` does."""
        path = Path(f"/proc/self/fd/{descriptor}").resolve()
        if self.folder.resolve() not in path.parents:
            return self._write(descriptor, data)
        used = sum(each.stat().st_size for each in self.folder.iterdir())
        room = self.capacity - self.held - used
        if room <= 0:
            raise OSError(self.error, os.strerror(self.error))
        return self._write(descriptor, data[:room])
