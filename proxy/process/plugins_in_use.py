"""The plugins of the current configuration in one process. They are replaced with the configuration, and closed with
the process."""

import asyncio
import logging
from collections.abc import Iterator

from proxy.hooks.team_hooks import TeamHooks
from proxy.off_loop.request_threads import RequestThreads
from proxy.plugins.guarded_answers import attach_guards
from proxy.plugins.plugin_metrics import PluginCounts
from proxy.plugins.post_json import JsonPoster
from proxy.plugins.team_guards import TeamGuards
from proxy.plugins.usage_sinks import SinkRegistry
from proxy.process.load_table import LoadedTable
from proxy.telemetry.merged_metrics import MetricFamily
from proxy.telemetry.metrics import Metrics


class PluginsInUse:
    """The plugins of a process. Requests pass through the guards of `guards` by way of `hooks`."""

    def __init__(self, hooks: TeamHooks, sinks: SinkRegistry, threads: RequestThreads) -> None:
        self._threads = threads
        self._hooks = hooks
        self.sinks = sinks
        self.guards: TeamGuards | None = None
        self._counts = PluginCounts()
        self._log = logging.getLogger("dragoman")

    def use_guards(self, table: LoadedTable) -> None:
        """Make the guards of a configuration current. The previous guards are closed when no request uses them."""
        self._counts.retire(() if self.guards is None else self.guards.running.values(), ())
        self.guards = TeamGuards(table.loaded, table.plugins, self._log, self._threads) if table.plugins else None
        attach_guards(self._hooks, self.guards)

    async def use_sinks(self, table: LoadedTable) -> None:
        """Make the sinks of a configuration current, and let the previous sinks deliver their rows."""
        before = self.sinks.running
        await self.sinks.use(table.loaded, table.plugins)
        self._counts.retire((), before)

    async def aclose(self) -> None:
        """Deliver the waiting rows, as far as there is time, and close the guards meanwhile."""
        closing = (None if self.guards is None else self.guards.close()) or ()
        await self.sinks.aclose()
        for each in closing:
            await asyncio.to_thread(each.join)

    def families(self) -> Iterator[MetricFamily]:
        """Yield the metrics of plugins."""
        guards = () if self.guards is None else self.guards.running.values()
        return self._counts.families(guards, self.sinks.running)


async def plugins_in_use(
    hooks: TeamHooks,
    sinks: SinkRegistry,
    threads: RequestThreads,
    table: LoadedTable,
    metrics: Metrics,
) -> PluginsInUse:
    """Return the plugins of the configuration that a process begins with. The caller has to close them."""
    plugins = PluginsInUse(hooks, sinks, threads)
    plugins.use_guards(table)
    await plugins.use_sinks(table)
    metrics.watch_families(plugins.families)
    return plugins


def sinks_of_process() -> SinkRegistry:
    """Return the sinks of a process. There are none yet, and no connection is made before there are some."""
    return SinkRegistry(JsonPoster, logging.getLogger("dragoman"))
