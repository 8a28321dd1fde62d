"""Deliver the usage of finished requests to the sinks of the configuration. Rows are delivered in batches, within
limits of time and memory, and without delaying requests."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Final

from config.load_config import Loaded
from proxy.background_tasks import SharedTask, run_with_timeout
from proxy.plugins.api import Poster, UsageRow, UsageSink
from proxy.plugins.call_plugin import Raised, raised
from proxy.plugins.load_plugins import LoadedPlugin, Plugins
from proxy.plugins.plugin_threads import begin_close
from proxy.request_record import RequestRecord, fresh_id

MAX_ROWS: Final = 10_000
"""The maximum number of rows that wait for one sink in one process. Further rows are dropped and counted."""

BATCH: Final = 100

LINGER: Final = 0.5
"""The seconds for which the first row of a batch waits for further rows."""

TRIES: Final = 5
FIRST_WAIT: Final = 0.5
"""Seconds before the second try. The wait doubles with each further try."""

LAST_FLUSH: Final = 3.0
"""The maximum seconds for delivering the waiting rows of all sinks when a process ends or a configuration is replaced.
"""

CANCEL_GRACE: Final = 0.5
"""The maximum seconds that a cancelled delivery may take to end."""


class RunningSink:
    """One sink in use. `delivered`, `dropped`, `calls` (tries) and `failures` are counted since the process began."""

    def __init__(self, plugin: LoadedPlugin, http: Poster, log: logging.Logger) -> None:
        plugin.users.join()
        self.plugin = plugin
        self.delivered = 0
        self.dropped = 0
        self.failures = 0
        self.seconds = 0.0
        self.calls = 0
        self.linger = LINGER
        self.first_wait = FIRST_WAIT
        self._http = http
        self._log = log
        self._rows: deque[UsageRow] = deque()
        self._task = SharedTask(self._drain)
        self._failing = False

    @property
    def waiting(self) -> int:
        """The number of waiting rows."""
        return len(self._rows)

    def append(self, row: UsageRow) -> None:
        """Add a row, or drop it if the queue is full."""
        if len(self._rows) >= MAX_ROWS:
            self.dropped += 1
            return
        self._rows.append(row)
        self._task.start()

    async def aclose(self) -> None:
        """Deliver the waiting rows within LAST_FLUSH, drop the rest, and close the plugin."""
        self.linger = 0.0
        try:
            async with asyncio.timeout(LAST_FLUSH):
                await self._task.aclose()
                await self._drain()
        except TimeoutError:
            self._log.warning("plugin %s: %d rows were not delivered before the end", self.plugin.name, self.waiting)
        self.dropped += len(self._rows)
        self._rows.clear()
        if (closing := begin_close(self.plugin, self._log)) is not None:
            await asyncio.to_thread(closing.join)

    async def _drain(self) -> None:
        while self._rows:
            await asyncio.sleep(self.linger)
            batch = tuple([self._rows[at] for at in range(min(BATCH, len(self._rows)))])
            delivered = await self._delivered(batch)
            for _ in batch:
                self._rows.popleft()
            if delivered:
                self.delivered += len(batch)
            else:
                self.dropped += len(batch)

    async def _delivered(self, batch: tuple[UsageRow, ...]) -> bool:
        """Return whether a batch could be delivered within TRIES tries."""
        wait = self.first_wait
        for number in range(TRIES):
            if number:
                await asyncio.sleep(wait)
                wait *= 2
            started = time.monotonic()
            self.calls += 1
            try:
                fault = await self._tried(batch)
            finally:
                self.seconds += time.monotonic() - started
            if fault is None:
                self._recovered()
                return True
            self._failed(fault)
        return False

    async def _tried(self, batch: tuple[UsageRow, ...]) -> str | None:
        """Let the plugin deliver a batch within its deadline. Return the reason if it was not delivered.
        CancelledError and SystemExit can come only from the plugin itself."""
        work = _outcome(self.plugin.made, batch, self._http)
        try:
            failure = await run_with_timeout(work, self.plugin.deadline, CANCEL_GRACE)
        except TimeoutError:
            return "takes longer than its deadline"
        return None if failure is None else f"raises {failure}"

    def _failed(self, why: str) -> None:
        self.failures += 1
        if not self._failing:
            self._failing = True
            self._log.warning("plugin %s %s; rows wait, and are dropped after %d tries", self.plugin.name, why, TRIES)

    def _recovered(self) -> None:
        if self._failing:
            self._failing = False
            self._log.info("plugin %s works again", self.plugin.name)


async def _outcome(sink: UsageSink, batch: tuple[UsageRow, ...], http: Poster) -> Raised | None:
    try:
        await sink.deliver(batch, http)
    except BaseException as error:  # a plugin may raise anything
        return raised(error)
    return None


class SinkRegistry:
    """The sinks of the current configuration. Without sinks, a request costs one check."""

    def __init__(self, http: Callable[[], Poster], log: logging.Logger, now: Callable[[], float] = time.time) -> None:
        self.running: tuple[RunningSink, ...] = ()
        self._make_http = http
        self._http: Poster | None = None
        self._log = log
        self._now = now

    def add(self, record: RequestRecord, cost: float | None) -> None:
        """Report a finished request and its cost to every sink."""
        if self.running:
            row = usage_row(record, cost, dict(record.tags or {}), int(self._now() * 1000))
            for sink in self.running:
                sink.append(row)

    async def use(self, loaded: Loaded, plugins: Plugins) -> None:
        """Use the sinks of a configuration from now on. The previous sinks first deliver their waiting rows."""
        before = self.running
        sinks = [each for each in plugins.values() if each.has("deliver")]
        if sinks and self._http is None:
            self._http = self._make_http()
        http = self._http
        self.running = () if http is None else tuple(RunningSink(each, http, self._log) for each in sinks)
        await _closed(before)

    async def aclose(self) -> None:
        """Deliver the waiting rows within LAST_FLUSH and close the sinks."""
        running, self.running = self.running, ()
        await _closed(running)


async def _closed(sinks: tuple[RunningSink, ...]) -> None:
    await asyncio.gather(*(sink.aclose() for sink in sinks))


def usage_row(record: RequestRecord, cost: float | None, tags: Mapping[str, str], now: int) -> UsageRow:
    """Return the row for a request that ended at `now` (ms)."""
    usage = record.counted
    prompt = (usage and usage.prompt_details) or {}
    completion = (usage and usage.completion_details) or {}
    return UsageRow(
        id=fresh_id(),
        time=now,
        request_id=record.request_id,
        team=record.team,
        key=record.key or record.key_label,
        user=record.user,
        tags=tags,
        surface=record.surface,
        asked=record.asked,
        model=record.model,
        deployment=record.deployment,
        tokens_in=None if usage is None else usage.prompt_tokens,
        tokens_cached=prompt.get("cached_tokens"),
        tokens_out=None if usage is None else usage.completion_tokens,
        tokens_reasoning=completion.get("reasoning_tokens"),
        estimated=usage is not None and usage.estimated,
        cost_usd=cost,
        status=record.status,
        outcome=record.outcome,
        ms=int(record.duration * 1000),
        attempts=len(record.attempts),
    )
