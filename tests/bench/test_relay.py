"""Every stream of the measurement is relayed to its end, and most of it on the path that it measures. No test checks a
time."""

import pytest

from providers.failure import UpstreamError
from tests.bench.relay import COUNT, HEADER, LOADS, READS, Load, Pushed, loads, measured
from tests.support.looped import looped


def test_each_stream_is_measured_in_reads_of_each_size() -> None:
    names = [load.name for load in loads()]
    assert len(set(names)) == len(names) == len(LOADS) * len(READS)


@looped("load", loads(), ids=lambda load: load.name)
def test_a_reading_is_of_the_whole_stream(load: Load) -> None:
    reading = load.reading()
    assert reading.count == COUNT
    assert load.chunks == COUNT + 2  # the role or the end, and the usage


def test_a_stream_without_its_end_is_no_reading() -> None:
    load = loads()[0]
    with pytest.raises(RuntimeError):
        Load(load.name, load.pieces[:-3], load.request).reading()
    with pytest.raises(UpstreamError):
        Load(load.name, [*load.pieces[:9], b"data: {\n\n"], load.request).reading()


def test_the_columns_stand_under_their_heads() -> None:
    (line,) = measured(loads()[:1], rounds=2)
    assert len(line) == len(HEADER)
    assert float(line.split()[-1]) > 0


async def test_what_was_pushed_before_anybody_waited_is_read() -> None:
    vendor = Pushed()
    vendor.push(b"piece")
    assert await vendor.read() == b"piece"
