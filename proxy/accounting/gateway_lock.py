"""The lock that lets one gateway use a SQLite ledger. It is a file beside the ledger, held for the life of the gateway.

The process that owns the gateway holds it: the only one, or the supervisor, whose workers share it. The kernel releases
the lock at the end of that process, however it ends. The lock file stays, but the file alone does not mean that it is
locked. Readers need no lock.
"""

import asyncio
import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from proxy.ledger.journal_files import lock_file
from proxy.ledger.ledger_settings import LedgerRefusedError, LedgerSettings

SUFFIX: Final = ".gateway"
"""The suffix of the lock file after the name of the ledger's file."""

PATIENCE: Final = 5.0
"""Seconds for which a starting gateway waits for one that is ending, as in a restart. A drain may take minutes."""

RETRY_EVERY: Final = 0.1

_REFUSED: Final = (
    "another gateway uses the ledger {}: SQLite serves one gateway at a time. Stop the other one first, name another "
    "file in server.ledger, or let several gateways share a ledger in PostgreSQL"
)


@asynccontextmanager
async def sole_gateway(settings: LedgerSettings | None, patience: float = PATIENCE) -> AsyncIterator[None]:
    """Hold the lock of a SQLite ledger for the block. Other ledgers have no lock.

    Raises LedgerRefusedError if another gateway holds it for `patience` seconds. If the file system has no locks, the
    gateway serves without it: the reason is logged, and the loader's own lock still admits only one writer.
    """
    file = None if settings is None else settings.file
    lock = None if file is None else await _taken(file, patience)
    try:
        yield
    finally:
        if lock is not None:
            os.close(lock)


async def _taken(file: Path, patience: float) -> int | None:
    """Return the descriptor of the lock, `None` if the file system has no locks."""
    log, loop = logging.getLogger("dragoman"), asyncio.get_running_loop()
    deadline, waits = loop.time() + patience, False
    while True:
        try:
            lock = await asyncio.to_thread(_locked, file)
        except OSError as error:
            log.warning(
                "ledger: %s cannot be locked, so that a second gateway on it is not refused: %s", file, error.strerror
            )
            return None
        if lock is not None:
            return lock
        if loop.time() >= deadline:
            raise LedgerRefusedError(_REFUSED.format(_absolute(file)))
        if not waits:
            waits = True
            log.info("ledger: another gateway uses %s; waiting up to %g s for its end", _absolute(file), patience)
        await asyncio.sleep(RETRY_EVERY)


def _absolute(file: Path) -> str:
    return str(file.absolute())


def _locked(file: Path) -> int | None:
    """Take the lock, whose file is beside the ledger's real file (links are resolved). Return `None` if another process
    holds it."""
    place = file.resolve()
    place.parent.mkdir(parents=True, exist_ok=True)
    return lock_file(place.with_name(place.name + SUFFIX))
