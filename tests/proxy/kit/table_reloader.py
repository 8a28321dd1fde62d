"""A reloader of a config file."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from proxy.process.load_table import LoadedTable, Source
from proxy.process.reload import Reloader
from proxy.routing.snapshot import CurrentSnapshot
from proxy.telemetry.metrics import Metrics

GOOD = "version: 1\nvendors: {mock: {}}\nmodels: {mock/one: {}}\n"
OTHER = GOOD.replace("one", "two")
BAD = "version: 1\nvendors: {mock: {}}\nmodels: {nobody/one: {}}\n"

NEEDY = """\
version: 1
vendors:
  v: {profile: openai_compatible, base_url: "https://v.example/v1", credentials: {entra: {scope: s}}}
models: {v/m: {}}
"""
"""A configuration that needs a cloud library for its credentials."""


@dataclass(frozen=True, slots=True)
class Rig:
    """A reloader of a config file."""

    path: Path
    live: CurrentSnapshot
    metrics: Metrics
    reloader: Reloader
    swapped: list[LoadedTable]

    def write(self, text: str) -> None:
        """Replace the config file atomically, as an editor does."""
        fresh = self.path.with_suffix(".new")
        fresh.write_text(text, encoding="utf-8")
        fresh.rename(self.path)

    @property
    def models(self) -> list[str]:
        """The models of the current configuration."""
        return list(self.live.snapshot.models)

    def count(self, result: str) -> float:
        """Return the number of reloads with this result."""
        families = text_string_to_metric_families(self.metrics.render().decode())
        samples = (sample for family in families for sample in family.samples)
        return sum(sample.value for sample in samples if sample.labels.get("result") == result)


def reloading(folder: Path, text: str = GOOD) -> Rig:
    """Return a rig with a valid current configuration."""
    path = folder / "t.yaml"
    path.write_text(text, encoding="utf-8")
    source = Source(path, {"EXTRA": "mock/extra"})
    table = source.load()
    live, metrics = CurrentSnapshot(table.snapshot, 0), Metrics()
    swapped: list[LoadedTable] = []

    async def take(table: LoadedTable) -> None:
        live.swap(table.snapshot)
        swapped.append(table)

    return Rig(path, live, metrics, Reloader(source, table, metrics, take), swapped)


async def stopped(task: "asyncio.Task[None]") -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
