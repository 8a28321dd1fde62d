"""Each kind of chunk is measured, and is relayed completely. No test checks a time."""

import asyncio

from tests.bench.chunks import CHUNKS, PARTS, line, relay, works
from tests.bench.readings import Reading


def test_each_part_of_each_vendor_has_a_row_on_each_surface() -> None:
    names = {work.name for work in works()}
    assert len(names) == len(PARTS) * 7
    assert {"openai text chat", "claude reasoning responses", "claude arguments own"} <= names


def test_a_reading_counts_the_chunks_of_its_stream() -> None:
    assert {asyncio.run(relay(work)).count for work in works()} == {CHUNKS}


def test_a_row_has_the_cheapest_reading() -> None:
    assert line("a", [Reading(0.0004, 1, 200), Reading(0.0002, 1, 200)]).split() == ["a", "1.00"]
