"""The values of rows when they are read."""

import sys
import threading
from bisect import bisect_left
from collections.abc import Callable
from itertools import pairwise

import pytest

from proxy.telemetry.instruments import CounterInstrument, GaugeInstrument, HistogramInstrument, Instrument
from proxy.telemetry.merged_metrics import MetricFamily


def roomy() -> bool:
    return False


def counter() -> CounterInstrument:
    return CounterInstrument("asked", "Asked.", ("team", "model"), roomy)


def histogram() -> HistogramInstrument:
    return HistogramInstrument("seconds", "How long.", ("team",), roomy, ("1.0", "2.0", "+Inf"))


def test_a_counter_is_shown_by_its_labels_in_the_order_in_which_they_came() -> None:
    made = counter()
    for team in ("b", "a", "b"):
        made.series(team, "m").row[0] += 1
    total = "asked_total"
    samples = (((total, (("team", "b"), ("model", "m"))), 2.0), ((total, (("team", "a"), ("model", "m"))), 1.0))
    assert made.family() == MetricFamily("asked", "counter", "Asked.", samples)


def test_a_series_that_is_started_is_shown_before_anything_is_counted() -> None:
    made = GaugeInstrument("held", "Held.", ("team",), roomy)
    started = made.start("a")
    assert made.series("a") is started
    assert made.family().samples == ((("held", (("team", "a"),)), 0.0),)


def test_a_histogram_shows_what_each_bucket_and_all_below_hold() -> None:
    made = histogram()
    row = made.series("a").row
    for seconds in (0.5, 1.5, 1.75, 9.0):
        row[bisect_left((1.0, 2.0), seconds)] += 1
        row[-1] += seconds
    labels = (("team", "a"),)
    assert made.family().samples == (
        (("seconds_bucket", (*labels, ("le", "1.0"))), 1.0),
        (("seconds_bucket", (*labels, ("le", "2.0"))), 3.0),
        (("seconds_bucket", (*labels, ("le", "+Inf"))), 4.0),
        (("seconds_count", labels), 4.0),
        (("seconds_sum", labels), 12.75),
    )


def test_some_series_are_shown_without_the_others() -> None:
    made = counter()
    made.series("a", "m")
    assert [labels for (_, labels), _ in made.family_of([made.series("b", "m")]).samples] == [
        (("team", "b"), ("model", "m"))
    ]


@pytest.mark.parametrize("make", [counter, histogram])
def test_where_there_is_no_room_new_label_values_share_one_series(make: Callable[[], Instrument]) -> None:
    made, full = make(), [False]
    made._full = lambda: full[0]
    values = ("a", "m")[: len(made._label_names)]
    known, full[0] = made.series(*values), True
    others = {made.series(*(f"{value}{number}" for value in values)) for number in range(9)}
    assert made.series(*values) is known
    (other,) = others
    assert {value for _, value in other.labels} == {"other"}


def test_a_histogram_read_in_another_thread_agrees_with_itself() -> None:
    made = histogram()
    row, stop = made.series("a").row, threading.Event()

    def count() -> None:
        while not stop.is_set():
            for seconds in (0.5, 1.5, 9.0):
                row[bisect_left((1.0, 2.0), seconds)] += 1
                row[-1] += seconds

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    thread = threading.Thread(target=count)
    thread.start()
    try:
        for _ in range(2000):
            first, second, last, count_, _ = (value for _, value in made.family().samples)
            assert first <= second <= last == count_
            assert all(few <= more for few, more in pairwise((first, second, last)))
    finally:
        stop.set()
        thread.join()
        sys.setswitchinterval(before)
