"""The arithmetic of a chunk's cost, and every dialect's stream is measured. No test checks a time."""

import pytest

from providers.failure import UpstreamError
from tests.bench.dialects import FAMILY, HEADER, IN_A_ROW, STREAMS, Recording, Row, decode, measured, recordings, table
from tests.bench.readings import Reading

FAMILY_READINGS = [Reading(0.0008, 1, 200), Reading(0.0010, 1, 200)]


def row(cpu: float, limit: float = 1.5) -> Row:
    return Row("cohere", [Reading(2 * cpu, 1, 200), Reading(cpu, 1, 200)], FAMILY_READINGS, limit)


@pytest.mark.parametrize(("cpu", "verdict"), [(0.0011, "ok"), (0.0013, "above")])
def test_the_cheapest_rounds_are_held_against_the_limit(cpu: float, verdict: str) -> None:
    held = row(cpu)
    assert held.ratio == pytest.approx(cpu / 0.0008)
    assert held.line().split() == ["cohere", f"{cpu * 5000:.2f}", f"{cpu / 0.0008:.2f}", "1.5", verdict]


def test_the_columns_stand_under_their_heads() -> None:
    head, line = table([row(0.001)]).splitlines()
    assert head == HEADER
    assert len(line) == len(head)


def test_the_family_comes_first_and_every_stream_after_it_in_each_length() -> None:
    found = [(recording.name, recording.count) for recording in recordings()]
    assert found[0] == (FAMILY, 200)
    assert [count for _, count in found] == [count for stream in STREAMS.values() for count in stream.counts]
    assert {*STREAMS, "sglang, 400 chunks"} == {name for name, _ in found}


def test_a_reading_counts_the_chunks_of_its_stream() -> None:
    assert decode(recordings()[0]).count == 200


def test_a_stream_that_is_not_decoded_to_its_end_is_no_reading() -> None:
    family = recordings()[0]
    with pytest.raises(UpstreamError):
        decode(Recording(family.name, family.sent, family.pieces[:-3], 200, 1))


def test_each_stream_is_read_as_often_as_the_family() -> None:
    family, other = recordings()[:2]
    rows = list(measured([family, other], rounds=3))
    assert [each.name for each in rows] == [family.name, other.name]
    assert {len(readings) for each in rows for readings in (each.own, each.family)} == {3 * IN_A_ROW}
    assert rows[0].ratio == 1
