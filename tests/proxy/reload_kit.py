"""A reloader over a table in a file, for tests of when and how it loads. Never a claim of its own."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from proxy.live import Live
from proxy.metrics import Metrics
from proxy.reload import Reloader, Source, Table

GOOD = "version: 1\nvendors: {mock: {}}\nmodels: {mock/one: {}}\n"
OTHER = GOOD.replace("one", "two")
BAD = "version: 1\nvendors: {mock: {}}\nmodels: {nobody/one: {}}\n"


@dataclass(frozen=True, slots=True)
class Rig:
    """A reloader over a table in a file."""

    path: Path
    live: Live
    metrics: Metrics
    reloader: Reloader
    swapped: list[Table]

    def write(self, text: str) -> None:
        """Write the table anew, at once, as an editor does."""
        fresh = self.path.with_suffix(".new")
        fresh.write_text(text, encoding="utf-8")
        fresh.rename(self.path)

    @property
    def models(self) -> list[str]:
        """What is in force."""
        return list(self.live.snapshot.models)

    def count(self, result: str) -> float:
        """Reloads with this result."""
        families = text_string_to_metric_families(self.metrics.render().decode())
        samples = (sample for family in families for sample in family.samples)
        return sum(sample.value for sample in samples if sample.labels.get("result") == result)


def reloading(folder: Path) -> Rig:
    """A good table in force."""
    path = folder / "t.yaml"
    path.write_text(GOOD, encoding="utf-8")
    source = Source(path, {"EXTRA": "mock/extra"})
    table = source.load()
    live, metrics = Live(table.snapshot, 0), Metrics()
    swapped: list[Table] = []

    async def take(table: Table) -> None:
        live.swap(table.snapshot)
        swapped.append(table)

    return Rig(path, live, metrics, Reloader(source, table, metrics, take), swapped)


async def until(reached: Callable[[], bool]) -> None:
    """Wait until something holds."""
    while not reached():  # noqa: ASYNC110 - the table in force tells no one
        await asyncio.sleep(0.005)


async def stopped(task: "asyncio.Task[None]") -> None:
    """End a task."""
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
