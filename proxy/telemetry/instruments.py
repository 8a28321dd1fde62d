"""Counters, gauges and histograms as plain rows of numbers, which are read as values when metrics are rendered.

A row is changed in place, only on the event loop's thread, so that counting takes no lock. Another thread may read it
meanwhile; it copies the row first. Copying a row is one step of the interpreter. Therefore the count of a histogram,
which is the sum of its buckets, always matches the buckets. The histogram's sum of values may lack one observation that
is being counted.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import ClassVar

from proxy.request_record import OTHER
from proxy.telemetry.merged_metrics import Key, MetricFamily

Full = Callable[[], bool]
"""A function that returns whether the next new label values of an instrument must be counted as `other`."""


@dataclass(slots=True, eq=False)
class Series:
    """One series: its instrument, its labels by name, and its row. The row of a counter or gauge is its value. The row
    of a histogram has the number of observations in each bucket, the number beyond the last bucket, and then the sum of
    the observed values."""

    instrument: "Instrument"
    labels: tuple[tuple[str, str], ...]
    row: list[float]


class Instrument:
    """A metric with its series by label values."""

    kind: ClassVar[str]

    def __init__(self, name: str, text: str, label_names: tuple[str, ...], full: Full) -> None:
        self.name = name
        self.text = text
        self._label_names = label_names
        self._full = full
        self._series: dict[tuple[str, ...], Series] = {}

    def series(self, *values: str) -> Series:
        """Return the series of these label values, or the series of `other` if there are too many series. Repeated
        reloads with new names must not fill the memory."""
        return self._series.get(values) or self._added(values)

    def start(self, *values: str) -> Series:
        """Return a new series, which is rendered from now on."""
        labels = tuple(zip(self._label_names, values, strict=True))
        self._series[values] = series = Series(self, labels, self._empty())
        return series

    def family(self) -> MetricFamily:
        """Return all series with their current values."""
        # The series are copied, because the event loop may add series meanwhile.
        return self.family_of(list(self._series.values()))

    def family_of(self, several: Iterable[Series]) -> MetricFamily:
        """Return some of the series with their current values."""
        samples = tuple(sample for series in several for sample in self._samples(series))
        return MetricFamily(self.name, self.kind, self.text, samples)

    def _added(self, values: tuple[str, ...]) -> Series:
        if self._full():
            values = tuple(OTHER for _ in values)
            if (other := self._series.get(values)) is not None:
                return other
        return self.start(*values)

    def _empty(self) -> list[float]:
        return [0.0]

    def _samples(self, series: Series) -> Iterator[tuple[Key, float]]:
        raise NotImplementedError


class CounterInstrument(Instrument):
    """Counts that only go up."""

    kind = "counter"

    def started(self, values: Iterable[str]) -> "CounterInstrument":
        """Start a series for each value of the only label, and return the instrument."""
        for value in values:
            self.start(value)
        return self

    def _samples(self, series: Series) -> Iterator[tuple[Key, float]]:
        yield (f"{self.name}_total", series.labels), series.row[0]


class GaugeInstrument(Instrument):
    """Numbers that go up and down."""

    kind = "gauge"

    def _samples(self, series: Series) -> Iterator[tuple[Key, float]]:
        yield (self.name, series.labels), series.row[0]


class HistogramInstrument(Instrument):
    """Observations, counted by bucket. `bounds` are the limits of the buckets as text; the last is `+Inf`."""

    kind = "histogram"

    def __init__(self, name: str, text: str, label_names: tuple[str, ...], full: Full, bounds: Sequence[str]) -> None:
        super().__init__(name, text, label_names, full)
        self._bounds = bounds

    def _empty(self) -> list[float]:
        return [0.0] * (len(self._bounds) + 1)

    def _samples(self, series: Series) -> Iterator[tuple[Key, float]]:
        *buckets, total = series.row.copy()
        count = 0.0
        for bound, count in zip(self._bounds, accumulate(buckets), strict=True):
            yield (f"{self.name}_bucket", (*series.labels, ("le", bound))), count
        yield (f"{self.name}_count", series.labels), count
        yield (f"{self.name}_sum", series.labels), total
