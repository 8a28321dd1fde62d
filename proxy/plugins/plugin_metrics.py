"""The metrics of plugins, read from the running guards and sinks. Label values are names in the configuration."""

from collections.abc import Iterable, Iterator
from typing import Final

from proxy.plugins.running_guard import RunningGuard
from proxy.plugins.usage_sinks import RunningSink
from proxy.telemetry.merged_metrics import Key, MetricFamily

TEXTS: Final = {
    "plugin_calls": "Calls of a plugin: checks, or tries to deliver a batch.",
    "plugin_seconds": "Seconds that calls of a plugin took, waiting for a thread included.",
    "plugin_failures": "Calls of a plugin that raised, passed their deadline, or returned an invalid result.",
    "plugin_refusals": "Requests and responses that a plugin refused.",
    "plugin_dropped_rows": "Rows that a usage sink did not take.",
}

Counts = dict[str, dict[str, float]]
"""Counts by the name of the metric and the name of the plugin."""


def plugin_families(found: Counts) -> Iterator[MetricFamily]:
    """Yield the family of each metric that has a count."""
    for name, counts in found.items():
        if counts:
            samples: dict[Key, float] = {
                (f"dragoman_{name}_total", (("plugin", plugin),)): counts[plugin] for plugin in sorted(counts)
            }
            yield MetricFamily(f"dragoman_{name}", "counter", TEXTS[name], tuple(samples.items()))


class PluginCounts:
    """The counts of plugins since the process began. The counts of earlier configurations are included, because
    counters never decrease."""

    def __init__(self) -> None:
        self._past: Counts = {name: {} for name in TEXTS}

    def retire(self, guards: Iterable[RunningGuard], sinks: Iterable[RunningSink]) -> None:
        """Add the counts of a configuration that is replaced to the past counts."""
        self._past = self._with_past(guards, sinks)

    def families(self, guards: Iterable[RunningGuard], sinks: Iterable[RunningSink]) -> Iterator[MetricFamily]:
        """Return the families. There are none if no configuration has had plugins."""
        return plugin_families(self._with_past(guards, sinks))

    def _with_past(self, guards: Iterable[RunningGuard], sinks: Iterable[RunningSink]) -> Counts:
        found = {name: dict(counts) for name, counts in self._past.items()}

        def count(name: str, plugin: str, value: float) -> None:
            found[name][plugin] = found[name].get(plugin, 0.0) + value

        for guard in guards:
            count("plugin_calls", guard.name, guard.calls)
            count("plugin_seconds", guard.name, guard.seconds)
            count("plugin_failures", guard.name, guard.failures)
            count("plugin_refusals", guard.name, guard.refusals)
        for sink in sinks:
            count("plugin_calls", sink.plugin.name, sink.calls)
            count("plugin_seconds", sink.plugin.name, sink.seconds)
            count("plugin_failures", sink.plugin.name, sink.failures)
            count("plugin_dropped_rows", sink.plugin.name, sink.dropped)
        return found
