"""The cost of decoding a streamed chunk in each dialect, compared with the OpenAI family: `python -m
tests.bench.dialects`.

Only the decoder runs, in this process. Each round decodes the family's stream and one stream of every dialect, one
after the other. The cheapest round of each counts.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from providers.dialect import UpstreamRequest
from tests.bench.readings import Reading, cheapest
from tests.bench.streams import Stream, words
from tests.support.dialects import declared

ROUNDS = 50
FAMILY = "openai"

_DECLARED: Mapping[str, Stream] = declared("suite_data.py", "STREAMS")
STREAMS: Mapping[str, Stream] = {FAMILY: _DECLARED[FAMILY], **_DECLARED}
"""Streams by the name of the dialect. A second wire format of a dialect follows its name and a comma. The family comes
first."""

IN_A_ROW = 3
"""Consecutive readings of a stream in each turn. The first has to load the bytes from memory. In a gateway they are in
the CPU's cache, because they just came from the socket."""


def dialect_of(name: str) -> str:
    return name.partition(",")[0]


@dataclass(frozen=True, slots=True)
class Recording:
    """A stream to decode again and again: its name, its call, its reads, the number of its chunks of text, and the
    limit of a chunk's cost as a multiple of the family's."""

    name: str
    sent: UpstreamRequest
    pieces: Sequence[bytes]
    count: int
    limit: float


def recordings() -> list[Recording]:
    """Return every stream. The family's is the first."""
    return [
        Recording(_name(name, place, count), stream.sent(), stream.write(words(count)), count, stream.limit)
        for name, stream in STREAMS.items()
        for place, count in enumerate(stream.counts)
    ]


def _name(stream: str, place: int, count: int) -> str:
    return stream if place == 0 else f"{stream}, {count} chunks"


def decode(recording: Recording) -> Reading:
    """Return the cost of one decoding. Raise UpstreamError for a stream without its end."""
    sent, pieces = recording.sent, recording.pieces
    cpu, wall = time.process_time(), time.perf_counter()
    decoder = sent.target.dialect.stream(sent)
    for piece in pieces:
        for _ in decoder.feed(piece):
            pass
    for _ in decoder.finish():
        pass
    return Reading(time.process_time() - cpu, time.perf_counter() - wall, recording.count)


@dataclass(frozen=True, slots=True)
class Row:
    """A dialect's readings, and the family's in the same run."""

    name: str
    own: Sequence[Reading]
    family: Sequence[Reading]
    limit: float

    @property
    def ratio(self) -> float:
        return cheapest(self.own).microseconds / cheapest(self.family).microseconds

    @property
    def within(self) -> bool:
        return self.ratio <= self.limit

    def line(self) -> str:
        own, verdict = cheapest(self.own).microseconds, "ok" if self.within else "above"
        return f"{self.name:<22}{own:>10.2f}{self.ratio:>8.2f}{self.limit:>8.1f}{verdict:>9}"


HEADER = f"{'CPU µs to decode':<22}{'chunk':>10}{'ratio':>8}{'limit':>8}{'verdict':>9}"


def table(rows: Sequence[Row]) -> str:
    """Return the printed table."""
    return "\n".join([HEADER, *(row.line() for row in rows)])


def measured(streams: Sequence[Recording], rounds: int) -> Iterator[Row]:
    """Yield each stream's row, from readings taken in turns."""
    readings: dict[str, list[Reading]] = {stream.name: [] for stream in streams}
    for _ in range(rounds):
        for stream in streams:
            readings[stream.name] += [decode(stream) for _ in range(IN_A_ROW)]
    for stream in streams:
        yield Row(stream.name, readings[stream.name], readings[FAMILY], stream.limit)


def main() -> None:
    print(table(list(measured(recordings(), ROUNDS))))


if __name__ == "__main__":
    main()
