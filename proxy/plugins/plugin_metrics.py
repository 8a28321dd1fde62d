"""The metrics of plugins, read from what runs them. Label values are names of the table."""

from collections.abc import Iterable, Iterator
from typing import Final

from proxy.plugins.running_guard import RunningGuard
from proxy.plugins.usage_sinks import RunningSink
from proxy.telemetry.merged_metrics import Key, MetricFamily

TEXTS: Final = {
    "plugin_calls": "Calls of a plugin: checks, or tries to deliver a batch.",
    "plugin_seconds": "Seconds that calls of a plugin took, waiting for a thread included.",
    "plugin_failures": "Calls of a plugin that raised, passed their deadline, or returned what makes no sense.",
    "plugin_refusals": "Requests and answers that a plugin refused.",
    "plugin_dropped_rows": "Rows that a usage sink did not take.",
}

Counts = dict[str, dict[str, float]]
"""By the metric's name and the plugin's."""


def plugin_families(found: Counts) -> Iterator[MetricFamily]:
    """Yield the family of each metric that counts anything."""
    for name, counts in found.items():
        if counts:
            samples: dict[Key, float] = {
                (f"dragoman_{name}_total", (("plugin", plugin),)): counts[plugin] for plugin in sorted(counts)
            }
            yield MetricFamily(f"dragoman_{name}", "counter", TEXTS[name], tuple(samples.items()))


class PluginCounts:
    """What plugins have done since the process began, those of earlier tables included: counters never go back."""

    def __init__(self) -> None:
        self._past: Counts = {name: {} for name in TEXTS}

    def retire(self, guards: Iterable[RunningGuard], sinks: Iterable[RunningSink]) -> None:
        """Keep the counts of what a table had that is replaced."""
        self._past = self._with_past(guards, sinks)

    def families(self, guards: Iterable[RunningGuard], sinks: Iterable[RunningSink]) -> Iterator[MetricFamily]:
        """Return the families; none where no table has had plugins."""
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
