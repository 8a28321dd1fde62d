"""Reloads the configuration on request and when its files change.

The new configuration is completely loaded and built before it replaces the old one. An invalid one changes nothing; its
problems are logged with their positions, and the failure is counted.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from config.load_config import Loaded, Sources, fingerprint
from config.problem import Problem
from proxy.admin.reload_history import ReloadHistory, ReloadResult
from proxy.process.load_table import LoadedTable, Source, TableRefused
from proxy.telemetry.metrics import Metrics

WATCH_EVERY = 5.0
"""Seconds between two checks of the files. Polling detects the symlink swaps of Kubernetes volumes, which file events
miss."""


class Reloader:
    """Reloads the configuration, one reload at a time, off the event loop. `use_table` makes a configuration current.
    Settings that need a restart stay as in the first `table`; therefore every later configuration is compared with
    it."""

    def __init__(
        self, source: Source, table: LoadedTable, metrics: Metrics, use_table: Callable[[LoadedTable], Awaitable[None]]
    ) -> None:
        self._source = source
        self._table = table
        self._began = table.loaded
        self._sources = table.loaded.sources
        self._metrics = metrics
        self._use_table = use_table
        self.history = ReloadHistory(source.wall)
        self._lock = asyncio.Lock()
        self._requested = asyncio.Event()
        self._log = logging.getLogger("dragoman")

    @property
    def warnings(self) -> Sequence[Problem]:
        """The warnings of the current configuration."""
        return self._table.warnings

    def request(self) -> None:
        """Let `run` reload soon. Signal handlers may call this."""
        self._requested.set()

    async def run(self) -> None:
        """Reload at each request, without end."""
        while True:
            await self._requested.wait()
            self._requested.clear()
            await self.reload()

    async def watch(self) -> None:
        """Reload when the files of the last configuration, current or refused, change; runs without end."""
        seen: tuple[Sources, Mapping[Path, str]] | None = None
        while True:
            await asyncio.sleep(WATCH_EVERY)
            now = await asyncio.to_thread(fingerprint, self._sources)
            async with self._lock:
                sources = self._sources  # another reload may have replaced the sources
                if now != sources.hashes and (sources, now) != seen:
                    seen = (sources, now)
                    await self._reload()

    async def reload(self) -> ReloadResult:
        """Load the configuration again and make it current; on any problem the old one stays."""
        async with self._lock:
            return await self._reload()

    async def _reload(self) -> ReloadResult:
        try:
            table = await asyncio.to_thread(self._source.load_to_serve)
        except TableRefused as error:
            self._sources = error.sources
            self._metrics.reload_failed()
            for problem in error.problems:
                self._log.error("reload refused: %s", problem)
            self.history.refused(self._table.snapshot.digest, error.problems)
            return ReloadResult(self._table.snapshot.digest, error.problems)
        if changed := _needs_restart(self._began, table.loaded):
            self._log.warning("changes that need a restart were not applied: %s", ", ".join(changed))
        if self._table.snapshot.zone != table.snapshot.zone:
            self._log.info("server.timezone: limits and budgets follow it now, days of the ledger after a restart")
        table = replace(table, loaded=table.loaded.without_positions())
        before, self._table, self._sources = self._table, table, table.loaded.sources
        await self._use_table(table)
        self._metrics.reloaded(table.snapshot.digest)
        self.history.taken(before.loaded.config, table.loaded.config, table.snapshot.digest, changed)
        self._log.info("configuration %s is current", table.snapshot.digest[:12])
        for warning in table.warnings:
            self._log.warning("%s", warning)
        return ReloadResult(table.snapshot.digest, (), changed)


def _needs_restart(before: Loaded, after: Loaded) -> tuple[str, ...]:
    """Return the settings that differ from the configuration with which the process began."""
    old, new = before.config.server, after.config.server
    fixed = (
        "host",
        "port",
        "workers",
        "admin",
        "max_body",
        "limits",
        "shared",
        "ledger",
        "watch",
        "log",
        "payload_log",
    )
    storage = ("keep_thinking", "keep_responses")
    times = ("drain_grace", "drain_timeout", "stall_limit")
    changed = [name for name in (*fixed, *storage, *times) if getattr(old, name) != getattr(new, name)]
    # New certificates take effect at once; only the presence of TLS is fixed when the listener opens.
    if (old.tls is None) != (new.tls is None):
        changed.append("tls")
    # A configuration that gains its first team also gains a ledger, without a change of `ledger`.
    if old.ledger == new.ledger and (before.ledger is None) != (after.ledger is None):
        changed.append("ledger")
    return tuple(f"server.{name}" for name in changed)
