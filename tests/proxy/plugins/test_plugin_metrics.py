"""The metrics of plugins."""

import pytest

from proxy.plugins.plugin_metrics import PluginCounts
from tests.proxy.plugins.kit import Collector
from tests.proxy.plugins.test_running_guard import Plain, guard
from tests.proxy.plugins.test_usage_sinks import sink

pytestmark = pytest.mark.smoke


def values(counts: PluginCounts, *others: object) -> dict[str, float]:
    families = counts.families(*others)  # type: ignore[arg-type]
    return {f"{name} {labels[0][1]}": value for each in families for (name, labels), value in each.samples}


async def test_counts_outlast_the_table_and_there_are_none_without_plugins() -> None:
    counts, running, gone = PluginCounts(), guard(Plain()), sink(Collector({}))
    assert values(counts, [], []) == {}
    running.failures, gone.dropped = 2, 7
    shown = values(counts, [running], [gone])
    assert shown["dragoman_plugin_failures_total g"] == 2
    assert shown["dragoman_plugin_dropped_rows_total s"] == 7
    counts.retire([running], [gone])
    assert values(counts, [], []) == shown
    assert values(counts, [running], [])["dragoman_plugin_failures_total g"] == 4
